"""Whatever a file holds, a message about it is one line that can be read."""

from hypothesis import given
from hypothesis import strategies as st

from study.text import MAX_QUOTED_CHARACTERS, list_few_names, quoted


def test_short_text_is_as_it_is() -> None:
    assert quoted("a b") == "'a b'"
    assert list_few_names(["a", "b c"]) == "a, b c"
    assert list_few_names([str(number) for number in range(14)]).endswith("10, 11 and 2 more")


def test_long_text_is_shortened() -> None:
    assert len(quoted("x" * 5000)) <= MAX_QUOTED_CHARACTERS
    assert len(list_few_names(["x" * 5000] * 3000)) < 13 * (MAX_QUOTED_CHARACTERS + 10)


@given(st.text(max_size=400))
def test_it_is_one_line_of_printable_letters(text: str) -> None:
    assert quoted(text).isprintable()
    assert list_few_names([text]).isprintable()
