"""cub: 11,788 birds of 200 species with 312 attributes (CUB-200-2011), for the CCL-K paper's weak supervision.

The official folder CUB_200_2011 with its split of 5,994 training and 5,794 test images. (Appendix F.2 of the paper goes
on to 6,871 and 6,918 images, more than there are.) Validation is cut from training. Photographs are cropped to the
square in their middle, as is usual for this data set.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Doc

from study.data import holdout, label_files, listings
from study.data.dataset import Dataset, Facts
from study.data.image_files import Frame, Size
from study.data.imagenet import DEVIATION, MEAN
from study.data.listings import Listing
from study.data.prepared import prepared
from study.data.source import Source
from study.errors import UserError
from study.knobs import Range

CLASSES, ATTRIBUTES = 200, 312

FOLDER = Source("CUB_200_2011", note="The folder of the archive CUB_200_2011.tgz from the CUB-200-2011 page.")

FRAME: Frame = "crop"


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section."""

    condition: Annotated[
        Literal["binary", "continuous"],
        Doc(
            "binary: which attributes were seen in the image; continuous: the share of people who see each "
            "attribute in the image's species, 0 to 1"
        ),
    ] = "binary"
    size: Size = 224
    val_share: Annotated[
        holdout.Share, Doc("share of the training images that is held out for validation, by species")
    ] = 0.1
    split_seed: Annotated[int, Range(low=0), Doc("seed that chooses the validation images")] = 0


def describe(options: Options) -> Facts:
    """200 species, no bias classes, 312 attributes."""
    shape = (3, options.size, options.size)
    return Facts(CLASSES, None, shape, condition=ATTRIBUTES, mean=MEAN, deviation=DEVIATION)


def sources(options: Options) -> tuple[Source, ...]:
    """One folder."""
    return (FOLDER,)


def load(options: Options) -> Dataset:
    """The official splits, validation cut from training."""
    facts = describe(options)
    return prepared("cub", options, facts, [FOLDER.find()], lambda: listings.read(labels(options), options.size, FRAME))


def labels(options: Options) -> dict[str, Listing]:
    """The files of each split with their labels."""
    whole, test = _listings(FOLDER.find(), options.condition)
    train, val = listings.cut(whole, options.val_share, options.split_seed)
    return {"train": train, "val": val, "test": test}


def _listings(folder: Path, condition: str) -> tuple[Listing, Listing]:
    names, classes, training = (
        _column(folder / file, "image") for file in ("images.txt", "image_class_labels.txt", "train_test_split.txt")
    )
    if not list(names) == list(classes) == list(training):
        raise UserError(f"{folder}: its three lists of images name different images. Unpack the archive again")
    label_files.check_files(names.values(), folder / "images.txt", "file")
    path = folder / "image_class_labels.txt"
    target = label_files.codes(classes.values(), path, "class", [str(1 + index) for index in range(CLASSES)])
    split = label_files.codes(training.values(), folder / "train_test_split.txt", "is_training", ("1", "0"))
    attributes = folder / "attributes"
    vectors = _binary(attributes, list(names)) if condition == "binary" else _continuous(attributes)[target]
    everything = Listing([folder / "images" / name for name in names.values()], target, None, vectors)
    return everything.take(split == 0), everything.take(split == 1)


def _column(path: Path, what: str) -> dict[str, str]:
    """A list of two columns: number and value."""
    table = label_files.read(path, sep=" ", header=None, names=[what, "value"])
    return dict(zip(table[what], table["value"], strict=True))


def _binary(folder: Path, images: list[str]) -> NDArray[np.float32]:
    """Attributes seen in each image; rows are `image attribute present certainty time`, some with fields too many."""
    path = folder / "image_attribute_labels.txt"
    if not path.is_file():
        raise UserError(f"{path}: not found")
    places = {image: place for place, image in enumerate(images)}
    seen = np.zeros((len(images), ATTRIBUTES), np.float32)
    rated = np.zeros((len(images), ATTRIBUTES), bool)
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                image, attribute, present = line.split(maxsplit=3)[:3]
                place, column = places[image], int(attribute) - 1
                valid = 0 <= column < ATTRIBUTES and present in ("0", "1")
            except (ValueError, KeyError):
                valid = False
            if not valid:
                raise UserError(f"{path}: line {number}: not an image's number, an attribute from 1 to 312 and 0 or 1")
            seen[place, column], rated[place, column] = int(present), True
    if not rated.all():
        raise UserError(f"{path}: lacks {np.size(rated) - rated.sum()} of {np.size(rated)} rows: cut short?")
    return seen


def _continuous(folder: Path) -> NDArray[np.float32]:
    """Per species the percentage of people, (200, 312), as shares."""
    path = folder / "class_attribute_labels_continuous.txt"
    table = label_files.read(path, sep=" ", header=None)
    if table.shape != (CLASSES, ATTRIBUTES):
        raise UserError(f"{path}: has {table.shape[0]} x {table.shape[1]} numbers, {CLASSES} x {ATTRIBUTES} are needed")
    return label_files.numbers(table, list(table.columns), path) / np.float32(100)
