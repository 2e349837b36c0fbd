"""Text in a CSV file is no formula, numbers stay numbers, and it reads back as it was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.text import escape_formula, unescape_formula


@pytest.mark.parametrize("text", ["=1+2", "+cmd|'/c calc'!A0", "-1+2", "@SUM(A1)", "\t=1", "\r=1", "-", "-x", "+1_0"])
def test_a_formula_gets_an_apostrophe(text: str) -> None:
    assert escape_formula(text) == f"'{text}"


@pytest.mark.parametrize("text", ["-0.5", "+3", "-1e-5", "-.5", "-5.", "a=b", "", " ", "'quoted'", "1-2", "a@b"])
def test_numbers_and_other_text_stay(text: str) -> None:
    assert escape_formula(text) == text


@given(st.text(alphabet="'=+-@\t\r 1.eax") | st.text())
def test_it_reads_back_as_it_was(text: str) -> None:
    assert unescape_formula(escape_formula(text)) == text
    assert escape_formula(text)[:1] not in ("=", "@", "\t", "\r")
