"""Columns that may not be what they seem: numbers of rows, constants, codes, marks of missing values, groups."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study.data.odd_columns import find_odd_columns, find_small_groups, row_number_columns
from study.data.user_data import TableLabels

ROWS = 300
DRAW = np.random.default_rng(0)


def counts(name: str, values: object) -> bool:
    rows = pd.DataFrame({name: values})
    return row_number_columns(rows, [name]) == (name,)


GAPS = np.sort(DRAW.choice(3 * ROWS, ROWS, replace=False))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("anything", GAPS),
        ("anything", DRAW.permutation(GAPS)),
        ("anything", GAPS[::-1].astype(float)),
        ("id", DRAW.choice(10**9, ROWS, replace=False)),
        ("PassengerId", DRAW.choice(10**9, ROWS, replace=False)),
        ("patient_nbr", DRAW.choice(10**9, ROWS, replace=False)),
        ("case number", DRAW.choice(10**9, ROWS, replace=False)),
        ("key", [f"row {n} of {n * n % 97}" for n in range(ROWS)]),
        ("anything", [f"A-{n:05d}" for n in DRAW.permutation(ROWS)]),
        ("anything", [f"{n:08x}-0000-4000-8000-{n:012x}" for n in DRAW.permutation(ROWS)]),
    ],
)
def test_what_counts_or_names_the_rows_is_found_by_name_and_behaviour(name: str, values: object) -> None:
    assert counts(name, values)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("income", DRAW.choice(10**6, ROWS, replace=False)),
        ("income", np.sort(DRAW.choice(10**6, ROWS, replace=False))),
        ("id", DRAW.integers(0, 40, ROWS)),
        ("id", DRAW.normal(size=ROWS)),
        ("paid", DRAW.choice(10**6, ROWS, replace=False)),
        ("grid", DRAW.choice(10**6, ROWS, replace=False)),
        ("age", DRAW.integers(20, 70, ROWS)),
        ("day", [f"2026-01-{n % 28:02d} {n}" for n in range(ROWS)]),
        ("price", [f"${n}.50" for n in range(ROWS)]),
    ],
)
def test_a_measurement_is_none(name: str, values: object) -> None:
    assert not counts(name, values)


def test_of_few_rows_no_column_counts_them() -> None:
    rows = pd.DataFrame({"id": GAPS, "even": 7 * np.arange(ROWS)})
    assert row_number_columns(rows, ["id", "even"]) == ("id", "even")
    assert row_number_columns(rows.head(19), ["id", "even"]) == ()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 9999), count=st.integers(20, 400), most=st.integers(1, 10**7))
def test_whole_numbers_that_were_drawn_are_never_taken_for_counted_ones(seed: int, count: int, most: int) -> None:
    assert not counts("value", np.random.default_rng(seed).integers(0, most + count, count))


def problems(values: object, name: str = "x") -> list[str]:
    return [one.problem for one in find_odd_columns(pd.DataFrame({name: values}), [name])]


NORMAL = DRAW.normal(70, 9, ROWS).round(1)
MARKED = np.arange(ROWS) % 30 == 0


@pytest.mark.parametrize(
    ("values", "says", "helps"),
    [
        (np.full(ROWS, 3.5), "is 3.5 in every row", "data.without: [x]"),
        (np.full(ROWS, np.nan), "is empty in every row", "data.without: [x]"),
        (["a"] * ROWS, "is 'a' in every row", "data.without: [x]"),
        (np.where(MARKED, -999, NORMAL), "is -999 in 10 rows, far from all others", 'data.missing_marks: ["-999"]'),
        (np.where(MARKED, 9999, NORMAL), "is 9999 in 10 rows, far from all others", 'data.missing_marks: ["9999"]'),
        (np.where(MARKED, 0, NORMAL), "is 0 in 10 rows, and ", "Make these cells empty if it means a missing value"),
        (np.where(MARKED, -1, DRAW.integers(0, 90, ROWS)), "is -1 in 10 rows", 'data.missing_marks: ["-1"]'),
        (DRAW.choice([1131, 112, 2045, 3007], ROWS), "has 4 different whole numbers, as codes have", "data.words: [x]"),
        (np.where(MARKED, "?", "word"), "has the words '?' (10 rows)", 'data.missing_marks: ["?"]'),
    ],
)
def test_what_is_odd_is_named_with_the_key_that_helps(values: object, says: str, helps: str) -> None:
    (found,) = find_odd_columns(pd.DataFrame({"x": values}), ["x"])
    assert found.problem.startswith(says)
    assert found.remedy_text == helps


@pytest.mark.parametrize(
    "values",
    [
        NORMAL,
        DRAW.integers(0, 5, ROWS),
        DRAW.integers(-1, 2, ROWS),
        DRAW.poisson(2, ROWS),
        DRAW.exponential(1000, ROWS).round(),
        np.where(DRAW.random(ROWS) < 0.9, 0, DRAW.uniform(100, 200, ROWS)),
        DRAW.choice([50, 100, 250, 500], ROWS),
        DRAW.integers(0, 100, ROWS),
    ],
)
def test_ordinary_numbers_are_not_odd(values: object) -> None:
    assert problems(values) == []


def test_an_id_that_repeats_is_a_group_and_groups_of_few_rows_are_named() -> None:
    (found,) = find_odd_columns(pd.DataFrame({"patient_id": np.arange(ROWS) // 3}), ["patient_id"])
    assert found.remedy_text == "data.group: patient_id"
    bias = np.repeat([0, 1, -1, 0, 1], [9, 200, 5, 20, 40])
    labels = TableLabels(np.repeat([0, 1], [214, 60]), bias, 2, 2, None, ("no", "yes"), ("a", "b"))
    (few,) = find_small_groups("race", labels, None)
    assert few.problem == "has 1 cell of class and race of fewer than 20 rows: 'no' with 'a' (9 rows)"


def test_small_cells_of_a_bias_that_goes_with_the_class_are_expected_and_small_bias_classes_are_merged() -> None:
    """Nobody can merge cells of class and bias, as was said to do."""
    pairs = [(0, 0, 90), (1, 1, 90), (0, 1, 3), (1, 0, 2), (0, 2, 9), (1, 2, 1)]
    target, bias = (np.repeat([pair[place] for pair in pairs], [pair[2] for pair in pairs]) for place in (0, 1))
    labels = TableLabels(target, bias, 2, 3, None, ("no", "yes"), ("a", "b", "c"))
    cells, classes = find_small_groups("depot", labels, None)
    assert cells.problem == (
        "has 2 cells of class and depot of fewer than 20 rows: 'yes' with 'a' (2 rows), 'no' with 'b' (3 rows)"
    )
    assert cells.remedy == "As expected where depot goes with the class; what is measured on one alone is mostly luck"
    assert classes.problem == "has 1 bias class of fewer than 20 rows: 'c' (10 rows)"
    assert classes.remedy == "What is measured on so few is mostly luck: merge such bias classes in the table"
    judged = find_small_groups("depot", labels, 5)[0].remedy
    assert judged == f"{cells.remedy}; the 5 folds judge their rows together"
