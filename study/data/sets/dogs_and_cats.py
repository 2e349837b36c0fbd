"""dogs_and_cats: cats most of which are dark, dogs most of which are bright (FSCL paper section 4.5, appendix H.2).

The training images of Kaggle's Dogs vs. Cats (`train/cat.0.jpg`) and the lists of bright and dark animals of the LNL
paper's repository, list_bright.txt and list_dark.txt; images on neither list are not used. Training has 3,425 dark cats
and as many bright dogs, 685 bright cats and as many dark dogs; the test split has 600 of each. The paper says nothing
of a validation split: here it is as large and as balanced as the test split. Which images those were is not
published: here a seed draws them. Photographs are cropped to the square in their middle: animals keep their shape.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from typing_extensions import Doc

from study.data import balance, holdout, label_files, listings
from study.data.dataset import Dataset, Facts
from study.data.image_files import Frame, Size
from study.data.listings import Listing
from study.data.prepared import prepared
from study.data.source import Source
from study.errors import UserError
from study.knobs import Range

RATIO = 5
"""How many times as many dark cats as bright ones, bright dogs as dark ones."""

SPECIES, COLOURS = ("cat", "dog"), ("bright", "dark")

IMAGES = Source("dogs_and_cats/train", note="The folder `train` of Kaggle's competition Dogs vs. Cats.")
LISTS = tuple(
    Source(f"dogs_and_cats/list_{colour}.txt", note="From the repository learning-not-to-learn of the LNL paper.")
    for colour in COLOURS
)

FRAME: Frame = "crop"


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section."""

    size: Size = 128
    val: holdout.Val = "unbiased"
    split_seed: Annotated[int, Range(low=0), Doc("seed that chooses the images")] = 0
    train_samples: Annotated[int, Range(low=12), Doc("number of images in the training split")] = 8_220
    eval_samples: Annotated[
        int, Range(low=4), Doc("number of images in the validation split, and again in the test split")
    ] = 2_400


def describe(options: Options) -> Facts:
    """Class: cat, dog; bias: bright, dark."""
    holdout.refuse_given(options.val, "dogs_and_cats")
    return Facts(2, 2, (3, options.size, options.size))


def sources(options: Options) -> tuple[Source, ...]:
    """A folder and two lists."""
    return IMAGES, *LISTS


def load(options: Options) -> Dataset:
    """Draw the splits by species and colour."""
    facts, places = describe(options), [source.find() for source in sources(options)]
    return prepared(
        "dogs_and_cats", options, facts, places, lambda: listings.read(labels(options), options.size, FRAME)
    )


def labels(options: Options) -> dict[str, Listing]:
    """The files of each split with their labels."""
    animals = _animals(*(source.find() for source in sources(options)))
    return balance.splits(animals, options, RATIO, frozenset({(0, 1), (1, 0)}), "dogs_and_cats")


def _animals(images: Path, *lists: Path) -> Listing:
    names: dict[str, tuple[int, int]] = {}
    for colour, path in enumerate(lists):
        for line, name in enumerate(path.read_text(encoding="utf-8").split(), 1):
            species = name.partition(".")[0]
            if species not in SPECIES:
                raise UserError(f"{path}: entry {line}: {name!r} begins neither with 'cat.' nor with 'dog.'")
            if label_files.leads_out(name):
                raise UserError(f"{path}: entry {line}: {name!r} given, {label_files.INSIDE}")
            if names.setdefault(name, (SPECIES.index(species), colour))[1] != colour:
                raise UserError(f"{path}: entry {line}: {name!r} is on the other list, too")
    labels = np.array(list(names.values()), np.int64).reshape(-1, 2)
    return Listing([images / name for name in names], labels[:, 0].copy(), labels[:, 1].copy())
