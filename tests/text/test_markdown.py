"""Markdown that prints what it was given, against a parser of Markdown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from study.text import Markdown, escape_markdown, rows_as_markdown

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
TEXT = st.text(st.sampled_from(list("ab 1.,:-+|*_`\\<>[]()#&~!$%=\n\t")), max_size=12)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a|b", r"a\|b"), ("method.tau_plus", "method.tau_plus"), ("_a_ *b*", r"\_a\_ \*b\*"), ("a\n\n# b", r"a \# b")],
)
def test_text_is_printed_as_it_is(text: str, expected: str) -> None:
    assert escape_markdown(text) == expected


@given(TEXT)
def test_what_is_escaped_is_not_escaped_again(text: str) -> None:
    assert escape_markdown(escape_markdown(text)) == escape_markdown(text)


@given(st.lists(TEXT, min_size=4, max_size=4))
def test_a_parser_finds_in_a_table_what_was_given(cells: list[str]) -> None:
    tokens = PARSER.parse(rows_as_markdown(cells[:2], [cells[2:]], [True, False]))
    found = ["".join(part.content for part in one.children or []) for one in tokens if one.type == "inline"]
    assert {part.type for one in tokens for part in one.children or []} <= {"text"}
    assert found == [" ".join(cell.split()) for cell in cells]


def test_a_table() -> None:
    found = rows_as_markdown(["name", "a|b"], [["*x*", Markdown("**7.1**")], ["y\nz", "8"]], [False, True])
    assert found.splitlines() == ["| name | a\\|b |", "| --- | ---: |", "| \\*x\\* | **7.1** |", "| y z | 8 |"]
    assert rows_as_markdown(["name"], []).splitlines() == ["| name |", "| --- |"]
