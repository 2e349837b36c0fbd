"""Search the guide's pages for the terminal: all of them, one of them, or the passages that answer some words."""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass
from importlib.resources import files

from study.errors import UserError, nearest

INDEX = "index"
FOR_MAINTAINERS = ("adding-things", "architecture", "changelog")
WHOLE, SHORT = 3, 5
"""Number of passages that are shown whole, and of those listed after them."""

IN_HEADING, LATE, RANK = 0.5, -3, 0.2
"""Added to the number of words found: for each word in the heading, for a late passage, and for a passage's rank by
SQLite's full text search, in which rare words count more. With them the first passage answers 74 of the 88 questions of
`tests/benchmarks/guide_search.py`, on which they were chosen, without them 60."""

ENDING = 3
"""Letters at the end of a question's word that may differ from the guide's word."""

MAX_ROWS_TOGETHER = 4
"""Rows of a table or items of a list up to which it is one passage; of a longer one, each row or item is one."""

MAX_ROWS_WHOLE = 12
"""Lines of tables in a section up to which it is shown whole."""

SECTION = 2600
"""Characters up to which a section is shown whole instead of a passage of it."""

HEAD = "|---|\n"
"""The end of a table's head."""

SMALL = frozenset(
    re.findall(
        r"\w+",
        "a an and any are as at be by can do does for from get give go have how i if in into is it its let make me "
        "mean means my no not of on one only or our put should so that the them there these they this to type use "
        "used two want was we what when where which who why will with without would you your",
    )
)
"""Words of a question that are not searched for."""


@dataclass(frozen=True)
class Passage:
    """Passage of the guide: a paragraph, a short list or table, a block of code, or an item or row of a long one.

    Attributes:
        page: the title of its page, with the page's name in brackets.
        heading: the nearest one above it.
        name: what it begins with, if that is code: a key, a metric, a command, a message.
        text: itself, as Markdown.
        section: all that stands under its heading.
    """

    page: str
    heading: str
    name: str
    text: str
    section: str

    @property
    def late(self) -> bool:
        """Whether other answers come first: it is on a page for maintainers, or among the first lines of a page."""
        return self.page.endswith(tuple(f"({name})" for name in FOR_MAINTAINERS)) or self.page.startswith(
            f"{self.heading} ("
        )


def guide(words: Sequence[str]) -> str:
    """Return Markdown: the list of pages for no word, the page of that name, or the passages that answer the words.

    Raises:
        UserError: there is no such page, and no passage with any of the words.
    """
    by_name = pages()
    name = "-".join(words).lower().removesuffix(".md") or INDEX
    if name in by_name:
        return by_name[name]
    every = [passage for page, text in by_name.items() if page != INDEX for passage in passages(page, text)]
    found = find(words, every)
    if not found:
        spelled = sorted({word.lower() for text in by_name.values() for word in re.findall(r"\w[\w./]*\w", text)})
        close = nearest(name, by_name) or nearest(name, spelled)
        raise UserError(
            f"{' '.join(words)!r}: no page of this name, and nothing with these words. {close}"
            f"Pages: {', '.join(by_name)}"
        )
    by_section: dict[tuple[str, str], Passage] = {}
    for passage in found:
        by_section.setdefault((passage.page, passage.heading), passage)
    best = list(by_section.values())
    whole = [f"## {passage.page}: {passage.heading}\n\n{_shown(passage, words, found)}" for passage in best[:WHOLE]]
    short = [f"- {passage.page}, {passage.heading}: {_line(passage)}" for passage in best[WHOLE : WHOLE + SHORT]]
    further = ["## Further", "\n".join(short)] if short else []
    absent = _absent(words, by_name.values())
    note = [f"Not in this guide: {', '.join(absent)}. What follows has the other words."] if absent else []
    return "\n\n".join([f"# {' '.join(words)}", *note, *whole, *further, "`study guide PAGE` shows a page."]) + "\n"


def pages() -> dict[str, str]:
    """Read the text of every page, by its name, sorted."""
    found = [file for file in files("study").joinpath("guide").iterdir() if file.name.endswith(".md")]
    return {file.name.removesuffix(".md"): file.read_text("utf-8") for file in sorted(found, key=lambda at: at.name)}


def find(words: Sequence[str], every: Sequence[Passage]) -> list[Passage]:
    """Return the passages with some of the words, in any form and order, the best first.

    The best has the most different words, those in its heading counted half once more, and rare ones more than others.
    If a key or metric is asked for, the passage that begins with it comes first; pages for maintainers come last.
    """
    asked = re.findall(r"(?:\b(?:val|test|train)/)?(\w[\w./]*)", " ".join(words).lower())
    telling = [word for word in asked if word not in SMALL and not word.isdigit()] or asked
    with closing(sqlite3.connect(":memory:")) as tables:
        tables.execute(
            "CREATE VIRTUAL TABLE passage USING fts5(page, heading, name, text, tokenize = 'porter unicode61')"
        )
        tables.executemany(
            "INSERT INTO passage VALUES (?, ?, ?, ?)",
            [(*astuple(passage)[:3], passage.text.rpartition(HEAD)[2]) for passage in every],
        )
        terms = {word: _term(tables, word) for word in telling}
        ranks = _ranks(tables, " OR ".join(terms.values()))
        score = dict.fromkeys(ranks, 0.0)
        for term in terms.values():
            for row in _ranks(tables, term):
                score[row] += 1
            for row in _ranks(tables, f"heading : ({term})"):
                score[row] += IN_HEADING
    by_row = dict(enumerate(every, 1))
    named = {word for word in [*asked, "_".join(telling)] if re.search(r"[_.]", word)}
    for row, rank in ranks.items():
        score[row] += (len(asked) if by_row[row].name in named else 0) + (LATE if by_row[row].late else 0)
        score[row] -= RANK * rank
    return [by_row[row] for row in sorted(ranks, key=lambda row: (-score[row], ranks[row]))]


def _absent(words: Sequence[str], texts: Iterable[str]) -> list[str]:
    """Return the words of a question that the guide has in no form."""
    told = {word for text in texts for word in re.findall(r"[^\W\d_]+", text.lower())}
    asked = {word: None for word in re.findall(r"[^\W\d_]{4,}", " ".join(words).lower()) if word not in SMALL}
    return [word for word in asked if not any(one.startswith(word[: max(4, len(word) - ENDING)]) for one in told)]


def _term(tables: sqlite3.Connection, word: str) -> str:
    """Return a word's query: itself, or where no passage has it, words that begin with it, or else its parts."""
    parts = " AND ".join(f'"{part}"' for part in re.findall(r"[^\W\d_]+", word))
    queries = [f'"{word}"', f'"{word}"*', *([f"({parts})"] if parts else [])]
    return next((query for query in queries if _ranks(tables, query)), queries[0])


def _ranks(tables: sqlite3.Connection, query: str) -> dict[int, float]:
    """Return the ranks of the passages that a query finds, by number from 1 on: lower is better."""
    ranked = "SELECT rowid, bm25(passage, 1.0, 6.0, 4.0, 1.0) FROM passage WHERE passage MATCH ?"
    return dict(tables.execute(ranked, [query]).fetchall())


def _shown(passage: Passage, words: Sequence[str], found: Sequence[Passage]) -> str:
    """Return a passage's section where it is short, else the passage, with the next block if it ends in a colon.

    Of what begins with one of the words the passage alone; of a row of a long table it with the next best rows.
    """
    head, mark, row = passage.text.rpartition(HEAD)
    if passage.name in words:
        return passage.text
    if mark and passage.section.count("\n|") > MAX_ROWS_WHOLE:
        rows = [one.text.rpartition(HEAD) for one in found if one.section == passage.section]
        return "\n".join([f"{head}{mark}{row}", *(one for of, _, one in rows[1:] if of == head)][:MAX_ROWS_TOGETHER])
    if len(passage.section) <= SECTION:
        return passage.section
    after = passage.section.partition(passage.text)[2].strip()
    return f"{passage.text}\n\n{_blocks(after)[0]}" if passage.text.endswith(":") and after else passage.text


def _line(passage: Passage, most: int = 160) -> str:
    """Return the beginning of a passage in one line of at most so many characters; a table's row as its cells."""
    text = passage.text.rpartition(HEAD)[2]
    text = text.strip("| ").replace(" | ", ": ") if text.startswith("|") else re.sub("^```.*$", "", text, flags=re.M)
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most].rsplit(' ', 1)[0]} ..."


def passages(page: str, text: str) -> Iterator[Passage]:
    """Yield the passages of a page, in their order."""
    title = text.partition("\n")[0].lstrip("# ")
    sections: dict[str, list[str]] = {}
    heading = title
    for block in _blocks(text):
        if block.startswith("#"):
            heading = block.lstrip("# ")
        elif not block.startswith(("<!--", "Go on with")):
            sections.setdefault(heading, []).append(block)
    for heading, found in sections.items():
        for part in (part for block in found for part in _parts(block)):
            name = re.match(r"(?:- |\| )?`([^`]+)`", part.rpartition(HEAD)[2])
            yield Passage(f"{title} ({page})", heading, name[1] if name else "", part, "\n\n".join(found))


def _blocks(text: str) -> list[str]:
    """Split Markdown into headings, paragraphs, lists, tables and blocks of code."""
    return [block.strip() for block in re.findall(r"^```(?s:.*?)^```$|^(?:(?!```).+\n)+", f"{text}\n", re.MULTILINE)]


def _parts(block: str) -> list[str]:
    """Return the items of a long list, the rows of a long table with its head, or the block itself."""
    if block.startswith("- "):
        items = re.split(r"\n(?=- )", block)
        return items if len(items) > MAX_ROWS_TOGETHER else [block]
    rows = block.split("\n")
    if not block.startswith("|") or len(rows) <= MAX_ROWS_TOGETHER + 2:
        return [block]
    return ["\n".join([*rows[:2], row]) for row in rows[2:]]
