"""Encode tables about people: one-hot categories, numbers standardised over the training rows, seeded splits."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Doc

from study.data import holdout, label_files
from study.data.dataset import Kind, Labels, Raw, Split
from study.errors import UserError
from study.knobs import Range

if TYPE_CHECKING:  # imported where it is used: every process that knows the data sets' names would wait for it
    import pandas as pd

TEST_SHARE = 0.15
"""Share of the test split, as in the WCL paper (section 6.2)."""


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section of both tables; the shares are those of the same paper."""

    split_seed: holdout.SplitSeed = 0
    folds: holdout.Folds = None
    val: holdout.Cut = "biased"
    val_share: Annotated[float, Range(above=0.0, high=0.5), Doc("share of all rows that is the validation split")] = (
        0.15
    )
    aligned: Annotated[
        Literal["by_number"] | None,
        Doc(
            "null: no group has a class of its own; `by_number`: the group of a class's number is its own, as in "
            "studies of earlier versions"
        ),
    ] = None
    sensitive_input: Annotated[bool, Doc("whether gender (adult) or race (compas) is among the inputs")] = True


Categories = Mapping[str, Sequence[str]]
"""Column names and the values that each may have, in the order of the one-hot columns."""


@dataclass(frozen=True)
class Rows:
    """A table before it is split: `numbers` (N, K), `one_hot` (N, F - K), classes `target` and `bias` (N,)."""

    numbers: NDArray[np.float64]
    one_hot: NDArray[np.float64]
    target: NDArray[np.int64]
    bias: NDArray[np.int64]


def read(path: Path, columns: Sequence[str], empty: Collection[str] = (), **reading: Any) -> "pd.DataFrame":
    """Read these columns of a file, as text without surrounding spaces.

    Args:
        empty: columns in which a row may have no value.
        reading: further arguments of `pandas.read_csv`.

    Raises:
        UserError: the file is not a table, lacks a column, or lacks a value, as in a file that is cut short.
    """
    table = label_files.read(path, usecols=list(columns), **reading)[list(columns)]
    table = table.apply(lambda column: column.str.strip())
    for column in [name for name in columns if name not in empty]:
        lacking = table[column] == ""
        if lacking.any():
            raise UserError(f"{path}: row {int(lacking.argmax()) + 1} has no {column}; cut short? Get it again")
    return table


def one_hot(frame: "pd.DataFrame", categories: Categories, path: Path) -> NDArray[np.float64]:
    """Encode each column one-hot, all side by side."""
    parts = [
        np.eye(len(values))[label_files.codes(frame[column], path, column, values)]
        for column, values in categories.items()
    ]
    return np.concatenate(parts, axis=1)


def split(rows: Rows, options: Options) -> dict[str, Split]:
    """Split the rows at random; the numbers get mean 0 and deviation 1 over the training rows.

    Validation is drawn at random, too, or, with `val: unbiased`, in equal counts of each (class, bias class) from the
    same rows. Test has the same rows either way.

    Args:

    Raises:
        UserError: too few rows.
    """
    members = _members(rows, options)
    train_numbers = rows.numbers[members["train"]]
    deviation = train_numbers.std(axis=0)
    scaled = (rows.numbers - train_numbers.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    inputs = np.concatenate([scaled, rows.one_hot], axis=1).astype(np.float32)
    return {name: Split(inputs[chosen], rows.target[chosen], rows.bias[chosen]) for name, chosen in members.items()}


def raw(rows: Rows, options: Options) -> Raw:
    """Split the rows as `split` does, without standardising the numbers."""
    inputs = np.concatenate([rows.numbers, rows.one_hot], axis=1)
    splits = {
        name: Split(inputs[chosen], rows.target[chosen], rows.bias[chosen])
        for name, chosen in _members(rows, options).items()
    }
    kinds: tuple[Kind, ...] = ("number",) * rows.numbers.shape[1] + ("plain",) * rows.one_hot.shape[1]
    return Raw(splits, kinds)


def _members(rows: Rows, options: Options) -> dict[str, NDArray[np.int64]]:
    order = np.random.default_rng(options.split_seed).permutation(len(rows.target))
    first, second = (round(len(order) * share) for share in (1 - TEST_SHARE - options.val_share, 1 - TEST_SHARE))
    rest, test = order[:second], order[second:]
    train, val = rest[:first], rest[first:]
    if options.val == "unbiased":
        cells = holdout.cells(Labels(rows.target[rest], rows.bias[rest]))
        kept, held = holdout.balanced(cells, options.val_share / (1 - TEST_SHARE), options.split_seed)
        train, val = rest[kept], rest[held]
    members = {"train": train, "val": val, "test": test}
    if not all(len(chosen) for chosen in members.values()):
        raise UserError(f"{len(order)} rows are too few for splits of 70, 15 and 15%. Is the file complete?")
    return members
