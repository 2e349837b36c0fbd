"""fairface: 97,698 faces with age band, gender and race (Kärkkäinen and Joo 2021), of which one is class, one bias.

The official lists fairface_label_train.csv and fairface_label_val.csv and the folders train and val, in `fairface`. The
official validation images are the test split; validation is cut from training. Images are square; they are resized.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from typing_extensions import Doc

from study.data import holdout, label_files, listings
from study.data.dataset import Dataset, Facts
from study.data.image_files import Frame, Size
from study.data.listings import Listing
from study.data.prepared import prepared
from study.data.source import Source
from study.errors import UserError
from study.knobs import Range

VALUES = {
    "age": ("0-2", "3-9", "10-19", "20-29", "30-39", "40-49", "50-59", "60-69", "more than 70"),
    "gender": ("Female", "Male"),
    "race": ("White", "Black", "East Asian", "Southeast Asian", "Indian", "Middle Eastern", "Latino_Hispanic"),
}
"""Values of each attribute, in the order of their codes."""

Attribute = Literal["age", "gender", "race"]

NOTE = "From the FairFace repository (joojs/fairface): images and labels."
LABELS = {split: Source(f"fairface/fairface_label_{split}.csv", note=NOTE) for split in ("train", "val")}
IMAGES = tuple(Source(f"fairface/{split}", note=NOTE) for split in LABELS)

FRAME: Frame = "squash"


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section."""

    target: Annotated[Attribute, Doc("attribute that is the class")] = "gender"
    sensitive: Annotated[Attribute, Doc("attribute that is the bias")] = "race"
    size: Size = 128
    val: holdout.Val = "biased"
    val_share: Annotated[holdout.Share, Doc("share of the training images that is held out for validation")] = 0.1
    split_seed: Annotated[int, Range(low=0), Doc("seed that chooses the validation images")] = 0


def describe(options: Options) -> Facts:
    """As many classes as the attributes have values."""
    holdout.refuse_given(options.val, "fairface")
    if options.target == options.sensitive:
        raise UserError(f"data.sensitive: {options.sensitive!r} given, allowed is another attribute than data.target")
    classes, bias_classes = (len(VALUES[name]) for name in (options.target, options.sensitive))
    return Facts(classes, bias_classes, (3, options.size, options.size))


def sources(options: Options) -> tuple[Source, ...]:
    """Two lists and two folders."""
    return *LABELS.values(), *IMAGES


def load(options: Options) -> Dataset:
    """Read the lists, cut the validation split."""
    facts, places = describe(options), [source.find() for source in sources(options)]
    return prepared("fairface", options, facts, places, lambda: listings.read(labels(options), options.size, FRAME))


def labels(options: Options) -> dict[str, Listing]:
    """The files of each split with their labels."""
    train, val = listings.cut(_listing(options, "train"), options.val_share, options.split_seed, options.val)
    return {"train": train, "val": val, "test": _listing(options, "val")}


def _listing(options: Options, split: str) -> Listing:
    path = LABELS[split].find()
    table = label_files.read(path, ("file", *VALUES))
    target, bias = (
        label_files.codes(table[name], path, name, VALUES[name]) for name in (options.target, options.sensitive)
    )
    label_files.check_files(table["file"], path, "file")
    return Listing([path.parent / name for name in table["file"]], target, bias)
