"""compas: whether a defendant is arrested again within two years; sensitive attribute: race.

ProPublica's table identifies people. Only the columns below are ever read from it: no name, date of birth or case.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from typing_extensions import Doc

from study.data import label_files, tables
from study.data.cache import cached
from study.data.dataset import Dataset, Facts, Raw, Split
from study.data.source import Source

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = ("age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count")
RACES = {
    "two": ("African-American", "Caucasian"),
    "all": ("African-American", "Asian", "Caucasian", "Hispanic", "Native American", "Other"),
}
CHARGES, SEXES, OUTCOMES = ("F", "M"), ("Female", "Male"), ("0", "1")
FILTER = ("days_b_screening_arrest", "is_recid", "c_charge_degree", "score_text")
COLUMNS = (*dict.fromkeys([*NUMBERS, "sex", "race", *FILTER, "two_year_recid"]),)

SOURCES = (
    Source(
        "compas/compas-scores-two-years.csv",
        "https://raw.githubusercontent.com/propublica/compas-analysis/bafff5da3f2e45eca6c2d5055faad269defd135a/"
        "compas-scores-two-years.csv",
        note="From ProPublica's repository propublica/compas-analysis.",
    ),
)


@dataclass(frozen=True)
class Options(tables.Options):
    """Keys of the `data` section."""

    filtered: Annotated[bool, Doc("keep only the 6,172 of 7,214 rows that ProPublica's analysis keeps")] = True
    races: Annotated[
        Literal["two", "all"], Doc("`two`: African-American and Caucasian defendants; `all`: all six values")
    ] = "two"


def describe(options: Options) -> Facts:
    """Return the facts: two classes, a bias class per race, a row of one-hot and standardised numbers."""
    width = len(NUMBERS) + sum(len(values) for values in _categories(options).values())
    return Facts(classes=2, bias_classes=len(RACES[options.races]), shape=(width,), title="COMPAS")


def load(options: Options) -> Dataset:
    """Choose the rows, encode, split."""
    return cached("compas", options, describe(options), lambda: labels(options), SOURCES)


def labels(options: Options) -> dict[str, Split]:
    """Split the whole table, which is read in less than a second."""
    return tables.split(_rows(options), options)


def raw(options: Options) -> Raw:
    """Split the rows before the numbers are standardised."""
    return tables.raw(_rows(options), options)


def _categories(options: Options) -> dict[str, tuple[str, ...]]:
    races = {"race": RACES[options.races]} if options.sensitive_input else {}
    return {"sex": SEXES, "c_charge_degree": CHARGES, **races}


def _rows(options: Options) -> tables.Rows:
    path = SOURCES[0].find()
    frame = tables.read(path, COLUMNS, empty=FILTER)
    if options.filtered:
        frame = frame.loc[_kept(frame)]
    if options.races == "two":
        frame = frame.loc[frame["race"].isin(RACES["two"])]
    return tables.Rows(
        label_files.numbers(frame, NUMBERS, path).astype(np.float64),
        tables.one_hot(frame, _categories(options), path),
        label_files.codes(frame["two_year_recid"], path, "two_year_recid", OUTCOMES),
        label_files.codes(frame["race"], path, "race", RACES[options.races]),
    )


def _kept(frame: "pd.DataFrame") -> "pd.Series[bool]":
    """Select the rows of ProPublica's analysis: arrest near the screening, a known outcome, charge and score."""
    import pandas as pd

    days = pd.to_numeric(frame["days_b_screening_arrest"], errors="coerce")
    known = (frame["is_recid"] != "-1") & (frame["c_charge_degree"] != "O") & (frame["score_text"] != "N/A")
    return days.between(-30, 30) & known
