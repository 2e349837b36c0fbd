"""What a data set is to a trial: facts about it and one pair of arrays per split."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Facts:
    """What a data set has.

    Attributes:
        classes, bias_classes: how many; `bias_classes` is None where there are no bias labels.
        shape: (channels, height, width) of an image.
        mean, deviation: of the pixels scaled to [0, 1], as the protocol normalises them.
        splits: names of the splits; `train` and `val` are always among them.
    """

    classes: int
    bias_classes: int | None
    shape: tuple[int, int, int]
    mean: float = 0.5
    deviation: float = 0.5
    splits: tuple[str, ...] = ("train", "val", "test")


@dataclass(frozen=True)
class Split:
    """One split: images uint8 (N, C, H, W), target int64 (N,), bias int64 (N,) or None."""

    images: NDArray[np.uint8]
    target: NDArray[np.int64]
    bias: NDArray[np.int64] | None


@dataclass(frozen=True)
class Dataset:
    """A data set in memory."""

    facts: Facts
    splits: Mapping[str, Split]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of every array: two data sets with one fingerprint are the same data."""
        digest = hashlib.sha256()
        for name, split in sorted(self.splits.items()):
            digest.update(name.encode())
            for array in (split.images, split.target, split.bias):
                if array is not None:
                    digest.update(str((array.dtype, array.shape)).encode())
                    digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:16]
