"""ut_zappos: 50,025 shoes of 21 kinds with 126 binary attributes (UT-Zap50K), CCL-K paper section 3.2.

The official folders ut-zap50k-images (or ut-zap50k-images-square) and ut-zap50k-data. As in appendix F.1: the 21
subcategories are the classes, the attributes the condition, 70% of the images training and 30% test, drawn here by a
seed (theirs is not given). Validation is cut from training. Shoes are wider than high: images are squashed, so that no
toe or heel is cut off.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from typing_extensions import Doc

from study.data import holdout, label_files, listings
from study.data.dataset import Dataset, Facts
from study.data.image_files import Frame, Size
from study.data.listings import Listing
from study.data.prepared import prepared
from study.data.source import Source
from study.errors import UserError
from study.knobs import Range

CLASSES = (
    *("Ankle", "Athletic", "Boat Shoes", "Boot", "Clogs and Mules", "Crib Shoes", "Firstwalker", "Flat", "Flats"),
    *("Heel", "Heels", "Knee High", "Loafers", "Mid-Calf", "Over the Knee", "Oxfords", "Prewalker"),
    *("Prewalker Boots", "Slipper Flats", "Slipper Heels", "Sneakers and Athletic Shoes"),
)
ATTRIBUTES = 126

TEST_SHARE = 0.3

NOTE = "From the UT Zappos50K page of its authors."
DATA = Source("ut-zap50k-data", note=NOTE)
IMAGES = (Source("ut-zap50k-images", note=NOTE), Source("ut-zap50k-images-square", note=NOTE))

FRAME: Frame = "squash"


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section."""

    square: Annotated[bool, Doc("read the images of the folder ut-zap50k-images-square")] = False
    size: Size = 32
    val_share: Annotated[holdout.Share, Doc("share of the training images that is held out for validation")] = 0.1
    split_seed: Annotated[int, Range(low=0), Doc("seed that chooses test and validation images, by class")] = 0


def describe(options: Options) -> Facts:
    """21 subcategories, no bias classes, 126 attributes."""
    return Facts(len(CLASSES), None, (3, options.size, options.size), condition=ATTRIBUTES)


def sources(options: Options) -> tuple[Source, ...]:
    """Two folders."""
    return DATA, IMAGES[options.square]


def load(options: Options) -> Dataset:
    """Draw the test split, cut validation from the rest."""
    facts, places = describe(options), [source.find() for source in sources(options)]
    return prepared("ut_zappos", options, facts, places, lambda: listings.read(labels(options), options.size, FRAME))


def labels(options: Options) -> dict[str, Listing]:
    """The files of each split with their labels."""
    rest, test = listings.cut(_shoes(*(source.find() for source in sources(options))), TEST_SHARE, options.split_seed)
    train, val = listings.cut(rest, options.val_share, options.split_seed)
    return {"train": train, "val": val, "test": test}


def _shoes(data: Path, images: Path) -> Listing:
    """Every shoe of both tables, with its image: `100627-72` is the file 100627.72.jpg."""
    kinds, attributes = data / "meta-data.csv", data / "meta-data-bin.csv"
    table = label_files.read(kinds, ("CID", "SubCategory"))
    binary = label_files.read(attributes, ("CID",))
    columns = [str(name) for name in binary if not str(name).startswith(("CID", "Category", "SubCategory"))]
    if len(columns) != ATTRIBUTES:
        raise UserError(f"{attributes}: has {len(columns)} attributes, {ATTRIBUTES} are needed. Get it again")
    if list(binary["CID"]) != list(table["CID"]):
        raise UserError(f"{attributes}: its CIDs are not those of {kinds.name} in their order. Get both again")
    files = {file.stem.replace(".", "-"): file for file in listings.images_in(images)}
    absent = [cid for cid in table["CID"] if cid not in files]
    if absent:
        raise UserError(f"{images}: no image of {len(absent)} shoes, as {absent[0]}. Unpack the archive again")
    target = label_files.codes(table["SubCategory"], kinds, "SubCategory", CLASSES)
    vectors = label_files.numbers(binary, columns, attributes)
    if not np.isin(vectors, (0.0, 1.0)).all():
        raise UserError(f"{attributes}: its attributes are not 0 or 1 everywhere. Get it again")
    return Listing([files[cid] for cid in table["CID"]], target, None, vectors)
