"""The guide in the terminal: its list, a page, the places of words."""

import pytest
from pages import GUIDE

from study.commands.guide import find, guide, pages
from study.errors import UserError


def test_no_word_shows_the_list_of_all_pages() -> None:
    listed = guide([])
    assert all(f"({name}.md)" in listed for name in pages() if name != "index")


@pytest.mark.parametrize("words", [["study-files"], ["Study", "files"], ["study-files.md"]])
def test_a_page_by_its_name(words: list[str]) -> None:
    assert guide(words) == (GUIDE / "study-files.md").read_text("utf-8")


def test_words_are_found_in_any_order_and_case_first_where_a_heading_has_them() -> None:
    text = {
        "one": "# One\n\nThe worst\ngroup.\n\n```sh\nstudy group # the WORST\n```\n",
        "two": "# Two\n\n## The worst group\n\n| group |\n|---|\n| other |\n\nNot this one? Yes: its heading.\n",
    }
    found = [(place.page, place.heading, place.text) for place in find(["group", "worst"], text)]
    assert found == [
        ("two", "The worst group", "| group |"),
        ("two", "The worst group", "| other |"),
        ("two", "The worst group", "Not this one? Yes: its heading."),
        ("one", "One", "The worst group."),
        ("one", "One", "study group # the WORST"),
    ]


def test_places_are_told_with_page_heading_and_the_words() -> None:
    lines = [line for line in guide(["trial"]).splitlines() if line.startswith("- **")]
    assert len(lines) == 20
    assert all("trial" in line.lower() and len(line) < 300 for line in lines)
    assert "more places: give more words." in guide(["trial"])


def test_an_unknown_word_names_the_pages_and_the_nearest() -> None:
    with pytest.raises(UserError, match=r"'selektion'.*Did you mean 'selection'\? Pages: .*troubleshooting"):
        guide(["selektion"])
