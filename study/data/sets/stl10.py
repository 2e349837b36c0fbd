"""stl10: 13,000 photographs of ten classes, 96 x 96, and 100,000 unlabelled ones for self-supervised methods."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from study.data import cifar, holdout
from study.data.cache import allocate_array_on_disk
from study.data.dataset import Facts, Split, SplitLabels
from study.data.source import Source
from study.errors import UserError

STL10_IMAGE_SHAPE = (3, 96, 96)

STL10_SOURCE = Source(
    "stl10_binary",
    "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz",
    md5="91f7769df0f17e558f3565bffb0c7dfb",
    archive="stl10_binary.tar.gz",
)
SOURCES = (STL10_SOURCE,)


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section.

    Attributes:
        unlabelled: add the unlabelled images to the training split, with target -1.
    """

    unlabelled: bool = False
    val_share: holdout.ValShareKey = 0.1
    split_seed: holdout.SplitSeedKey = 0


def describe(options: Options) -> Facts:
    """Return the facts: ten classes, no bias labels; normalised as the DCL code does, with CIFAR-10's numbers."""
    return cifar.cifar_normalised_facts("STL-10", shape=STL10_IMAGE_SHAPE, unlabelled=options.unlabelled)


def load_labels(options: Options) -> dict[str, SplitLabels]:
    """Return the classes of each split, -1 for the unlabelled images of training; no images are read."""
    folder = STL10_SOURCE.find()
    train, test = (
        SplitLabels(_read_classes(folder / f"{name}_y.bin", folder / f"{name}_X.bin")) for name in ("train", "test")
    )
    splits = holdout.add_held_out_val({"train": train, "test": test}, options.val_share, options.split_seed)
    if options.unlabelled:
        more = np.full(len(_memory_map_images(folder / "unlabeled_X.bin")), -1, np.int64)
        splits["train"] = SplitLabels(np.concatenate([splits["train"].target, more]))
    return splits


def build(options: Options) -> dict[str, Split]:
    """Read the files, cut the validation split off, then add the unlabelled images."""
    folder = STL10_SOURCE.find()
    whole = Split(
        np.array(_memory_map_images(folder / "train_X.bin")),
        _read_classes(folder / "train_y.bin", folder / "train_X.bin"),
    )
    train, val = holdout.hold_out(whole, options.val_share, options.split_seed)
    if options.unlabelled:
        train = _append_unlabelled(train, _memory_map_images(folder / "unlabeled_X.bin"))
    test = Split(
        np.array(_memory_map_images(folder / "test_X.bin")), _read_classes(folder / "test_y.bin", folder / "test_X.bin")
    )
    return {"train": train, "val": val, "test": test}


def _append_unlabelled(train: Split, more: NDArray[np.uint8]) -> Split:
    """Append images without a class to a split; on disk, since memory might not hold them."""
    inputs = allocate_array_on_disk((len(train) + len(more), *STL10_IMAGE_SHAPE))
    inputs[: len(train)] = train.inputs
    inputs[len(train) :] = more
    return Split(inputs, np.concatenate([train.target, np.full(len(more), -1, np.int64)]))


def _memory_map_images(path: Path) -> NDArray[np.uint8]:
    """Return a file's images, (N, 3, 96, 96), memory-mapped: in the file each channel lies column by column."""
    size, image = _file_size_bytes(path), int(np.prod(STL10_IMAGE_SHAPE))
    if size == 0 or size % image:
        raise UserError(f"{path}: {size} bytes are not a whole number of images of {image}: cut short. Get it again")
    return np.memmap(path, np.uint8, "r").reshape(-1, *STL10_IMAGE_SHAPE).transpose(0, 1, 3, 2)


def _read_classes(path: Path, images: Path) -> NDArray[np.int64]:
    """Read classes 0 to 9 of a file that counts from 1."""
    count = _file_size_bytes(images) // int(np.prod(STL10_IMAGE_SHAPE))
    if _file_size_bytes(path) != count:
        raise UserError(
            f"{path}: has {_file_size_bytes(path)} labels for the {count} images of {images.name}. Get both again"
        )
    labels = np.fromfile(path, np.uint8).astype(np.int64)
    if not 1 <= labels.min() <= labels.max() <= 10:
        raise UserError(f"{path}: labels from {labels.min()} to {labels.max()}, allowed is 1 to 10")
    return labels - 1


def _file_size_bytes(path: Path) -> int:
    if not path.exists():
        raise UserError(f"{path}: not found; {path.parent} is not complete. Remove it and unpack the archive again")
    return path.stat().st_size
