"""bffhq: young and old faces of which most young ones are women, most old ones men (bFFHQ of Lee et al. 2021, DisEnt).

The published folder `bffhq`: training images in 0.5pct/align/CLASS and 0.5pct/conflict/CLASS (or train/align,
train/conflict, as it is often repacked), validation in 0.5pct/valid (or valid), test in test; the file names are
ID_TARGET_BIAS.png. The layout is taken from public loaders of the data set, the official archive was not at hand.
Images are square; they are resized.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from study.data import holdout, listings
from study.data.dataset import Dataset, Facts
from study.data.image_files import Frame, Size
from study.data.imagenet import DEVIATION, MEAN
from study.data.listings import Listing
from study.data.prepared import prepared
from study.data.source import Source
from study.errors import UserError

FOLDER = Source("bffhq", note="The folder bffhq of the DisEnt authors' data (kakaoenterprise/Learning-Debiased-...).")

PLACES = {
    "train": (("0.5pct/align", "0.5pct/conflict"), ("train/align", "train/conflict")),
    "val": (("0.5pct/valid",), ("valid",)),
    "test": (("test",),),
}
"""Where each split may lie: the first alternative that is there is read."""

FRAME: Frame = "squash"


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section."""

    size: Size = 224
    val: holdout.Val = "given"
    val_share: holdout.GivenShare = 0.1
    split_seed: holdout.GivenSeed = 0


def describe(options: Options) -> Facts:
    """Class: age; bias: gender. A sample is aligned where the two labels are equal."""
    return Facts(2, 2, (3, options.size, options.size), mean=MEAN, deviation=DEVIATION)


def sources(options: Options) -> tuple[Source, ...]:
    """One folder."""
    return (FOLDER,)


def load(options: Options) -> Dataset:
    """The published splits."""
    facts = describe(options)
    return prepared(
        "bffhq", options, facts, [FOLDER.find()], lambda: listings.read(labels(options), options.size, FRAME)
    )


def labels(options: Options) -> dict[str, Listing]:
    """The files of each split with their labels."""
    return listings.with_validation({name: _listing(FOLDER.find(), name) for name in PLACES}, options)


def _listing(parent: Path, split: str) -> Listing:
    for folders in PLACES[split]:
        if all((parent / folder).is_dir() for folder in folders):
            files = [file for folder in folders for file in listings.images_in(parent / folder)]
            pairs = np.array([_pair(file) for file in files], np.int64)
            return Listing(files, pairs[:, 0].copy(), pairs[:, 1].copy())
    places = " or ".join(", ".join(folders) for folders in PLACES[split])
    raise UserError(f"{parent}: no images for split {split}: needs the folders {places}. Unpack the archive again")


def _pair(file: Path) -> tuple[int, int]:
    parts = file.stem.split("_")
    if len(parts) < 3 or not {parts[-2], parts[-1]} <= {"0", "1"}:
        raise UserError(f"{file}: its name is not ID_TARGET_BIAS.png with labels 0 or 1. Remove it")
    return int(parts[-2]), int(parts[-1])
