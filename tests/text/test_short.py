"""Values as people read them: each kind told from the others, none longer than a table takes."""

from typing import Any

import pytest

from study.text import MAX_SHOWN_VALUE_CHARACTERS, format_parameter, format_range_ends


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
    assert format_parameter(value) == text


@pytest.mark.parametrize("value", ["z" * 7000, [["z" * 7000]]])
def test_a_long_value_is_cut(value: Any) -> None:
    text = format_parameter(value)
    assert len(text) <= MAX_SHOWN_VALUE_CHARACTERS
    assert "(7000 characters)" in text


def test_ranges_of_whole_numbers_and_of_others_differ() -> None:
    assert (format_range_ends(0, 1), format_range_ends(0.0, 1.0), format_range_ends(0, 1.0)) == (
        "0 to 1",
        "0.0 to 1.0",
        "0.0 to 1.0",
    )
    assert format_range_ends(10, 1234567) == "10 to 1234567"
