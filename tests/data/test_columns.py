"""Columns as inputs: fitted once, then the same for any table; what cannot be one is told by row and column."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study.data.table_columns import MISSING_CATEGORY, encode_rows, fit_column_encoding

TRAIN = pd.DataFrame(
    {"age": [20, 30, 40, 90], "job": ["cook", "nurse", "cook", "clerk"], "paid": ["True", "False", "True", "True"]}
)
ENCODING = tuple(fit_column_encoding(TRAIN[name], np.arange(3), False) for name in TRAIN)


def test_numbers_are_scaled_by_the_training_rows_and_texts_are_those_of_all_rows() -> None:
    age, job, paid = ENCODING
    assert (age.mean, age.deviation) == (30.0, pytest.approx(np.std([20, 30, 40])))
    assert job.values == ("clerk", "cook", "nurse")
    inputs, problems = encode_rows(pd.DataFrame({"paid": ["true"], "job": ["nurse"], "age": ["40"]}), ENCODING)
    assert problems == {}
    np.testing.assert_allclose(inputs, [[10 / np.std([20, 30, 40]), 0, 0, 1, 0, 1]], rtol=1e-6)
    assert paid.values == ("False", "True")


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        ({"age": "old"}, "column 'age': 'old' is no number"),
        ({"age": None}, "column 'age': is empty, a number is needed"),
        ({"age": np.inf}, "column 'age': is empty, a number is needed"),
        ({"age": "1e300"}, "column 'age': '1e300' is more than 3.4e+38 deviations of the training rows away"),
        ({"age": pd.Timestamp("2020-01-01")}, "is no number"),
        ({"job": "Cook"}, "column 'job': 'Cook' is in no row of the training table"),
        ({"job": None}, "column 'job': is empty, as none of the training table is"),
        ({"paid": "maybe"}, "column 'paid': 'maybe' is in no row of the training table"),
        ({"age": "old", "job": "x"}, "column 'age': 'old' is no number; column 'job': 'x' is in no row"),
    ],
)
def test_a_cell_that_cannot_be_an_input_is_told_and_the_others_stay(cells: dict[str, object], problem: str) -> None:
    sound = {"age": 30, "job": "cook", "paid": "True"}
    frame = pd.DataFrame([sound, {**sound, **cells}, sound])
    inputs, problems = encode_rows(frame, ENCODING)
    assert list(problems) == [1]
    assert problem in "; ".join(map(str, problems[1]))
    np.testing.assert_array_equal(inputs[[0, 2]], [[0, 0, 1, 0, 0, 1]] * 2)


def test_missing_values_are_filled_where_training_filled_them() -> None:
    frame = pd.DataFrame({"age": [1.0, np.nan, 3.0], "job": ["a", MISSING_CATEGORY, "b"]})
    encoding = tuple(fit_column_encoding(frame[name], np.arange(3), True) for name in frame)
    inputs, problems = encode_rows(pd.DataFrame({"age": [None, 2.0], "job": [None, "a"]}), encoding)
    assert problems == {}
    assert inputs.tolist() == [[0, 1, 0, 0], [0, 0, 1, 0]]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.floats(-1e30, 1e30) | st.integers(-(10**9), 10**9), min_size=2, max_size=8),
    words=st.lists(st.text("abc 1.", min_size=1, max_size=3), min_size=8, max_size=8),
)
def test_a_row_alone_is_as_it_was_among_the_others(values: list[float], words: list[str]) -> None:
    frame = pd.DataFrame({"number": values, "word": words[: len(values)]}).astype({"word": object})
    encoding = tuple(fit_column_encoding(frame[name], np.arange(len(frame)), False) for name in frame)
    together, problems = encode_rows(frame, encoding)
    assert problems == {}
    assert np.isfinite(together).all()
    for row in range(len(frame)):
        np.testing.assert_array_equal(encode_rows(frame.iloc[[row]], encoding)[0][0], together[row])


def test_a_decimal_comma_in_texts_is_read_and_a_point_beside_it_is_none() -> None:
    inputs, problems = encode_rows(pd.DataFrame({"age": ["30,5", 31, "1.23", "x", "1.234,5"]}), ENCODING[:1], ",")
    expected = np.array([30.5, 31, 1234.5]) - 30
    np.testing.assert_allclose(inputs[[0, 1, 4], 0], expected / np.std([20, 30, 40]), rtol=1e-6)
    assert {row: [fault.quoted_cell for fault in faults] for row, faults in problems.items()} == {
        2: ["'1.23'"],
        3: ["'x'"],
    }
