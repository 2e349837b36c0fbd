"""utkface: about 23,700 faces whose file names say age, gender and ethnicity, drawn as biased as wanted (FSCL paper).

The folder UTKFace of aligned and cropped faces, named age_gender_race_datetime.jpg.chip.jpg. FSCL paper section 4.1 and
Table 9: 10,000 training images in which one sensitive group has `severity` times as many men as women and the other
the opposite; 2,400 validation and 2,400 test images, every (class, sensitive value) equally often. Which images those
were is not published: here a seed draws them. Images are square; they are resized.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from typing_extensions import Doc

from study.data import balance, holdout, listings
from study.data.dataset import Dataset, Facts
from study.data.image_files import Frame, Size
from study.data.listings import Listing
from study.data.prepared import prepared
from study.data.source import Source
from study.errors import UserError
from study.knobs import Range

FOLDER = Source(
    "UTKFace",
    note="The folder of the aligned and cropped faces from the UTKFace page of its authors, parts put together.",
)

Attribute = Literal["age", "gender", "ethnicity"]

NAME = re.compile(r"(\d{1,3})_([01])_([0-4])_\d+ ?(?:\.?jpg)?(?:\.chip)?\.(?:jpg|jpeg|png)", re.IGNORECASE)
"""Also the known names with a space or no dot before the first `jpg`."""

UNNAMED = 0.01
"""Share of the files that may lack a field of their name: three or so are known of 23,708. Those are left out."""

FRAME: Frame = "squash"


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section."""

    target: Annotated[
        Attribute,
        Doc(
            "attribute that is the class: gender (1: male), ethnicity (1: Caucasian) or age (1: below 35), "
            "as in the FSCL code"
        ),
    ] = "gender"
    sensitive: Annotated[
        Attribute, Doc("attribute that is the bias: gender (1: male), ethnicity (1: Caucasian) or age (1: below 35)")
    ] = "ethnicity"
    severity: Annotated[
        int,
        Range(low=1, high=100),
        Doc("the FSCL paper's alpha (2, 3, 4): how many times as many men as women one group has; 1: balanced"),
    ] = 2
    size: Size = 128
    val: holdout.Val = "unbiased"
    split_seed: Annotated[int, Range(low=0), Doc("seed that chooses the images")] = 0
    train_samples: Annotated[int, Range(low=4), Doc("number of images in the training split")] = 10_000
    eval_samples: Annotated[
        int, Range(low=4), Doc("number of images in the validation split, and again in the test split")
    ] = 2_400


def describe(options: Options) -> Facts:
    """Two classes, two sensitive values; normalised with 0.5, as the FSCL code does."""
    if options.target == options.sensitive:
        raise UserError(f"data.sensitive: {options.sensitive!r} given, allowed is another attribute than data.target")
    holdout.refuse_given(options.val, "utkface")
    return Facts(2, 2, (3, options.size, options.size))


def sources(options: Options) -> tuple[Source, ...]:
    """One folder."""
    return (FOLDER,)


def load(options: Options) -> Dataset:
    """Draw the splits by class and sensitive value."""
    facts = describe(options)
    return prepared(
        "utkface", options, facts, [FOLDER.find()], lambda: listings.read(labels(options), options.size, FRAME)
    )


def labels(options: Options) -> dict[str, Listing]:
    """The files of each split with their labels."""
    return balance.splits(_faces(options), options, options.severity, _common(options), "utkface")


def attributes_of(name: str) -> dict[str, int] | None:
    """The three attributes that a file name says; None where a field is missing, so that none can be trusted."""
    match = NAME.fullmatch(name)
    if not match:
        return None
    age, gender, race = (int(field) for field in match.groups())
    return {"age": int(age < 35), "gender": int(gender == 0), "ethnicity": int(race == 0)}


def _common(options: Options) -> frozenset[balance.Cell]:
    """The two cells that are common (Table 9): more men among Caucasians and among those of 35 or more."""
    opposite = "age" in (options.target, options.sensitive)
    return frozenset({(0, 1), (1, 0)} if opposite else {(0, 0), (1, 1)})


def _faces(options: Options) -> Listing:
    files = listings.images_in(FOLDER.find())
    named: list[tuple[Path, dict[str, int]]] = []
    for file in files:
        if attributes := attributes_of(file.name):
            named.append((file, attributes))
    nameless = len(files) - len(named)
    if nameless > max(3, UNNAMED * len(files)):
        raise UserError(
            f"{FOLDER.find()}: {nameless} of {len(files)} file names are not age_gender_race_datetime.jpg.chip.jpg "
            "(race 0 to 4, gender 0 or 1). Is this the folder of aligned and cropped faces?"
        )
    target, bias = (
        np.array([attributes[key] for _, attributes in named], np.int64) for key in (options.target, options.sensitive)
    )
    return Listing([file for file, _ in named], target, bias)
