"""Shared by the user's own data sets: labels from columns, conditions from columns or a file, and splits."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Doc

from study.data import conditions, holdout, label_files
from study.errors import UserError
from study.knobs import Range

if TYPE_CHECKING:
    import pandas as pd

TestShare = Annotated[
    float, Range(low=0.0, high=0.5), Doc("share of all samples that is the test split, 0: there is none")
]
"""Type of the key `test_share`: share of all samples that the test split gets, 0: there is none."""

ALIASES = {"training": "train", "valid": "val", "validation": "val", "testing": "test"} | {
    name: name for name in ("train", "val", "test")
}
"""Names that a split may have in the user's files."""


@dataclass(frozen=True)
class Labels:
    """Labels of a table's rows.

    Attributes:
        target, bias: codes (N,); `bias` is None where no column was named.
        classes, bias_classes: how many.
        condition: (N, K) or None.
        class_names, bias_names: as in the column, None where several columns were combined.
    """

    target: NDArray[np.int64]
    bias: NDArray[np.int64] | None
    classes: int
    bias_classes: int | None
    condition: NDArray[np.float32] | None
    class_names: tuple[str, ...] | None = None
    bias_names: tuple[str, ...] | None = None

    @property
    def cells(self) -> NDArray[np.int64]:
        """A label per (class, bias class), (N,)."""
        return self.target if self.bias is None else self.target * (self.bias_classes or 1) + self.bias


def columns_of(text: str | None, columns_of_table: Iterable[Any], path: Path) -> list[str]:
    """The columns that a key names: one, or several joined by +.

    Raises:
        UserError: one is not there.
    """
    names = [str(name) for name in columns_of_table]
    columns = [] if text is None else [text] if text in names else text.split("+")
    label_files.need(names, columns, path)
    return columns


def labels(table: "pd.DataFrame", path: Path, options: Any, samples: Sequence[str] | None) -> Labels:
    """The labels that the keys `target`, `bias`, `condition` and `condition_file` name.

    Args:
        table: of the file `path`.
        samples: name of each row in the condition file.

    Raises:
        UserError: a column is not there, a value missing or not a number, or there is one class, or one per row.
    """
    columns = columns_of(options.target, table.columns, path)
    target, classes = _coded(table, columns, path)
    if not 2 <= classes < max(3, len(table)):
        problem = f"has {classes} different values in {len(table)} rows"
        raise UserError(f"{path}: column {options.target!r} {problem}: no classes. Name another in data.target")
    condition = _condition(table, path, options, samples)
    without_bias = Labels(target, None, classes, None, condition, _names(table, columns))
    if options.bias is None:
        return without_bias
    columns = columns_of(options.bias, table.columns, path)
    bias, bias_classes = _coded(table, columns, path)
    return replace(without_bias, bias=bias, bias_classes=bias_classes, bias_names=_names(table, columns))


def divide(
    cells: NDArray[np.int64], split_names: Sequence[str] | None, options: Any, place: str
) -> dict[str, NDArray[np.int64]]:
    """Indices of each split: as given, or by seeded shares of each cell (`test_share` first, then `val_share`).

    Args:
        cells: a label per (class, bias class).
        split_names: name of each sample's split, None: none is given. A missing `val` is cut from `train`.
        place: file and column of the names, for the message.

    Raises:
        UserError: a split's name is not known, or nothing is left for a split.
    """
    if split_names is None:
        rest, test = holdout.stratified(cells, options.test_share, options.split_seed)
        splits = {"train": rest} | ({"test": test} if options.test_share else {})
    else:
        names = [ALIASES.get(str(name).strip().lower(), "") for name in split_names]
        if "" in names:
            row = names.index("")
            raise UserError(
                f"{place}, row {row + 1}: {split_names[row]!r} is not a split, allowed: {', '.join(ALIASES)}"
            )
        splits = {name: np.flatnonzero(np.array(names) == name) for name in dict.fromkeys(names)}
    if "train" in splits and "val" not in splits:
        rest = splits["train"]
        kept, held = holdout.stratified(cells[rest], options.val_share, options.split_seed)
        splits |= {"train": rest[kept], "val": rest[held]}
    for name in ("train", *splits):
        if name not in splits or not len(splits[name]):
            raise UserError(f"{place}: split {name} is empty: {len(cells)} samples, none is left for it")
    return {name: splits[name] for name in ("train", "val", "test") if name in splits}


def _names(table: "pd.DataFrame", columns: Sequence[str]) -> tuple[str, ...] | None:
    return tuple(label_files.classes_of(table[columns[0]])) if len(columns) == 1 else None


def _coded(table: "pd.DataFrame", columns: Sequence[str], path: Path) -> tuple[NDArray[np.int64], int]:
    sizes = [len(label_files.classes_of(table[column])) for column in columns]
    parts = [label_files.codes(table[column], path, column) for column in columns]
    return label_files.combined(parts, sizes), int(np.prod(sizes))


def _condition(
    table: "pd.DataFrame", path: Path, options: Any, samples: Sequence[str] | None
) -> NDArray[np.float32] | None:
    if options.condition and options.condition_file:
        raise UserError("data.condition, data.condition_file: give one of them, not both")
    if options.condition_file:
        if samples is None:
            raise UserError("data.condition_file: needs data.key, the column with the names of the samples")
        return conditions.rows(label_files.locate(options.condition_file), samples)
    label_files.need(table.columns, options.condition, path)
    return label_files.numbers(table, options.condition, path) if options.condition else None
