"""Find columns of a user's table that may not be what they seem.

They are numbers of rows, constants, codes, marks of missing values, dates, and words that are spelled in two ways.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from study.data import user_data
from study.data.table_columns import MISSING_CATEGORY, column_as_numbers, is_numeric
from study.data.table_findings import (
    MISSING_MARKS_KEY,
    WORD_COLUMNS_KEY,
    ColumnFinding,
    FindingKind,
    key_with_values,
    leave_out_finding,
)
from study.text import list_few_names, pluralise, quoted

if TYPE_CHECKING:
    import pandas as pd


MIN_ROWS = 20
"""Number of rows from which on values that are all different, or in even steps, are no accident."""

MAX_BIRTHDAY_EXPONENT = 20.0
"""N whole numbers drawn from R are all different with a chance of about exp(-N^2 / 2R) (the birthday problem). Numbers
that are all different although this exponent is larger were counted, not measured.
"""

MAX_ROW_NUMBER_STEP = 20
"""Mean step up to which whole numbers that rise from row to row count the rows, some of which were removed."""

ID_NAME_PATTERN = re.compile(
    r"(?:^|[_\W]|(?<=[a-z])(?=[A-Z]))(?i:ids?|uuid|guid|index|idx|no|nr|nbr|num|number|key|rownum)$|^(?i:id|uuid)(?=[_\W])"
)
"""Names of columns that number or name the rows: `id`, `PassengerId`, `patient_nbr`, `case number`, `id_case`."""

ID_VALUE_PATTERN = re.compile(
    r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|(?=.*\d)[A-Za-z][\w-]*|(?=.*\d)[0-9a-fA-F]{16,}"
)
"""A UUID, a code of letters and digits, a hash."""

MIN_DISTINCT_ID_SHARE = 0.05
"""Number of different ids, as a share of the rows, from which on ids that repeat are groups of rows."""


def row_number_columns(rows: "pd.DataFrame", features: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that count or name the rows: all values differ, and their name or their form says so.

    The rows may be in any order. Where a file is sorted by class, such a number predicts the class of every row.
    """
    return tuple(name for name in features if len(rows) >= MIN_ROWS and _is_row_number(rows[name]))


def _is_row_number(column: "pd.Series") -> bool:
    is_named = ID_NAME_PATTERN.search(str(column.name)) is not None
    if column.dtype.kind not in "iuf":
        if is_numeric(column) or column.dtype.kind in "bmM" or not column.is_unique:
            return False
        texts = column.astype(str)
        return not column.isna().any() and (
            is_named or bool(texts.map(lambda text: bool(ID_VALUE_PATTERN.fullmatch(text))).all())
        )
    values = column.to_numpy(np.float64)
    if not np.isfinite(values).all() or (values % 1).any():
        return False
    steps = np.diff(np.sort(values))
    if steps[0] <= 0:
        return False
    if (steps == steps[0]).all():
        return True
    extent = float(steps.sum()) + 1
    is_rising = bool((np.diff(values) > 0).all() or (np.diff(values) < 0).all())
    is_crowded = steps.min() > 0 and len(values) ** 2 / (2 * extent) > MAX_BIRTHDAY_EXPONENT
    return bool(steps.min() > 0) and (
        is_named or is_crowded or (is_rising and extent <= MAX_ROW_NUMBER_STEP * len(values))
    )


def row_number_finding(name: str) -> ColumnFinding:
    """Make the finding about a column that counts or names the rows."""
    problem = "counts the rows and is no input: it may tell the class"
    return ColumnFinding(name, problem, "With it: name the inputs in data.features", "left out", "", ())


SENTINEL_NUMBERS = (-1.0, *(sign * float(10**digits - 1) for digits in range(2, 7) for sign in (-1, 1)))
"""Numbers that programs write where none was measured: -1, 99, -999 and so on."""

MIN_SENTINEL_ROWS, MIN_SENTINEL_SHARE, MIN_SENTINEL_DISTANCE_RATIO = 3, 0.01, 5.0
"""Least number of rows with such a number; their least share where it is -1 below numbers from 0 on; otherwise, how
many times the usual step between the others it is at least away from them.
"""

MAX_CATEGORY_CODES, MIN_LARGEST_CATEGORY_CODE = 20, 100
"""Largest number of different whole numbers in a column of codes, and least size of its largest."""

MAX_ZERO_GAP_SHARE, MIN_SMALLEST_TO_MEDIAN = 0.5, 0.2
"""Largest share of zeros that may be gaps; and the least part of the others' median that the smallest of these has."""


def find_odd_columns(rows: "pd.DataFrame", features: Sequence[str]) -> list[ColumnFinding]:
    """Find what is odd about the inputs, in their order."""
    checks = [_constant_findings, _repeated_id_findings, _sentinel_findings, _category_code_findings]
    checks += [_date_findings, _spelling_findings, _missing_word_findings]
    return [found for name in features for check in checks for found in check(rows[name])]


def _constant_findings(column: "pd.Series") -> Iterator[ColumnFinding]:
    values = column.unique()
    if len(values) == 1:
        one = values[0]
        what = f"{one:g}" if isinstance(one, int | float | np.number) else quoted(str(one))
        problem = f"is {'empty' if column.isna().all() else what} in every row"
        yield leave_out_finding(str(column.name), problem, "constant")


def _repeated_id_findings(column: "pd.Series") -> Iterator[ColumnFinding]:
    name, count = str(column.name), column.nunique()
    if not ID_NAME_PATTERN.search(name) or not max(MIN_ROWS, MIN_DISTINCT_ID_SHARE * len(column)) <= count < len(
        column
    ):
        return
    if is_numeric(column) and (column_as_numbers(column.dropna()) % 1).any():
        return
    problem = f"names what the rows are of: {count} different ones in {len(column)} rows"
    remedy = "As data.group their rows stay in one split, and it is no input"
    yield ColumnFinding(name, problem, remedy, "odd", "data.group", (name,))


def _count_distinct_numbers(column: "pd.Series") -> tuple[NDArray[np.float64], NDArray[np.int64]] | None:
    """Count each different number of a column; None for words, infinite numbers, or fewer than 3 different ones."""
    if not is_numeric(column):
        return None
    values, counts = np.unique(column_as_numbers(column.dropna()), return_counts=True)
    return (values, counts.astype(np.int64)) if len(values) > 2 and np.isfinite(values).all() else None


def _sentinel_findings(column: "pd.Series") -> Iterator[ColumnFinding]:
    """Find a number at either end that may stand for a missing value: it is frequent, and far from all others."""
    found = _count_distinct_numbers(column)
    if found is None:
        return
    values, counts = found
    for at, others in ((0, values[1:]), (len(values) - 1, values[:-1])):
        mark, times, steps = values[at], int(counts[at]), np.diff(others)
        hole = float(np.abs(others - mark).min())
        is_away = times >= MIN_SENTINEL_ROWS and hole >= max(
            MIN_SENTINEL_DISTANCE_RATIO * float(np.median(steps)), np.ptp(others) / MIN_SENTINEL_DISTANCE_RATIO
        )
        is_below = (
            mark == -1
            and len(others) >= MAX_CATEGORY_CODES
            and others[0] >= 0
            and times >= MIN_SENTINEL_SHARE * counts.sum()
        )
        if mark in SENTINEL_NUMBERS and (is_away or is_below):
            problem = f"is {mark:.0f} in {times} rows, far from all others"
            yield _finding_with_remedy_key(
                column, problem, "If it means a missing value", MISSING_MARKS_KEY, f"{mark:.0f}"
            )
    others = values[1:]
    is_rare = (
        values[0] == 0
        and MIN_SENTINEL_ROWS <= counts[0] < MAX_ZERO_GAP_SHARE * counts.sum()
        and len(others) >= MAX_CATEGORY_CODES
    )
    if is_rare and others[0] >= max(
        MIN_SMALLEST_TO_MEDIAN * np.median(others), MIN_SENTINEL_DISTANCE_RATIO * float(np.median(np.diff(others)))
    ):
        problem = f"is 0 in {int(counts[0])} rows, and {others[0]:g} or more in all others"
        yield ColumnFinding(str(column.name), problem, "Make these cells empty if it means a missing value", "odd")


def _category_code_findings(column: "pd.Series") -> Iterator[ColumnFinding]:
    found = _count_distinct_numbers(column)
    if found is None:
        return
    values, counts = found
    is_whole = values[0] >= 0 and not (values % 1).any() and (values % 5).any()  # 50, 100, 250 are amounts
    is_few = len(values) <= MAX_CATEGORY_CODES and counts.sum() >= MAX_CATEGORY_CODES * len(values) / 2
    if is_few and is_whole and values[-1] >= MIN_LARGEST_CATEGORY_CODE and len(np.unique(np.diff(values))) > 1:
        shown = list_few_names([f"{value:g}" for value in values], 3)
        problem = f"has {len(values)} different whole numbers, as codes have: {shown}"
        yield _finding_with_remedy_key(column, problem, "If they are codes", WORD_COLUMNS_KEY, str(column.name))


def _finding_with_remedy_key(column: "pd.Series", problem: str, when: str, key: str, *values: str) -> ColumnFinding:
    """Make a remark, and name the key that helps if it is true."""
    return ColumnFinding(str(column.name), problem, f"{when}: {key_with_values(key, values)}", "odd", key, values)


def _date_findings(column: "pd.Series") -> Iterator[ColumnFinding]:
    """Find whole numbers that are dates, as 20260131."""
    import pandas as pd

    there = column.dropna()
    if not is_numeric(there) or not len(there) or not there.between(1e7, 1e8 - 1).all() or (there % 1).any():
        return
    texts = there.map("{:.0f}".format)
    if pd.to_datetime(texts, format="%Y%m%d", errors="coerce").notna().all():
        problem = f"looks like dates, as {texts.iloc[0]}, and is read as a number"
        yield leave_out_finding(str(column.name), problem, "odd")


LIKELY_MISSING_WORDS = frozenset(
    ("?", "??", "-", "--", "---", ".", "..", "n.a.", "N.A.", "na", "n/k", "*", "#NULL!", "#VALUE!")
)
"""Words that people and programs write for a missing value, besides those of `label_files.MISSING_MARKS`."""


def _missing_word_findings(column: "pd.Series") -> Iterator[ColumnFinding]:
    """Find words that look like a missing value."""
    if there := [] if is_numeric(column) else sorted({*column.unique()} & LIKELY_MISSING_WORDS):
        counts = [f"{quoted(word)} ({int((column == word).sum())} rows)" for word in there]
        problem = f"has the words {list_few_names(counts)}"
        yield _finding_with_remedy_key(column, problem, "If they mean a missing value", MISSING_MARKS_KEY, *there)


def _spelling_findings(column: "pd.Series") -> Iterator[ColumnFinding]:
    """Find words that differ by capitals or by how Unicode writes an accent alone."""
    if is_numeric(column):
        return
    alike: dict[str, list[str]] = {}
    for word in sorted(map(str, column.dropna().unique())):
        alike.setdefault(user_data.normalise_spelling(word), []).append(word)
    if several := [list_few_names([quoted(word) for word in words]) for words in alike.values() if len(words) > 1]:
        problem = f"has words that may be one: {'; '.join(several[:3])}"
        remedy = "Each is a kind of its own; write them alike if they are one"
        yield ColumnFinding(str(column.name), problem, remedy, "odd")


SMALL_GROUP_ROWS = 20
"""Rows of a cell or a bias class below which its own figures say next to nothing."""


def find_small_groups(column: str, labels: user_data.TableLabels, folds: int | None) -> list[ColumnFinding]:
    """Find the bias classes that have few rows, and of the others the cells, pairs of class and bias class.

    Args:
        column: name of the bias column.
        folds: into how many the rows are divided.
    """
    if labels.bias is None:
        return []
    known = labels.bias >= 0
    target, bias = labels.target[known], labels.bias[known]
    of_class = dict(zip(*(found.tolist() for found in np.unique(bias, return_counts=True)), strict=True))
    pairs, counts = np.unique(np.stack([target, bias], 1), axis=0, return_counts=True)
    few = [
        (pair, count)
        for pair, count in sorted(zip(pairs.tolist(), counts.tolist(), strict=True), key=lambda one: one[1])
        if count < SMALL_GROUP_ROWS <= of_class[pair[1]]
    ]
    names, found = (labels.class_names, labels.bias_names), []
    if few:
        told = (" with ".join(map(_class_name_or_number, names, pair)) for pair, _ in few)
        remedy = f"As expected where {column} goes with the class; what is measured on one alone is mostly luck"
        remedy += f"; the {folds} folds judge their rows together" if folds else ""
        what = pluralise(len(few), "cell")
        problem = f"has {what} of class and {column} {_small_groups_text(told, [count for _, count in few])}"
        found.append(ColumnFinding(column, problem, remedy, "odd"))
    if small := {code: count for code, count in of_class.items() if count < SMALL_GROUP_ROWS}:
        told = (_class_name_or_number(labels.bias_names, code) for code in small)
        what = pluralise(len(small), "bias class", "bias classes")
        remedy = "What is measured on so few is mostly luck: merge such bias classes in the table"
        found.append(ColumnFinding(column, f"has {what} {_small_groups_text(told, small.values())}", remedy, "odd"))
    return found


def _class_name_or_number(names: Sequence[str] | None, code: int) -> str:
    return quoted(names[code]) if names else str(code)


def _small_groups_text(names: Iterable[str], counts: Iterable[int]) -> str:
    shown = [f"{name} ({pluralise(count, 'row')})" for name, count in zip(names, counts, strict=True)]
    return f"of fewer than {SMALL_GROUP_ROWS} rows: {list_few_names(shown, 4)}"


def find_inputs_one_to_one_with_label(
    rows: "pd.DataFrame",
    features: Sequence[str],
    codes: NDArray[np.int64] | None,
    key: str,
    named: Sequence[str],
    kind: FindingKind = "odd",
) -> list[ColumnFinding]:
    """Find each input that has one value for each class or bias class.

    Args:
        codes: of each row, (N,), -1 where unknown; None: there are none.
        key: of the study file that names the `named` columns, which do not count.
        kind: of the finding: `refused` where nobody named the input.
    """
    if codes is None:
        return []
    keep = "keep it by naming the inputs in data.features" if kind == "refused" else ""
    there, codes = rows[codes >= 0], codes[codes >= 0]
    kinds, told = len(np.unique(codes)), f"{key} ({'+'.join(named)})"
    return [
        leave_out_finding(name, f"is an input, and has one value for each value of {told}: it tells it", kind, keep)
        for name in features
        if name not in named
        and kinds == there[name].nunique() == there[name].groupby([there[name], codes], dropna=False).ngroups
    ]


def inputs_as_numbers(
    rows: "pd.DataFrame", features: Sequence[str]
) -> tuple[Mapping[str, NDArray[np.float64]], list[str]]:
    """Return the inputs as numbers, NaN where one is missing, and the names of those whose numbers stand for words."""
    import pandas as pd

    found, words = dict[str, NDArray[np.float64]](), []
    for name in features:
        if is_numeric(rows[name]):
            found[name] = column_as_numbers(rows[name])
            continue
        place = pd.factorize(rows[name])[0].astype(np.float64)
        found[name] = np.where((place < 0) | (rows[name] == MISSING_CATEGORY), np.nan, place)
        words.append(name)
    return found, words
