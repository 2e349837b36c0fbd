"""adult: whether a person of the 1994 US census earns more than 50K a year; sensitive attribute: gender."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from typing_extensions import Doc

from study.data import label_files, tables
from study.data.cache import cached
from study.data.dataset import Dataset, Facts, Raw, Split
from study.data.source import Source

_IN_FILE_ORDER = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
    "capital-loss hours-per-week native-country income"
)
COLUMNS = _IN_FILE_ORDER.split()
NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
GENDERS = ("Female", "Male")
INCOMES = ("<=50K", ">50K")

CATEGORIES = {
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

URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult"
SOURCES = (
    Source(
        "adult/adult.data",
        f"{URL}/adult.data",
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        "From the UCI Machine Learning Repository, data set Adult.",
    ),
    Source(
        "adult/adult.test",
        f"{URL}/adult.test",
        "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        "From the UCI Machine Learning Repository, data set Adult.",
    ),
)


@dataclass(frozen=True)
class Options(tables.Options):
    """Keys of the `data` section."""

    unknown: Annotated[bool, Doc("keep people with an unknown (`?`) value: 48,842 instead of 45,222")] = True


def describe(options: Options) -> Facts:
    """Return the facts: two classes, two genders, a row of one-hot and standardised numbers."""
    width = len(NUMBERS) + sum(len(values) for values in _categories(options).values())
    return Facts(classes=2, bias_classes=2, shape=(width,), title="Adult")


def load(options: Options) -> Dataset:
    """Concatenate both files, encode, split."""
    return cached("adult", options, describe(options), lambda: labels(options), SOURCES)


def labels(options: Options) -> dict[str, Split]:
    """Split the whole table, which is read in less than a second."""
    return tables.split(_rows(options), options)


def raw(options: Options) -> Raw:
    """Split the rows before the numbers are standardised."""
    return tables.raw(_rows(options), options)


def _categories(options: Options) -> dict[str, list[str]]:
    return {name: values for name, values in CATEGORIES.items() if options.sensitive_input or name != "sex"}


def _rows(options: Options) -> tables.Rows:
    parts = [_encoded(source.find(), options) for source in SOURCES]
    fields = ("numbers", "one_hot", "target", "bias")
    return tables.Rows(*(np.concatenate([getattr(part, field) for part in parts]) for field in fields))


def _encoded(path: Path, options: Options) -> tables.Rows:
    # the test file begins with a line that is not a row, and its labels end in a full stop
    frame = tables.read(path, COLUMNS, header=None, names=COLUMNS, comment="|", skipinitialspace=True)
    frame["income"] = frame["income"].str.rstrip(".")
    if not options.unknown:
        frame = frame.loc[~(frame == "?").any(axis=1)]
    return tables.Rows(
        label_files.numbers(frame, NUMBERS, path).astype(np.float64),
        tables.one_hot(frame, _categories(options), path),
        label_files.codes(frame["income"], path, "income", INCOMES),
        label_files.codes(frame["sex"], path, "sex", GENDERS),
    )
