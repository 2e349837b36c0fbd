"""Splits as lists of files, before any image is read: cut, checked, then decoded together."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from study.data import holdout, label_files
from study.data.dataset import Split, SplitLabels
from study.data.image_decoding import SquareMode
from study.data.image_files import (
    IMAGE_SUFFIXES,
    UNREADABLE_IMAGES_TEXT,
    ImageSizeKey,
    bad_files_message,
    decode_images,
    find_files_without_image_header,
)
from study.data.source import Source
from study.errors import UserError
from study.knobs import Range


@dataclass(frozen=True)
class PublishedSplitOptions:
    """Keys of the `data` section of a data set with splits of its own: bffhq, waterbirds."""

    size: ImageSizeKey = 224
    val: holdout.ValKey = "given"
    val_share: holdout.ValShareKey = 0.1
    split_seed: holdout.SplitSeedKey = 0
    folds: holdout.FoldsKey = None


@dataclass(frozen=True)
class DrawnSplitOptions:
    """Keys of the `data` section of a data set whose splits are drawn.

    Attributes:
        train_samples: number of images in the training split.
        eval_samples: images in the validation split, and as many in the test split.
    """

    size: ImageSizeKey = 128
    val: holdout.BiasedOrUnbiasedValKey = "unbiased"
    split_seed: holdout.SplitSeedKey = 0
    train_samples: Annotated[int, Range(low=4)] = 10_000
    eval_samples: Annotated[int, Range(low=4)] = 2_400


@dataclass(frozen=True)
class FileListing:
    """A split before its images are read: a file per sample, the rest as in `Split`."""

    files: Sequence[Path]
    target: NDArray[np.int64]
    bias: NDArray[np.int64] | None = None
    condition: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.files)


def add_val_split(published: Mapping[str, FileListing], options: PublishedSplitOptions) -> dict[str, FileListing]:
    """Return the published splits for `val: given`, else those with a validation split cut from training."""
    if options.val == "given":
        return dict(published)
    return holdout.add_held_out_val(published, options.val_share, options.split_seed, options.val)


def split_listing_by_code(
    listing: FileListing, codes: NDArray[np.int64], names: Sequence[str]
) -> dict[str, FileListing]:
    """Divide a listing by a code per sample: the position of its split in `names`."""
    return {name: holdout.select_samples(listing, codes == code) for code, name in enumerate(names)}


def labels_from_file_names(files: Sequence[Path]) -> SplitLabels:
    """Read classes and bias classes, 0 or 1, from the names of files: `ID_CLASS_BIAS.png`.

    Raises:
        UserError: a name has another form.
    """
    pairs = []
    for file in files:
        _, *numbers = file.stem.rsplit("_", 2)
        if len(numbers) < 2 or not {*numbers} <= {"0", "1"}:
            raise UserError(f"{file}: its name is not ID_CLASS_BIAS.png, each 0 or 1. Remove it")
        pairs.append([int(number) for number in numbers])
    labels = np.array(pairs, np.int64)
    return SplitLabels(labels[:, 0].copy(), labels[:, 1].copy())


def list_images(folder: Path) -> list[Path]:
    """List the image files under a folder that are not hidden, by name.

    Raises:
        UserError: there are none.
    """
    files = label_files.list_visible_files(folder) if folder.is_dir() else []
    images = [path for path in files if path.suffix.lower() in IMAGE_SUFFIXES]
    if not images:
        raise UserError(f"{folder}: holds no images ({', '.join(IMAGE_SUFFIXES)})")
    return images


def missing_images_message(listings: Mapping[str, FileListing]) -> str | None:
    """Write a message that names images which are listed but missing; None: all are there."""
    missing = [str(file) for listing in listings.values() for file in listing.files if not os.path.exists(file)]
    return bad_files_message("listed but missing", missing) if missing else None


def bad_file_messages(listings: Mapping[str, FileListing]) -> list[str]:
    """Write a message each on images that are listed but missing, and on files that are no images by their headers."""
    bad = find_files_without_image_header([file for listing in listings.values() for file in listing.files])
    messages = (missing_images_message(listings), bad_files_message(UNREADABLE_IMAGES_TEXT, bad) if bad else None)
    return [message for message in messages if message]


def decode_images_of_splits(listings: Mapping[str, FileListing], size: int, frame: SquareMode) -> dict[str, Split]:
    """Decode the images of each split, uint8 (N, 3, size, size), on disk.

    Raises:
        UserError: a split is empty, or files are absent or not readable; names them.
    """
    for name, listing in listings.items():
        if not len(listing):
            raise UserError(f"split {name} is empty: no image is left for it. Check the files and the keys of `data`")
    if message := missing_images_message(listings):
        raise UserError(message)
    return {
        name: Split(decode_images(listing.files, size, frame), listing.target, listing.bias, listing.condition)
        for name, listing in listings.items()
    }


IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Mean and deviation of ImageNet's pixels; the papers' code normalises all photographs with them."""

IMAGENET_HINT = "Of ILSVRC 2012, from image-net.org: a folder per class, named by its WordNet number as n01440764."
IMAGENET_TRAIN_SOURCE = Source("imagenet/train", note=IMAGENET_HINT)
IMAGENET_VAL_SOURCE = Source("imagenet/val", note=IMAGENET_HINT)


def find_class_folders(parent: Path, classes: Mapping[str, int], all_needed: bool = True) -> list[Path]:
    """Return the folders of these classes in a tree.

    Raises:
        UserError: some are missing; names them.
    """
    absent = [name for name in classes if not (parent / name).is_dir()]
    if absent and (all_needed or len(absent) == len(classes)):
        more = f" and {len(absent) - 5} more" if len(absent) > 5 else ""
        raise UserError(
            f"{parent}: no folder {', '.join(absent[:5])}{more}, {len(classes)} are needed. {IMAGENET_HINT}"
        )
    return [parent / name for name in classes if name not in absent]


def list_images_of_class_folders(parent: Path, classes: Mapping[str, int], all_needed: bool = True) -> FileListing:
    """List every image of these class folders, by name; `classes` gives the class of each folder."""
    files, target = [], []
    for folder in find_class_folders(parent, classes, all_needed):
        images = list_images(folder)
        files += images
        target += [classes[folder.name]] * len(images)
    return FileListing(files, np.array(target, np.int64))


ClassAndBias = tuple[int, int]
"""A class and a bias class."""


def draw_splits(
    listing: FileListing, counts: Mapping[str, Mapping[ClassAndBias, int]], seed: int, name: str
) -> dict[str, FileListing]:
    """Draw disjoint splits with exactly these counts of each (class, bias class), in the listing's order.

    Args:
        counts: per split, how many of each cell.
        name: of the data set, for the message.

    Raises:
        UserError: a cell has fewer images than the splits together need.
    """
    assert listing.bias is not None
    generator = np.random.default_rng(seed)
    members: dict[str, list[NDArray[np.int64]]] = {split: [] for split in counts}
    for cell in sorted({cell for of_split in counts.values() for cell in of_split}):
        indices = generator.permutation(np.flatnonzero((listing.target == cell[0]) & (listing.bias == cell[1])))
        needed = {split: of_split.get(cell, 0) for split, of_split in counts.items()}
        if len(indices) < sum(needed.values()):
            counts_text = ", ".join(f"{count} for {split}" for split, count in needed.items())
            raise UserError(
                f"{name}: {len(indices)} images of class {cell[0]} and bias class {cell[1]}, {sum(needed.values())} "
                f"are needed ({counts_text}). Get the missing files, or lower data.train_samples, data.eval_samples"
            )
        for split, part in zip(counts, np.split(indices, np.cumsum(list(needed.values()))), strict=False):
            members[split].append(part)
    return {split: holdout.select_samples(listing, np.sort(np.concatenate(parts))) for split, parts in members.items()}


def draw_biased_splits(
    listing: FileListing, options: DrawnSplitOptions, ratio: float, common: frozenset[ClassAndBias], name: str
) -> dict[str, FileListing]:
    """Draw biased training, balanced test, and validation like test or, with `val: biased`, like training.

    A biased validation split is drawn from the samples that training and test leave; those two are the same either way.

    Args:
        ratio, common: of training, see `biased_cell_counts`.
        name: of the data set, for messages.
    """
    even = biased_cell_counts(options.eval_samples, 1, frozenset())
    train = biased_cell_counts(options.train_samples, ratio, common)
    drawn = draw_splits(listing, {"train": train, "val": even, "test": even}, options.split_seed, name)
    if options.val == "unbiased":
        return drawn
    taken = {file for split in ("train", "test") for file in drawn[split].files}
    left = holdout.select_samples(listing, np.array([file not in taken for file in listing.files]))
    return {
        **drawn,
        **draw_splits(left, {"val": biased_cell_counts(options.eval_samples, ratio, common)}, options.split_seed, name),
    }


def biased_cell_counts(samples: int, ratio: float, common: frozenset[ClassAndBias]) -> dict[ClassAndBias, int]:
    """Count the cells of a two by two split: in each bias class the common cell is `ratio` times the other.

    The common cell is rounded up, as in the FSCL paper: 3,334 and 1,666 of 5,000 for a ratio of 2.
    """
    half = samples // 2
    many = int(np.ceil(half * ratio / (ratio + 1) - 1e-9))
    cells = [(target, bias) for target in (0, 1) for bias in (0, 1)]
    return {cell: many if cell in common else half - many for cell in cells}
