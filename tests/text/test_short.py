"""Values as people read them: each kind told from the others, none longer than a table takes."""

from typing import Any

import pytest

from study.text import LONGEST_VALUE, ends, parameter


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ("null", '"null"'),
        ("-", '"-"'),
        ("", '""'),
        (True, "true"),
        ("true", '"true"'),
        (1, "1"),
        ("1", '"1"'),
        ("1e3", '"1e3"'),
        (0.123456, "0.1235"),
        (1.0, "1.0"),
        (-3.0, "-3.0"),
        (1e20, "1e+20"),
        ("adam", "adam"),
        ([], "none"),
        ([1, None, "x"], "1, null, x"),
    ],
)
def test_a_parameters_kind_is_told(value: Any, text: str) -> None:
    assert parameter(value) == text


@pytest.mark.parametrize("value", ["z" * 7000, [["z" * 7000]]])
def test_a_long_value_is_cut(value: Any) -> None:
    text = parameter(value)
    assert len(text) <= LONGEST_VALUE
    assert "(7000 characters)" in text


def test_ranges_of_whole_numbers_and_of_others_differ() -> None:
    assert (ends(0, 1), ends(0.0, 1.0), ends(0, 1.0)) == ("0 to 1", "0.0 to 1.0", "0.0 to 1.0")
    assert ends(10, 1234567) == "10 to 1234567"
