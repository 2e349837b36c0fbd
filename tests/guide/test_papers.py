"""The page on the papers accounts for every printed table: one row each, by a word that the page explains."""

import re

import pytest
from pages import GUIDE
from paper_texts import TEXTS, needs_texts, paper_text

from study import published

PAGE = (GUIDE / "papers.md").read_text(encoding="utf-8")
HEADS = {"fairkl": "FairKL", "cclk": "CCL-K", "dcl": "DCL", "wcl": "WCL", "fscl": "FSCL"}


def rows(paper: str) -> list[list[str]]:
    """The cells of a paper's rows."""
    section = PAGE.partition(f"\n### {HEADS[paper]}\n")[2].partition("\n###")[0].partition("\n## ")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in re.findall(r"^\| Table .*$", section, re.M)]


def test_every_table_that_has_a_name_is_on_the_page() -> None:
    assert [name for name in published.names() if not re.search(rf"`{name}\b", PAGE)] == []


@needs_texts
@pytest.mark.parametrize("paper", TEXTS)
def test_every_table_of_a_papers_text_has_one_row(paper: str) -> None:
    captions = sorted({int(number) for number in re.findall(r"^Table (\d+)[.:]", paper_text(paper), re.MULTILINE)})
    assert [row[0] for row in rows(paper)] == [f"Table {number}" for number in captions]
