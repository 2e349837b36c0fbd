"""Splits as lists of files, before any image is read: cut, checked, then decoded together."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from study.data import holdout, label_files
from study.data.dataset import Split
from study.data.image_files import Frame, bad_files_message, decode
from study.data.source import Source
from study.errors import UserError

ENDINGS = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm"}


@dataclass(frozen=True)
class Listing:
    """A split before its images are read: a file per sample, the rest as in `Split`."""

    files: Sequence[Path]
    target: NDArray[np.int64]
    bias: NDArray[np.int64] | None = None
    condition: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.files)

    def take(self, members: NDArray[Any]) -> "Listing":
        """These samples, by index or mask."""
        chosen = np.arange(len(self))[members]
        bias = None if self.bias is None else self.bias[chosen]
        condition = None if self.condition is None else self.condition[chosen]
        return Listing([self.files[index] for index in chosen], self.target[chosen], bias, condition)


def cut(listing: Listing, share: float, seed: int, kind: holdout.Kind = "biased") -> tuple[Listing, Listing]:
    """The samples to keep and to hold out, by class and bias class, see `holdout.choose`."""
    kept, held = holdout.choose(holdout.cells(listing), share, kind, seed)
    return listing.take(kept), listing.take(held)


def with_validation(published: Mapping[str, Listing], options: Any) -> dict[str, Listing]:
    """The published splits, or, where the key `val` is not given, those with validation cut from training instead."""
    if options.val == "given":
        return dict(published)
    train, val = cut(published["train"], options.val_share, options.split_seed, options.val)
    return {**published, "train": train, "val": val}


def by_code(listing: Listing, codes: NDArray[np.int64], names: Sequence[str]) -> dict[str, Listing]:
    """Splits by a code per sample: the position of its split in `names`."""
    return {name: listing.take(codes == code) for code, name in enumerate(names)}


def images_in(folder: Path) -> list[Path]:
    """The image files under a folder that are not hidden, by name.

    Raises:
        UserError: there are none.
    """
    images = [path for path in label_files.shown(folder) if path.suffix.lower() in ENDINGS] if folder.is_dir() else []
    if not images:
        raise UserError(f"{folder}: holds no images ({', '.join(sorted(ENDINGS))}). Unpack the archive again")
    return images


def read(listings: Mapping[str, Listing], size: int, frame: Frame) -> dict[str, Split]:
    """The splits with their images, uint8 (N, 3, size, size), on disk.

    Raises:
        UserError: a split is empty, or files are absent or not readable; names them.
    """
    for name, listing in listings.items():
        if not len(listing):
            raise UserError(f"split {name} is empty: no image is left for it. Check the files and the keys of `data`")
    absent = [str(file) for listing in listings.values() for file in listing.files if not os.path.exists(file)]
    if absent:
        raise UserError(bad_files_message("listed but missing", absent))
    return {
        name: Split(decode(listing.files, size, frame), listing.target, listing.bias, listing.condition)
        for name, listing in listings.items()
    }


# What the data sets made from ImageNet share: its folder tree and the usual normalisation.

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet's pixels; the papers' code normalises all photographs with them."""

NOTE = "Of ILSVRC 2012, from image-net.org: a folder per class, named by its WordNet number as n01440764."
TRAIN = Source("imagenet/train", note=NOTE)
VAL = Source("imagenet/val", note=NOTE)


def folders(parent: Path, classes: Mapping[str, int], all_needed: bool = True) -> list[Path]:
    """The folders of these classes in a tree.

    Raises:
        UserError: some are missing; names them.
    """
    absent = [name for name in classes if not (parent / name).is_dir()]
    if absent and (all_needed or len(absent) == len(classes)):
        more = f" and {len(absent) - 5} more" if len(absent) > 5 else ""
        raise UserError(f"{parent}: no folder {', '.join(absent[:5])}{more}, {len(classes)} are needed. {NOTE}")
    return [parent / name for name in classes if name not in absent]


def tree(parent: Path, classes: Mapping[str, int], all_needed: bool = True) -> Listing:
    """Every image of these class folders, by name; `classes` gives the class of each folder."""
    files, target = [], []
    for folder in folders(parent, classes, all_needed):
        images = images_in(folder)
        files += images
        target += [classes[folder.name]] * len(images)
    return Listing(files, np.array(target, np.int64))
