"""The texts of the papers whose tables are shipped, and the numbers in them.

The texts are looked for in shared/papers beside the project, or in what `STUDY_PAPERS` names.
"""

import os
import re
from functools import cache
from pathlib import Path

import pytest
from helpers import ROOT

from study.published import PublishedTable, load_published_table

PAPERS = Path(os.environ.get("STUDY_PAPERS", ROOT.parent / "shared" / "papers"))
TEXTS = {
    "fairkl": "fairkl-unbiased-supervised-contrastive.txt",
    "dcl": "debiased-contrastive-learning.txt",
    "cclk": "ccl-k-conditional-contrastive-kernel.txt",
    "wcl": "wcl-difficulty-based-sampling.txt",
    "fscl": "fscl-fair-supervised-contrastive.txt",
}
NEARBY = 6000
"""Characters before and after a caption in which its table is looked for."""

needs_texts = pytest.mark.skipif(not PAPERS.is_dir(), reason="the papers' texts are not at hand")


@cache
def table(name: str) -> PublishedTable:
    return load_published_table(name)


def places(of: PublishedTable) -> list[tuple[str, str]]:
    """Row and column labels of each cell."""
    return [(row.label, column.label) for row in of.rows for column in of.columns]


def paper_text(key: str) -> str:
    """The text of a paper, by its key."""
    return (PAPERS / TEXTS[key]).read_text(encoding="utf-8")


def nearby(text: str, source: str) -> list[str]:
    """The text around the caption of each table and figure that a source names."""
    captions = [f"{kind} {number}[:.]" for kind, number in re.findall(r"(Table|Figure) (\d+)", source)]
    starts = [found.start() for caption in captions for found in re.finditer(caption, text)]
    return [text[max(0, start - NEARBY) : start + NEARBY] for start in starts]


def numbers(text: str) -> list[str]:
    """Every number of a text, as printed."""
    return re.findall(r"\d+(?:\.\d+)?", text)


def in_order(region: list[str], rows: list[list[str]]) -> bool:
    """Whether the rows are in the region one after the other."""
    at = 0
    for row in rows:
        found = next((start for start in range(at, len(region)) if region[start : start + len(row)] == row), None)
        if found is None:
            return False
        at = found + len(row)
    return True
