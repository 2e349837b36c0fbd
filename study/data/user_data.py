"""What the user's own data sets share: labels from columns, conditions from columns or a file, and splits."""

import math
import re
import unicodedata
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Doc

from study.data import conditions, holdout, label_files, table_format
from study.data.dataset import AlignedClasses, Facts
from study.data.label_files import SPLIT_ALIASES
from study.data.table_findings import ColumnFinding
from study.data.table_format import DecimalKey, SeparatorKey, TextEncodingKey, to_plain_number
from study.errors import UserError
from study.knobs import Range
from study.text import list_few_names, pluralise, quoted

if TYPE_CHECKING:
    import pandas as pd


MIN_ALIGNMENT_GAIN = 0.1
"""Share of the training rows that matching bias classes to classes must align beyond what their order aligns."""


MAX_DISTINCT_CODES = 10
"""Number of different values up to which numbers of a bias may be codes of groups; more are measured values."""


MAX_LABEL_COMBINATIONS = 10_000
"""Number of combinations of several columns up to which they are classes or bias classes: each has a name, and a
place in every table of counts.
"""


@dataclass(frozen=True, kw_only=True)
class UserDataOptions:
    """Keys of the `data` section that both of the user's own data sets have.

    Attributes:
        positive: of two classes the positive one, for `equal_opportunity` and `auc`; null: the second by number or
            alphabet.
        target_bins: makes classes of a target of numbers: [0.5] are under 0.5, and 0.5 and over; `each`: every number
            is one.
        bias: column of the bias (sensitive, spurious) classes; several combined: `gender+young`.
        aligned: the class that each bias class goes with, as `[water=waterbird, land=landbird]`, or each of several
            classes, in a pair each; null: as the training rows say, if they do clearly; []: none.
        bias_gaps: samples without a bias label: `error` refuses them, `unknown` keeps them: metrics by bias class leave
            them out, and methods that need the labels take `method.bias_source: some_labels`.
        bias_bins: makes groups of a bias column of numbers: [25, 40] are under 25, 25 to under 40, 40 and over;
            `quartiles`: four of about equal size.
        missing_marks: texts that mean a missing value, besides an empty cell, NA, N/A, nan, null, None.
        condition: columns of continuous attributes, taken as they are.
        condition_file: file of continuous attributes, instead of `condition`, see `study.data.conditions`; its keys are
            those of the column `file` of images, and of the column that `key` names of a table.
        split: column with the words train, val, test; null: of images folders of these names, or else the shares.
        group: column that says which samples belong together, as those of a person, camera or video: where the splits
            are cut by shares they stay together. It is no input.
        val_share: share of the samples outside the test split that is held out for validation, where it is not given.
        test_share: share of all samples that is the test split, by class and bias class; 0: there is none.
    """

    path: str
    target: str
    positive: str | None = None
    target_bins: tuple[float, ...] | Literal["each"] | None = None
    bias: str | None = None
    aligned: tuple[str, ...] | None = None
    bias_gaps: Literal["error", "unknown"] = "error"
    bias_bins: tuple[float, ...] | Literal["quartiles"] | None = None
    missing_marks: tuple[str, ...] = ()
    separator: SeparatorKey = None
    encoding: TextEncodingKey = None
    decimal: DecimalKey = None
    condition: tuple[str, ...] = ()
    condition_file: str | None = None
    split: str | None = None
    group: str | None = None
    val: Annotated[
        holdout.ValKind | None, Doc(f"{holdout.VAL_KEY_DOC}. null: given where there is one, biased otherwise")
    ] = None
    val_share: holdout.ValShareKey = 0.15
    test_share: Annotated[float, Range(low=0.0, high=0.5)] = 0.15
    split_seed: holdout.SplitSeedKey = 0
    folds: holdout.FoldsKey = None


@dataclass(frozen=True)
class TableLabels:
    """Labels of a table's rows.

    Attributes:
        target, bias: codes (N,); `bias` is None where no column was named, -1 where it is unknown.
        classes, bias_classes: number of each.
        condition: (N, K) or None.
        class_names, bias_names: as in the column; several columns are joined by +, as `f+old`; None where two names
            would be equal.
        is_bias_combined: whether the target or the bias combines several columns.
        bias_edges: edges of the groups of a numeric bias, None where it has no groups.
        is_target_number: whether the target looks like a measured number that was not divided into classes.
    """

    target: NDArray[np.int64]
    bias: NDArray[np.int64] | None
    classes: int
    bias_classes: int | None
    condition: NDArray[np.float32] | None
    class_names: tuple[str, ...] | None = None
    bias_names: tuple[str, ...] | None = None
    is_bias_combined: bool = False
    bias_edges: tuple[float, ...] | None = None
    is_target_number: bool = False
    aligned: AlignedClasses | None = None

    @property
    def has_unknown_bias(self) -> bool:
        """Whether the bias of some samples is unknown."""
        return self.bias is not None and bool((self.bias < 0).any())


def facts_of_labels(labels: TableLabels, shape: tuple[int, ...], splits: Iterable[str]) -> Facts:
    """Build the facts of a user's data from their labels.

    Args:
        shape: of a sample.
        splits: names of the splits.
    """
    return Facts(
        labels.classes,
        labels.bias_classes,
        shape,
        condition=None if labels.condition is None else labels.condition.shape[1],
        splits=tuple(splits),
        class_names=labels.class_names,
        bias_names=labels.bias_names,
        some_bias=labels.has_unknown_bias,
        bias_edges=labels.bias_edges,
        aligned=labels.aligned,
    )


def decimal_mark_of_table(options: UserDataOptions, path: Path) -> str:
    """Return the decimal mark of a user's table; a point where `path` is a folder of classes."""
    known = table_format.format_from_keys(vars(options))
    return "." if path.is_dir() else str(table_format.detect_format(path, known).decimal)


def parse_column_names(text: str | None, columns_of_table: Iterable[Hashable], path: Path) -> list[str]:
    """Split the text of a key into the columns that it names: one, or several joined by +.

    Raises:
        UserError: one is not there.
    """
    names = [str(name) for name in columns_of_table]
    columns = _split_at_plus(text, names)
    label_files.check_columns_exist(names, columns, path)
    return columns


def _split_at_plus(text: str | None, names: Container[str]) -> list[str]:
    return [] if text is None else [text] if text in names else text.split("+")


def columns_named_by_keys(
    options: UserDataOptions, columns_of_table: Iterable[Hashable], path: Path, others: Iterable[str] = ()
) -> list[str]:
    """List all columns that keys name, that is all but the inputs of a table.

    Args:
        others: columns that must be there, too.

    Raises:
        UserError: one is not there, or the target and the bias share one.
    """
    valid = [str(name) for name in columns_of_table]
    named = (getattr(options, key, None) for key in ("file", "key", "split", "group"))
    used = [
        *_split_at_plus(options.target, valid),
        *_split_at_plus(options.bias, valid),
        *options.condition,
        *(column for column in named if column),
    ]
    label_files.check_columns_exist(valid, [*used, *others], path)
    check_target_and_bias_differ(options.target, options.bias, valid, path)
    return used


def check_target_and_bias_differ(
    target: str, bias: str | None, columns_of_table: Iterable[Hashable], path: Path
) -> None:
    """Raise a UserError if the target and the bias share a column."""
    valid = [str(name) for name in columns_of_table]
    of_target = parse_column_names(target, valid, path)
    if shared := [column for column in parse_column_names(bias, valid, path) if column in of_target]:
        both = f"in both data.target ({target}) and data.bias ({bias})"
        remedy = "A bias that is the class itself can be told from nothing: name another column in data.bias, or none"
        raise UserError(f"{path}: column {quoted(shared[0])} is {both}. {remedy}")


def read_table_labels(
    table: "pd.DataFrame",
    path: Path,
    options: UserDataOptions,
    samples: Sequence[str] | None,
    *,
    is_for_training: bool = True,
) -> TableLabels:
    """Read the labels that the keys `target`, `bias`, `condition` and `condition_file` name.

    Args:
        table: of the file `path`.
        samples: name of each row in the condition file.
        is_for_training: whether a model is to be trained on the rows, which takes two classes or more, each of two rows
            or more; a model that is there already is judged on any.

    Raises:
        UserError: a column is not there, a value missing or not a number, or there is no bias for an unbiased
            validation split; for training also: there is one class, or a class of one row.
    """
    if options.val == "unbiased" and options.bias is None:
        raise UserError("data.val: 'unbiased' given, which needs bias labels. Name their column in data.bias")
    columns = parse_column_names(options.target, table.columns, path)
    target = _code_columns(table, columns, path)
    if isinstance(options.target_bins, tuple):
        target, _ = _divide_numbers_into_classes(
            target, options.target_bins, path, decimal_mark_of_table(options, path), "target"
        )
    target.check_few_combinations(path)
    found = number_target_finding(table, options, path)
    if is_for_training and found and (target.class_count >= max(3, len(table)) or target.has_single_row_class):
        raise UserError(f"{path}: {found}")
    if is_for_training and not 2 <= target.class_count < max(3, len(table)):
        problem = f"has {pluralise(target.class_count, 'different value')} in {len(table)} rows"
        raise UserError(f"{path}: column {options.target!r} {problem}: no classes. Name another in data.target")
    if is_for_training:
        target.check_no_single_row_class(path)
    condition = _read_condition(table, path, options, samples)
    several = len(columns) > 1
    labels = TableLabels(target.codes, None, target.class_count, None, condition, target.class_names)
    labels = replace(labels, is_bias_combined=several, is_target_number=found is not None)
    if options.bias is None:
        if options.bias_bins is not None:
            raise UserError("data.bias_bins: given without data.bias, whose numbers it makes groups of")
        return labels
    bias_columns = parse_column_names(options.bias, table.columns, path)
    bias, edges = _code_columns(table, bias_columns, path, options.bias_gaps == "unknown"), None
    if options.bias_bins is not None:
        bias, edges = _divide_numbers_into_classes(bias, options.bias_bins, path, decimal_mark_of_table(options, path))
    bias.check_few_combinations(path)
    if not bias.class_count:
        raise UserError(
            f"{path}: column {options.bias!r} is empty in every row: the bias is known for nobody. Leave out data.bias"
        )
    if is_for_training:
        bias.check_no_single_row_class(path)
    labels = replace(labels, bias=bias.codes, bias_classes=bias.class_count, bias_names=bias.class_names)
    return replace(labels, is_bias_combined=several or len(bias_columns) > 1, bias_edges=edges)


def renumber_bias_classes_by_class(labels: TableLabels, train: NDArray[np.int64]) -> TableLabels:
    """Renumber the bias classes so that each has the number of the class it goes with, where names do not say which.

    Names in their order ("eight", "five" beside "c0", "c1") do not; the training rows do. Bias classes are matched one
    to one, so that as many rows as possible are aligned. The order stays where classes and bias classes are named
    alike or are both whole numbers, where there are not as many of one as of the other, and where a match aligns less
    than `MIN_ALIGNMENT_GAIN` of the rows more than the order does.

    Args:
        train: indices of the training rows.
    """
    ours, theirs = labels.class_names, labels.bias_names
    if labels.bias is None or labels.is_bias_combined or not ours or not theirs or len(ours) != len(theirs):
        return labels
    if _have_same_class_names(ours, theirs):
        return labels
    from scipy.optimize import linear_sum_assignment  # slow to import

    known = train[labels.bias[train] >= 0]
    pairs = np.zeros((len(ours), len(ours)), np.int64)
    np.add.at(pairs, (labels.target[known], labels.bias[known]), 1)
    order = linear_sum_assignment(pairs, maximize=True)[1]
    if pairs[np.arange(len(ours)), order].sum() - np.trace(pairs) < MIN_ALIGNMENT_GAIN * len(known):
        return labels
    number = np.append(np.argsort(order), -1)  # that of each bias class; -1, not known, stays
    return replace(labels, bias=number[labels.bias], bias_names=tuple(theirs[place] for place in order))


MIN_ALIGNMENT_KAPPA = 0.5
"""Least Cohen's kappa of bias classes and classes at which bias classes count as going with classes of their own."""


def find_aligned_classes(
    target: NDArray[np.int64], bias: NDArray[np.int64], shape: tuple[int, int]
) -> AlignedClasses | None:
    """Find the classes that each bias class goes with; None where that is not clear.

    All classes weigh alike. A bias class goes with the class of which it is the largest share, and with every class of
    which it clearly is: classes may share one. A choice of pairs is clear where (A - C) / (1 - C) is at least
    `MIN_ALIGNMENT_KAPPA`: A is the share of a class's samples whose bias class goes with that class, averaged over
    classes, and C is what A would be if bias and class were independent. All pairs must be clear together, and every
    class must have one. Renaming or renumbering classes gives the same pairs.

    Args:
        target, bias: labels (N,), -1 where unknown.
        shape: number of classes and of bias classes.

    Returns:
        The class of each bias class, -1 for one without samples.
    """
    known = (target >= 0) & (bias >= 0)
    cells = np.zeros(shape)
    np.add.at(cells, (target[known], bias[known]), 1)
    if shape[0] < 2 or not cells.sum(1).all():
        return None
    shares = cells / cells.sum(1, keepdims=True)
    by_chance, seen = np.broadcast_to(shares.mean(0), shape), cells.any(0)
    is_own = (shares == shares.max(0)) & seen
    is_own |= shares - by_chance >= MIN_ALIGNMENT_KAPPA * (1 - by_chance)
    if not is_own.any(1).all() or is_own[:, seen].all():
        return None
    found, expected = (float((of * is_own).sum(1).mean()) for of in (shares, by_chance))
    if found - expected < MIN_ALIGNMENT_KAPPA * (1 - expected):
        return None
    return _classes_of_bias_classes(is_own)


def _classes_of_bias_classes(is_own: NDArray[np.bool_]) -> AlignedClasses:
    """Return which classes go with each bias class, of the pairs (classes, bias classes)."""
    found = [tuple(np.flatnonzero(of).tolist()) for of in is_own.T]
    return tuple(classes if len(classes) > 1 else next(iter(classes), -1) for classes in found)


def _read_aligned_classes(
    labels: TableLabels, train: NDArray[np.int64], given: tuple[str, ...] | None, path: Path
) -> AlignedClasses | None:
    """Return the classes of each bias class as `data.aligned` gives them, or else as the training rows show them.

    Raises:
        UserError: a pair does not name a bias class and a class of the data.
    """
    if labels.bias is None or not labels.bias_classes:
        if given:
            raise UserError("data.aligned: given without data.bias, whose classes it speaks of")
        return None
    if given is None:
        return find_aligned_classes(labels.target[train], labels.bias[train], (labels.classes, labels.bias_classes))
    classes = labels.class_names or tuple(map(str, range(labels.classes)))
    biases = labels.bias_names or tuple(map(str, range(labels.bias_classes)))
    pairs = {f"{one}={other}": (y, s) for s, one in enumerate(biases) for y, other in enumerate(classes)}
    is_own = np.zeros((len(classes), len(biases)), bool)
    for pair in given:
        if pair not in pairs:
            of_bias, of_class = (list_few_names([*map(quoted, names)]) for names in (biases, classes))
            allowed = f"BIAS=CLASS, of {path} {of_bias} and {of_class}"
            raise UserError(f"data.aligned: {quoted(pair)} given, allowed is {allowed}")
        is_own[pairs[pair]] = True
    return _classes_of_bias_classes(is_own) if given else None


def divide_into_splits(
    cells: NDArray[np.int64],
    split_names: Sequence[str] | None,
    options: UserDataOptions,
    place: str,
    same: NDArray[np.int64] | None = None,
    is_for_training: bool = True,
) -> dict[str, NDArray[np.int64]]:
    """Divide samples into splits: as given, or by seeded shares of each cell (`test_share` first, then `val_share`).

    The key `val` decides the validation split. If one is given but not wanted, its samples are in no split.

    Args:
        cells: a label per (class, bias class).
        split_names: name of each sample's split; None: none is given.
        place: file and column of the names, for the message.
        same: the group of each sample, (N,): where shares divide, a group stays in one split. An unbiased
            validation split leaves out what it has too many of, so that it stays unbiased; those are in no split.
        is_for_training: whether each split needs a sample; of rows that are only judged it may be empty.

    Returns:
        Indices of each split.

    Raises:
        UserError: a split's name is not known, the validation split that is asked for is not given, or nothing is left
            for a split.
    """
    if split_names is None:
        rest, test = holdout.split_by_val_kind(cells, options.test_share, "biased", options.split_seed, same)
        splits = {"train": rest} | ({"test": test} if options.test_share else {})
    else:
        names = label_files.parse_split_names(split_names)
        if "" in names:
            row, allowed = names.index(""), ", ".join(SPLIT_ALIASES)
            given = quoted(str(split_names[row]))
            raise UserError(f"{place}, row {row + 1}: {given} is not a split, allowed: {allowed}")
        splits = {name: np.flatnonzero(np.array(names) == name) for name in dict.fromkeys(names)}
    kind: holdout.ValKind = options.val or ("given" if "val" in splits else "biased")
    if kind == "given" and options.folds and options.val is None:
        raise UserError(
            f"data.folds: {options.folds} given, but {place} puts samples into `val`. Allowed with data.val: biased, "
            "which leaves these out and divides what is in `train`"
        )
    if kind == "given" and "val" not in splits:
        raise UserError(f"data.val: 'given' given, but {place} puts no sample into `val`. Allowed: biased, unbiased")
    if kind != "given" and "train" in splits:
        rest = splits["train"]
        within = None if same is None else same[rest]
        kept, held = holdout.split_by_val_kind(cells[rest], options.val_share, kind, options.split_seed, within)
        splits |= {"train": rest[kept], "val": rest[held]}
    for name in ("train", *splits) if is_for_training else ():
        if name not in splits or not len(splits[name]):
            few = "" if same is None else f" in {len(np.unique(same))} groups that stay together"
            raise UserError(f"{place}: split {name} is empty: {len(cells)} samples{few}, none is left for it")
    splits.setdefault("train", np.empty(0, np.int64))
    return {name: splits[name] for name in ("train", "val", "test") if name in splits}


def divide_rows_into_splits(
    table: "pd.DataFrame",
    path: Path,
    options: UserDataOptions,
    labels: TableLabels,
    copies: NDArray[np.int64] | None,
    by_folder: Sequence[str] | None = None,
    is_for_training: bool = True,
) -> tuple[TableLabels, dict[str, NDArray[np.int64]], NDArray[np.int64] | None]:
    """Divide a table's rows into splits, then number its classes and bias classes.

    Args:
        copies: the group of rows with equal inputs that each row is in; None: they may be in different splits.
        by_folder: the split of each row where folders say so and no column does.
        is_for_training: see `divide_into_splits`.

    Returns:
        The labels with their final numbers; the indices of each split, see `divide_into_splits`; and the group of rows
        in one split that each row is in, (N,), None where each row is alone.
    """
    names = list(table[options.split]) if options.split else by_folder
    place = f"{path}: column {options.split!r}" if options.split else str(path)
    together = holdout.merge_group_labels(read_group_codes(table, options, path), copies)
    splits = divide_into_splits(holdout.cell_of_sample(labels), names, options, place, together, is_for_training)
    labels = put_positive_class_last(labels, options.positive, path)
    labels = renumber_bias_classes_by_class(labels, splits["train"])
    aligned = _read_aligned_classes(labels, splits["train"], options.aligned, path)
    return replace(labels, aligned=aligned), splits, together


def read_group_codes(table: "pd.DataFrame", options: UserDataOptions, path: Path) -> NDArray[np.int64] | None:
    """Return the group of each row that `data.group` names, (N,); None where it is not given.

    Raises:
        UserError: it is the class, or a row has none.
    """
    if options.group is None:
        return None
    if options.group in parse_column_names(options.target, table.columns, path):
        raise UserError(f"data.group: {options.group!r} is the class: each class would be in one split alone")
    return label_files.encode_classes(table[options.group], path, options.group)


def group_split_notes(column: str, values: Sequence[str], splits: Mapping[str, NDArray[np.int64]]) -> list[str]:
    """Say that each group of `data.group` is in one split, or which groups the user's own splits divide."""
    homes: dict[str, set[str]] = {}
    for name, members in splits.items():
        for row in members:
            homes.setdefault(values[row], set()).add(name)
    if divided := [quoted(value) for value, found in homes.items() if len(found) > 1]:
        several = f"{len(divided)} values of {quoted(column)} are in several splits"
        return [f"data.group: {several}: {list_few_names(divided)}"]
    return [f"data.group: each of the {len(homes)} values of {quoted(column)} is in one split"]


def copies_across_splits_text(splits: Mapping[str, NDArray[np.int64]], same: NDArray[np.int64]) -> str:
    """Count the samples of each split that repeat one of an earlier split, as `3 in val`; empty: none do."""
    earlier, told = np.array([], np.int64), []
    for name, members in splits.items():
        if count := int(np.isin(same[members], earlier).sum()):
            told.append(f"{count} in {name}")
        earlier = np.union1d(earlier, same[members])
    return ", ".join(told)


@dataclass(frozen=True)
class _CodedColumns:
    """Label columns as codes: names of the columns, codes of each (N,), and the texts that the codes stand for."""

    column_names: Sequence[str]
    codes_of_columns: Sequence[NDArray[np.int64]]
    texts_of_codes: Sequence[Sequence[str]]

    @property
    def codes(self) -> NDArray[np.int64]:
        """Codes of all columns combined, (N,)."""
        return label_files.combine_label_codes(self.codes_of_columns, [len(values) for values in self.texts_of_codes])

    @property
    def class_count(self) -> int:
        return math.prod(len(values) for values in self.texts_of_codes)

    def check_few_combinations(self, path: Path) -> None:
        """Refuse several columns with more combinations than anything can be said of."""
        if len(self.column_names) > 1 and self.class_count > MAX_LABEL_COMBINATIONS:
            counts = zip(self.column_names, map(len, self.texts_of_codes), strict=True)
            names = " and ".join(f"{quoted(name)} ({count})" for name, count in counts)
            problem = f"{self.class_count:,} combinations of values of {names}, allowed are {MAX_LABEL_COMBINATIONS:,}"
            raise UserError(f"{path}: {problem}. Name one column, or those of fewer values")

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """Names of all combinations, even of those without a row; None where two would be equal."""
        joined = tuple("+".join(reversed(names)) for names in product(*reversed(self.texts_of_codes)))
        return joined if len(set(joined)) == len(joined) else None

    @property
    def has_single_row_class(self) -> bool:
        """Whether some class has a single row."""
        return any((np.bincount(codes[codes >= 0]) == 1).any() for codes in self.codes_of_columns)

    def check_no_single_row_class(self, path: Path) -> None:
        """Refuse a class of one row, which cannot be both learned and measured and is most likely a typing error."""
        import pandas as pd

        for column, codes, values in zip(self.column_names, self.codes_of_columns, self.texts_of_codes, strict=True):
            alone = np.flatnonzero(np.bincount(codes[codes >= 0]) == 1)
            if len(alone):
                more = f", as are {len(alone) - 1} others" if len(alone) > 1 else ""
                problem = f"the value {quoted(values[alone[0]])} is in 1 of {len(codes)} rows alone{more}"
                hint = "Is it a slip? Mend it, or take the row out"
                if len(alone) > len(values) / 2 and pd.to_numeric(pd.Series(values), errors="coerce").notna().all():
                    hint = (
                        "Measured numbers are divided into groups by data.bias_bins, into classes by data.target_bins"
                    )
                raise UserError(f"{path}: column {column!r}: {problem}. {hint}")


def _code_columns(table: "pd.DataFrame", columns: Sequence[str], path: Path, gaps: bool = False) -> _CodedColumns:
    values = [label_files.distinct_classes(table[column]) for column in columns]
    for column, found in zip(columns, values, strict=True):
        _check_no_label_spelled_twice(table[column], found, column, path)
    parts = [label_files.encode_classes(table[column], path, column, gaps=gaps) for column in columns]
    return _CodedColumns(columns, parts, values)


def _divide_numbers_into_classes(
    bias: _CodedColumns, bins: Sequence[float] | Literal["quartiles"], path: Path, decimal: str, key: str = "bias"
) -> tuple[_CodedColumns, tuple[float, ...]]:
    """Divide the bias's, or the target's, column of numbers into groups; return those with rows, and all edges."""
    numbers = [_parse_finite_numbers(values, decimal) for values in bias.texts_of_codes]
    found = [place for place, values in enumerate(numbers) if values is not None]
    if len(found) != 1:
        every = chain.from_iterable(bias.texts_of_codes)
        first = next((text for text in every if _parse_finite_numbers([text], decimal) is None), "")
        problem = "several columns of numbers" if found else f"no column of numbers, but {quoted(first)}"
        name = quoted("+".join(bias.column_names))
        raise UserError(f"{path}: column {name}: data.{key}_bins needs one of numbers, it has {problem}")
    place, codes = found[0], bias.codes_of_columns[found[0]]
    values = numbers[place]
    assert values is not None
    if bins == "quartiles":
        quartiles = np.quantile(values[codes[codes >= 0]], (0.25, 0.5, 0.75))
        edges = tuple(sorted({float(f"{edge:.6g}") for edge in quartiles}))
    else:
        edges = tuple(bins)
        if not edges or list(edges) != sorted(set(edges)) or not np.isfinite(edges).all():
            word = "quartiles" if key == "bias" else "each"
            raise UserError(f"data.{key}_bins: {list(edges)} given; numbers in ascending order, or {word}, are allowed")
    texts = [f"{edge:.15g}" for edge in edges]
    between = [f"{low} to under {high}" for low, high in pairwise(texts)]
    names = [f"under {texts[0]}", *between, f"{texts[-1]} and over"]
    of_value = np.digitize(values, edges)  # the group of each different value
    occupied, group = np.unique(of_value, return_inverse=True)
    parts, kinds = list(bias.codes_of_columns), list(bias.texts_of_codes)
    parts[place] = np.append(group, -1)[codes]  # -1, not known, stays
    kinds[place] = [names[bin] for bin in occupied]
    return _CodedColumns(bias.column_names, parts, kinds), edges


def number_target_finding(table: "pd.DataFrame", options: UserDataOptions, path: Path) -> ColumnFinding | None:
    """Report a target that is a number not divided into classes; None where it is not one."""
    columns = parse_column_names(options.target, table.columns, path)
    if options.target_bins is not None or len(columns) != 1:
        return None
    texts, decimal = table[columns[0]].astype(str), decimal_mark_of_table(options, path)
    if not is_measured_number(texts, decimal):
        return None
    values = _parse_finite_numbers([text for text in texts if text not in label_files.MISSING_MARKS], decimal)
    assert values is not None  # it is measured
    middle = f"{np.median(values):.6g}"
    problem = f"holds numbers, {len(np.unique(values))} different ones: a number to predict, no classes"
    remedy = (
        f"Make classes of it: data.target_bins: [{middle}] (the median), or thresholds of your own; "
        "data.target_bins: each, if every number is a class"
    )
    return ColumnFinding(columns[0], problem, remedy, "refused", "data.target_bins", (middle,))


def is_measured_number(column: "pd.Series", decimal: str) -> bool:
    """Tell whether a column holds measured numbers: more than `MAX_DISTINCT_CODES`, and no codes from 0 or 1 on."""
    texts = sorted({*column} - {*label_files.MISSING_MARKS})
    values = _parse_finite_numbers(texts, decimal)
    if len(texts) <= MAX_DISTINCT_CODES or values is None:
        return False
    ordered = np.sort(values)
    return not (ordered[0] in (0, 1) and (np.diff(ordered) == 1).all())


def _parse_finite_numbers(texts: Sequence[str], decimal: str) -> NDArray[np.float64] | None:
    """Parse texts as finite numbers, (N,); return None if one is not."""
    try:
        values = np.array([float(to_plain_number(text, decimal)) for text in texts], np.float64)
    except ValueError:
        return None
    return values if len(values) and np.isfinite(values).all() else None


def _check_no_label_spelled_twice(column: "pd.Series", names: Sequence[str], name: str, path: Path) -> None:
    """Raise a UserError if two labels are most likely one that is spelled in two ways.

    They are if they differ only in decimals that are zero (1 and 1.0), or as `normalise_spelling` says.
    """
    seen: dict[str, str] = {}
    for label in names:
        key = normalise_spelling(re.sub(r"(?<=\d)(\.0+|,00?)$", "", label))
        if key in seen:
            counts = column.astype(str).str.strip().value_counts()
            both = " and ".join(f"{quoted(one)} ({counts.get(one, 0)} rows)" for one in (seen[key], label))
            raise UserError(f"{path}: column {quoted(name)} spells one label in two ways: {both}. Write one of them")
        seen[key] = label


def normalise_spelling(word: str) -> str:
    """Normalise a word so that its spellings compare equal.

    They differ in capitals (not of single letters), in how Unicode writes an accent, in kind and number of blanks, or
    in signs that nobody sees.
    """
    seen = "".join(sign for sign in unicodedata.normalize("NFC", word) if unicodedata.category(sign) != "Cf")
    text = " ".join(seen.split())
    return text if len(text) == 1 else text.casefold()


def _read_condition(
    table: "pd.DataFrame", path: Path, options: UserDataOptions, samples: Sequence[str] | None
) -> NDArray[np.float32] | None:
    if options.condition and options.condition_file:
        raise UserError("data.condition, data.condition_file: give one of them, not both")
    if options.condition_file:
        if samples is None:
            raise UserError("data.condition_file: needs data.key, the column with the names of the samples")
        return conditions.read_condition_vectors(label_files.find_user_path(options.condition_file), samples)
    if not options.condition:
        return None
    label_files.check_columns_exist(table.columns, options.condition, path)
    return label_files.columns_to_numbers(table, options.condition, path, decimal_mark_of_table(options, path))


def put_positive_class_last(labels: TableLabels, positive: str | None, path: Path) -> TableLabels:
    """Make the class of this name the last, which every metric takes for the positive one.

    Bias classes that are named like the classes, or are numbers like them, are swapped with them.

    Raises:
        UserError: there are more than two classes, they have no names, or none is named so.
    """
    if positive is None:
        return labels
    names = labels.class_names
    if labels.classes != 2 or names is None:
        what = f"{labels.classes} classes" if names else "several columns combined as classes"
        raise UserError(f"data.positive: {quoted(positive)} given, but {path} has {what}; it is for two classes alone")
    if positive not in names:
        allowed = list_few_names(names)
        raise UserError(f"data.positive: {quoted(positive)} given, no class of {path}. Allowed: {allowed}")
    if positive == names[1]:
        return labels
    turned = replace(labels, target=1 - labels.target, class_names=names[::-1])
    theirs = labels.bias_names
    if labels.bias is None or theirs is None or len(theirs) != 2 or not _have_same_class_names(names, theirs):
        return turned
    return replace(turned, bias=np.where(labels.bias < 0, labels.bias, 1 - labels.bias), bias_names=theirs[::-1])


def _have_same_class_names(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    return set(ours) == set(theirs) or all(name.lstrip("-").isdecimal() for name in (*ours, *theirs))
