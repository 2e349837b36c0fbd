"""waterbirds: land and water birds on land or water (Sagawa et al. 2020); the background betrays the class.

The official folder waterbird_complete95_forest2water2 with its metadata.csv, official splits. Images are squashed to a
square, as in the authors' code: no bird and no background is cut off.
"""

from dataclasses import dataclass

from study.data import holdout, label_files, listings
from study.data.dataset import Dataset, Facts
from study.data.image_files import Frame, Size
from study.data.imagenet import DEVIATION, MEAN
from study.data.listings import Listing
from study.data.prepared import prepared
from study.data.source import Source

FOLDER = Source(
    "waterbird_complete95_forest2water2",
    note="The folder of the authors' archive waterbird_complete95_forest2water2.tar.gz (group_DRO repository).",
)

COLUMNS = ("img_filename", "y", "split", "place")

FRAME: Frame = "squash"


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section."""

    size: Size = 224
    val: holdout.Val = "given"
    val_share: holdout.GivenShare = 0.1
    split_seed: holdout.GivenSeed = 0


def describe(options: Options) -> Facts:
    """Landbird and waterbird; land and water."""
    return Facts(2, 2, (3, options.size, options.size), mean=MEAN, deviation=DEVIATION)


def sources(options: Options) -> tuple[Source, ...]:
    """One folder."""
    return (FOLDER,)


def load(options: Options) -> Dataset:
    """The official splits; their validation and test have every background as often for each class."""
    facts = describe(options)
    return prepared(
        "waterbirds", options, facts, [FOLDER.find()], lambda: listings.read(labels(options), options.size, FRAME)
    )


def labels(options: Options) -> dict[str, Listing]:
    """The files of each split with their labels."""
    folder = FOLDER.find()
    path = folder / "metadata.csv"
    table = label_files.read(path, COLUMNS)
    target, bias = (label_files.codes(table[column], path, column, ("0", "1")) for column in ("y", "place"))
    codes = label_files.codes(table["split"], path, "split", ("0", "1", "2"))
    label_files.check_files(table["img_filename"], path, "img_filename")
    everything = Listing([folder / name for name in table["img_filename"]], target, bias)
    return listings.with_validation(listings.by_code(everything, codes, ("train", "val", "test")), options)
