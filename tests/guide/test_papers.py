"""The page on the papers accounts for every printed table: one row each, by a word that the page explains."""

import re
from collections import Counter

import pytest
from pages import GUIDE
from paper_texts import TEXTS, needs_texts, paper_text

from study import published

PAGE = (GUIDE / "papers.md").read_text(encoding="utf-8")
HEADS = {"fairkl": "FairKL", "cclk": "CCL-K", "dcl": "DCL", "wcl": "WCL", "fscl": "FSCL"}
WORDS = dict(re.findall(r"^\| ([a-z ,]+) \| .+ \| (\d+) \|$", PAGE, re.MULTILINE))


def rows(paper: str) -> list[list[str]]:
    """The cells of a paper's rows."""
    section = PAGE.partition(f"\n### {HEADS[paper]}\n")[2].partition("\n###")[0].partition("\n## ")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in re.findall(r"^\| Table .*$", section, re.M)]


def test_every_row_has_a_word_of_the_page_as_often_as_the_page_says() -> None:
    found = Counter(row[2] for paper in HEADS for row in rows(paper))
    assert {word: int(count) for word, count in WORDS.items()} == found
    assert f"print {found.total()} tables" in PAGE


@pytest.mark.parametrize("name", published.names())
def test_every_table_that_has_a_name_is_on_the_page(name: str) -> None:
    assert re.search(rf"`{name}\b", PAGE)


def test_a_row_names_the_table_of_its_number() -> None:
    tables = [(name, published.load(name)) for name in published.names()]
    numbered = {name: (table.paper.key, re.match(r"Table \d+", table.source)) for name, table in tables}
    assert sum(number is not None for _, number in numbered.values()) > 20
    for name, (paper, number) in numbered.items():
        if number:
            assert next(row[1] for row in rows(paper) if row[0] == number[0]).startswith(f"`{name}")


@needs_texts
@pytest.mark.parametrize("paper", TEXTS)
def test_every_table_of_a_papers_text_has_one_row(paper: str) -> None:
    captions = sorted({int(number) for number in re.findall(r"^Table (\d+)[.:]", paper_text(paper), re.MULTILINE)})
    assert [row[0] for row in rows(paper)] == [f"Table {number}" for number in captions]
