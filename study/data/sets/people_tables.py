"""Tables about people: one-hot categories, numbers standardised over the training rows, seeded splits.

Each is a row of `SETS`: its keys, its files, its columns, and a function that reads its rows, whose name and docstring
are those of the data set.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from study.data import holdout, label_files
from study.data.dataset import ColumnKind, Facts, RawTable, Split, SplitLabels
from study.data.source import Source
from study.errors import UserError
from study.knobs import Range

if TYPE_CHECKING:  # imported where it is used: every process that knows the data sets' names would wait for it
    import pandas as pd

TEST_SHARE = 0.15
"""Share of the test split, as in the WCL paper (section 6.2)."""


@dataclass(frozen=True)
class TableOptions:
    """Keys of the `data` section of each table; the shares are those of the same paper.

    Attributes:
        val_share: share of all rows that is the validation split.
    """

    split_seed: holdout.SplitSeedKey = 0
    folds: holdout.FoldsKey = None
    val: holdout.BiasedOrUnbiasedValKey = "biased"
    val_share: Annotated[float, Range(above=0.0, high=0.5)] = 0.15


CategoryValues = Mapping[str, Sequence[str]]
"""Column names and the values that each may have, in the order of the one-hot columns."""


@dataclass(frozen=True)
class UnsplitTable:
    """A table before it is split: `numbers` (N, K), `one_hot` (N, F - K), classes `target` and `bias` (N,)."""

    numbers: NDArray[np.float64]
    one_hot: NDArray[np.float64]
    target: NDArray[np.int64]
    bias: NDArray[np.int64]


@dataclass(frozen=True)
class PeopleTable:
    """A table about people, of the form that `study.data` asks of a module.

    Attributes:
        read_unsplit_table: reads its rows.
        Options: its keys.
        SOURCES: its files; all are part of its fingerprint.
        title: its name in figures.
        number_columns: its columns of numbers.
        category_values: its other columns with their values.
    """

    read_unsplit_table: Callable[[], UnsplitTable]
    SOURCES: tuple[Source, ...]
    title: str
    number_columns: Sequence[str]
    category_values: CategoryValues
    Options: type[TableOptions] = TableOptions

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.read_unsplit_table.__doc__)

    @property
    def name(self) -> str:
        """Name of the data set in a study file."""
        return self.read_unsplit_table.__name__

    def describe(self, options: TableOptions) -> Facts:
        """Return the facts: two classes, and a row of one-hot and standardised numbers."""
        width = len(self.number_columns) + sum(map(len, self.category_values.values()))
        return Facts(classes=2, bias_classes=2, shape=(width,), title=self.title)

    def build(self, options: TableOptions) -> dict[str, Split]:
        """Read the rows, encode, split."""
        return split_standardised(self.read_unsplit_table(), options)

    load_labels = build  # the whole table is read in less than a second

    def load_raw_table(self, options: TableOptions) -> RawTable:
        """Split the rows before the numbers are standardised."""
        return split_without_scaling(self.read_unsplit_table(), options)


def read_columns(path: Path, columns: Sequence[str], empty: Collection[str] = (), **reading: Any) -> "pd.DataFrame":
    """Read these columns of a file, as text without surrounding spaces.

    Args:
        empty: columns in which a row may have no value.
        reading: further arguments of `pandas.read_csv`.

    Raises:
        UserError: the file is not a table, lacks a column, or lacks a value, as in a file that is cut short.
    """
    table = label_files.read_table_as_text(path, usecols=list(columns), **reading)[list(columns)]
    table = table.apply(lambda column: column.str.strip())
    for column in [name for name in columns if name not in empty]:
        lacking = table[column] == ""
        if lacking.any():
            raise UserError(f"{path}: row {int(lacking.argmax()) + 1} has no {column}; cut short? Get it again")
    return table


def encode_one_hot(frame: "pd.DataFrame", categories: CategoryValues, path: Path) -> NDArray[np.float64]:
    """Encode each column one-hot, all side by side."""
    parts = [
        np.eye(len(values))[label_files.encode_classes(frame[column], path, column, values)]
        for column, values in categories.items()
    ]
    return np.concatenate(parts, axis=1)


def split_standardised(rows: UnsplitTable, options: TableOptions) -> dict[str, Split]:
    """Split the rows at random; the numbers get mean 0 and deviation 1 over the training rows.

    Validation is drawn at random, too, or, with `val: unbiased`, in equal counts of each (class, bias class) from the
    same rows. Test has the same rows either way.

    Raises:
        UserError: too few rows.
    """
    members = _draw_split_indices(rows, options)
    train_numbers = rows.numbers[members["train"]]
    deviation = train_numbers.std(axis=0)
    scaled = (rows.numbers - train_numbers.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    inputs = np.concatenate([scaled, rows.one_hot], axis=1).astype(np.float32)
    whole = Split(inputs, rows.target, rows.bias)
    return {name: holdout.select_samples(whole, chosen) for name, chosen in members.items()}


def split_without_scaling(rows: UnsplitTable, options: TableOptions) -> RawTable:
    """Split the rows as `split_standardised` does, without standardising the numbers."""
    whole = Split(np.concatenate([rows.numbers, rows.one_hot], axis=1), rows.target, rows.bias)
    members = _draw_split_indices(rows, options)
    kinds: tuple[ColumnKind, ...] = ("number",) * rows.numbers.shape[1] + ("plain",) * rows.one_hot.shape[1]
    return RawTable({name: holdout.select_samples(whole, chosen) for name, chosen in members.items()}, kinds)


def _draw_split_indices(rows: UnsplitTable, options: TableOptions) -> dict[str, NDArray[np.int64]]:
    order = np.random.default_rng(options.split_seed).permutation(len(rows.target))
    first, second = (round(len(order) * share) for share in (1 - TEST_SHARE - options.val_share, 1 - TEST_SHARE))
    rest, test = order[:second], order[second:]
    train, val = rest[:first], rest[first:]
    if options.val == "unbiased":
        cells = holdout.cell_of_sample(SplitLabels(rows.target[rest], rows.bias[rest]))
        kept, held = holdout.balanced_split(cells, options.val_share / (1 - TEST_SHARE), options.split_seed)
        train, val = rest[kept], rest[held]
    members = {"train": train, "val": val, "test": test}
    if not all(len(chosen) for chosen in members.values()):
        raise UserError(f"{len(order)} rows are too few for splits of 70, 15 and 15%. Is the file complete?")
    return members


_ADULT_COLUMN_NAMES = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
    "capital-loss hours-per-week native-country income"
)
ADULT_COLUMNS = _ADULT_COLUMN_NAMES.split()
ADULT_NUMBER_COLUMNS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
ADULT_GENDERS = ("Female", "Male")
ADULT_INCOMES = ("<=50K", ">50K")

ADULT_CATEGORY_VALUES = {
    column: values.split()
    for column, values in {
        "workclass": "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked ?",
        "education": "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters "
        "1st-4th 10th Doctorate 5th-6th Preschool",
        "marital-status": "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent "
        "Married-AF-spouse",
        "occupation": "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners "
        "Machine-op-inspct Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv "
        "Armed-Forces ?",
        "relationship": "Wife Own-child Husband Not-in-family Other-relative Unmarried",
        "race": "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
        "sex": "Female Male",
        "native-country": "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India "
        "Japan Greece South China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland "
        "France Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand "
        "Yugoslavia El-Salvador Trinadad&Tobago Peru Hong Holand-Netherlands ?",
    }.items()
}
"""Values as adult.names lists them; `?`, unknown, is a value of its own."""

UCI_ADULT_URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult"
ADULT_SOURCES = (
    Source(
        "adult/adult.data",
        f"{UCI_ADULT_URL}/adult.data",
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        "From the UCI Machine Learning Repository, data set Adult.",
    ),
    Source(
        "adult/adult.test",
        f"{UCI_ADULT_URL}/adult.test",
        "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        "From the UCI Machine Learning Repository, data set Adult.",
    ),
)


def adult() -> UnsplitTable:
    """adult: whether a person of the 1994 US census earns more than 50K a year; sensitive attribute: gender."""
    parts = [_read_encoded_adult_file(source.find()) for source in ADULT_SOURCES]
    fields = ("numbers", "one_hot", "target", "bias")
    return UnsplitTable(*(np.concatenate([getattr(part, field) for part in parts]) for field in fields))


def _read_encoded_adult_file(path: Path) -> UnsplitTable:
    # the test file begins with a line that is not a row, and its labels end in a full stop
    frame = read_columns(path, ADULT_COLUMNS, header=None, names=ADULT_COLUMNS, comment="|", skipinitialspace=True)
    frame["income"] = frame["income"].str.rstrip(".")
    return UnsplitTable(
        label_files.columns_to_numbers(frame, ADULT_NUMBER_COLUMNS, path).astype(np.float64),
        encode_one_hot(frame, ADULT_CATEGORY_VALUES, path),
        label_files.encode_classes(frame["income"], path, "income", ADULT_INCOMES),
        label_files.encode_classes(frame["sex"], path, "sex", ADULT_GENDERS),
    )


COMPAS_NUMBER_COLUMNS = ("age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count")
COMPAS_OUTCOMES, COMPAS_RACES = ("0", "1"), ("African-American", "Caucasian")
COMPAS_CATEGORY_VALUES = {"sex": ("Female", "Male"), "c_charge_degree": ("F", "M"), "race": COMPAS_RACES}
COMPAS_FILTER_COLUMNS = ("days_b_screening_arrest", "is_recid", "c_charge_degree", "score_text")
COMPAS_COLUMNS = (*dict.fromkeys([*COMPAS_NUMBER_COLUMNS, "sex", "race", *COMPAS_FILTER_COLUMNS, "two_year_recid"]),)

COMPAS_SOURCES = (
    Source(
        "compas/compas-scores-two-years.csv",
        "https://raw.githubusercontent.com/propublica/compas-analysis/bafff5da3f2e45eca6c2d5055faad269defd135a/"
        "compas-scores-two-years.csv",
        note="From ProPublica's repository propublica/compas-analysis.",
    ),
)


def compas() -> UnsplitTable:
    """compas: whether a defendant is arrested again within two years; sensitive attribute: race.

    The 5,278 African-American and Caucasian defendants that ProPublica's analysis keeps. Its table identifies people.
    Only the columns above are ever read from it: no name, date of birth or case.
    """
    path = COMPAS_SOURCES[0].find()
    frame = read_columns(path, COMPAS_COLUMNS, empty=COMPAS_FILTER_COLUMNS)
    frame = frame.loc[_is_analysed_by_propublica(frame) & frame["race"].isin(COMPAS_RACES)]
    return UnsplitTable(
        label_files.columns_to_numbers(frame, COMPAS_NUMBER_COLUMNS, path).astype(np.float64),
        encode_one_hot(frame, COMPAS_CATEGORY_VALUES, path),
        label_files.encode_classes(frame["two_year_recid"], path, "two_year_recid", COMPAS_OUTCOMES),
        label_files.encode_classes(frame["race"], path, "race", COMPAS_RACES),
    )


def _is_analysed_by_propublica(frame: "pd.DataFrame") -> "pd.Series[bool]":
    """Select the rows of ProPublica's analysis: arrest near the screening, a known outcome, charge and score."""
    import pandas as pd

    days = pd.to_numeric(frame["days_b_screening_arrest"], errors="coerce")
    known = (frame["is_recid"] != "-1") & (frame["c_charge_degree"] != "O") & (frame["score_text"] != "N/A")
    return days.between(-30, 30) & known


PEOPLE_TABLES = (
    PeopleTable(adult, ADULT_SOURCES, "Adult", ADULT_NUMBER_COLUMNS, ADULT_CATEGORY_VALUES),
    PeopleTable(compas, COMPAS_SOURCES, "COMPAS", COMPAS_NUMBER_COLUMNS, COMPAS_CATEGORY_VALUES),
)

SETS = {row.name: row for row in PEOPLE_TABLES}
"""Data sets by name."""
