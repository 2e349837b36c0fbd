"""celeba: 202,599 faces with 40 binary attributes (Liu et al. 2015), of which any is the class and any the bias.

The official files: list_attr_celeba.txt, list_eval_partition.txt and the folder img_align_celeba, in `celeba`. An
image is cropped to the square in its middle, where the aligned face is: faces keep their proportions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Doc

from study.data import holdout, label_files, listings
from study.data.dataset import Dataset, Facts
from study.data.image_files import Frame, Size
from study.data.listings import Listing
from study.data.prepared import prepared
from study.data.source import Source
from study.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

_IN_FILE_ORDER = (
    "5_o_Clock_Shadow Arched_Eyebrows Attractive Bags_Under_Eyes Bald Bangs Big_Lips Big_Nose Black_Hair Blond_Hair "
    "Blurry Brown_Hair Bushy_Eyebrows Chubby Double_Chin Eyeglasses Goatee Gray_Hair Heavy_Makeup High_Cheekbones Male "
    "Mouth_Slightly_Open Mustache Narrow_Eyes No_Beard Oval_Face Pale_Skin Pointy_Nose Receding_Hairline Rosy_Cheeks "
    "Sideburns Smiling Straight_Hair Wavy_Hair Wearing_Earrings Wearing_Hat Wearing_Lipstick Wearing_Necklace "
    "Wearing_Necktie Young"
)
ATTRIBUTES = _IN_FILE_ORDER.split()

NOTE = "From the CelebA page of its authors (Align&Cropped Images, Anno, Eval); its terms forbid passing it on."
LABELS = Source("celeba/list_attr_celeba.txt", note=NOTE)
PARTITION = Source("celeba/list_eval_partition.txt", note=NOTE)
IMAGES = Source("celeba/img_align_celeba", note=NOTE)

FRAME: Frame = "crop"


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section."""

    target: Annotated[
        str,
        Doc(
            "attribute that is the class, such as `Attractive`; several as one label: `Male+Young` is Male + "
            "2 Young, four values (FSCL paper section 4.1 and its code)"
        ),
    ] = "Attractive"
    sensitive: Annotated[
        str,
        Doc(
            "attribute that is the bias, such as `Male`; several as one label: `Male+Young` is Male + 2 "
            "Young, four values"
        ),
    ] = "Male"
    size: Size = 128
    val: holdout.Val = "given"
    val_share: holdout.GivenShare = 0.1
    split_seed: holdout.GivenSeed = 0


def describe(options: Options) -> Facts:
    """Two classes for each attribute; normalised with 0.5, as the FSCL code does."""
    target, sensitive = (_attributes(options, key) for key in ("target", "sensitive"))
    if shared := [name for name in sensitive if name in target]:
        raise UserError(f"data.sensitive: {shared[0]!r} given, allowed is another attribute than data.target")
    return Facts(2 ** len(target), 2 ** len(sensitive), (3, options.size, options.size))


def sources(options: Options) -> tuple[Source, ...]:
    """Two lists and a folder."""
    return LABELS, PARTITION, IMAGES


def load(options: Options) -> Dataset:
    """The official splits, whose validation is as biased as training."""
    places = [source.find() for source in sources(options)]
    facts = describe(options)
    return prepared("celeba", options, facts, places, lambda: listings.read(labels(options), options.size, FRAME))


def _attributes(options: Options, key: str) -> list[str]:
    names = str(getattr(options, key)).split("+")
    for name in names:
        label_files.choose(name, ATTRIBUTES, f"data.{key}")
    if len(set(names)) < len(names):
        raise UserError(f"data.{key}: {'+'.join(names)!r} names an attribute twice")
    return names


def labels(options: Options) -> dict[str, Listing]:
    """The files of each split with their labels."""
    attributes, partition, images = (source.find() for source in sources(options))
    table = label_files.read(attributes, sep=r"\s+", skiprows=1, index_col=0)
    target, bias = (_label(table, _attributes(options, key)) for key in ("target", "sensitive"))
    splits = label_files.read(partition, sep=r"\s+", header=None, names=["file", "split"], index_col="file")
    if not splits.index.equals(table.index):
        counts = f"{len(splits)} and {len(table)} images"
        raise UserError(
            f"{partition}: does not list the images of {attributes} in their order ({counts}). Get both again"
        )
    codes = label_files.codes(splits["split"], partition, "split", ("0", "1", "2"))
    label_files.check_files(table.index, attributes, "file")
    everything = Listing([images / name for name in table.index], target, bias)
    return listings.with_validation(listings.by_code(everything, codes, ("train", "val", "test")), options)


def _label(table: "pd.DataFrame", names: Sequence[str]) -> NDArray[np.int64]:
    path = LABELS.find()
    label_files.need(table.columns, names, path)
    parts = [label_files.codes(table[name], path, name, ("-1", "1")) for name in names]
    return label_files.combined(parts, [2] * len(parts))
