"""Columns of a user's table as inputs: numbers standardised over the training rows, everything else one-hot."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from study.data import label_files, user_data
from study.errors import UserError
from study.text.quoted import quoted

if TYPE_CHECKING:
    import pandas as pd

MOST_VALUES = 200
"""Different values that a column of text may have: more are names or a number column with a stray word."""


def encoded(column: "pd.Series", train: NDArray[np.int64]) -> NDArray[np.float32]:
    """A column as inputs: (N, 1) standardised, or one-hot in the order of its values as text."""
    if not is_number(column):
        return np.stack([column == value for value in sorted(set(column))], 1).astype(np.float32)
    values = _values(column)
    there = values[train][~np.isnan(values[train])]
    varies = len(there) > 0 and there.min() < there.max()  # else rounding would leave a small deviation
    mean = float(there.mean()) if varies else float(there[0]) if len(there) else 0.0
    values = np.where(np.isnan(values), mean, values)
    deviation = float(values[train].std()) if varies else 0.0
    with np.errstate(over="ignore"):
        scaled = (values - mean) / (deviation or 1.0)
    if np.abs(scaled).max() > label_files.LARGEST:
        problem = f"a value is more than {label_files.LARGEST:.1e} deviations of the training rows away from their mean"
        raise UserError(f"column {quoted(str(column.name))}: {problem}. Is the split by rows of another kind?")
    return scaled[:, None].astype(np.float32)


def _values(column: "pd.Series") -> NDArray[np.float64]:
    """A column of numbers, NaN where a value is missing."""
    return column.to_numpy(np.float64, na_value=np.nan)


def check(column: "pd.Series", path: Path) -> None:
    """Raise a UserError if a column cannot be an input."""
    name = str(column.name)
    if is_number(column):
        label_files.check_size(_values(column), name, path)
    elif (values := column.nunique()) > MOST_VALUES:
        problem = f"has {values} different texts, at most {MOST_VALUES} are allowed"
        raise UserError(f"{path}: column {quoted(name)} {problem}. Leave it out of data.features, or make it numbers")


def check_copies(
    rows: "pd.DataFrame", inputs: Sequence[str], labels: user_data.Labels, target: str, path: Path
) -> None:
    """Refuse an input that nobody named and that says the class: another spelling of it, most likely."""
    for name in inputs:
        if rows[name].nunique() != labels.classes:
            continue
        pairs = set(zip(rows[name].tolist(), labels.target.tolist(), strict=True))
        if len(pairs) == labels.classes:
            problem = f"column {quoted(name)} has one value for each value of {target!r}: it would tell the class"
            raise UserError(f"{path}: {problem}. Name the inputs in data.features, with it or without")


def is_number(column: "pd.Series") -> bool:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    return is_numeric_dtype(column) and not is_bool_dtype(column)
