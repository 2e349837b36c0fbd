"""Search the guide's pages for the terminal: all of them, one of them, or the passages that answer some words."""

import math
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files

from study.errors import UserError, did_you_mean

INDEX = "index"
FOR_MAINTAINERS = ("adding-things", "architecture", "changelog")
FURTHER = 3
"""Number of passages of which one line is listed after the one that is shown."""

IN_HEADING, IN_QUESTIONS, ASKED_AS, LATE = 2.0, 1.0, 2.0, 0.7
"""What a word of the heading, and one of the questions beside a passage, counts beside one of its text; what the most
similar of these questions counts; the factor of a late passage. `tests/benchmarks/guide_search.py` says what each is
worth. A table of words that mean the same was tried: it answered 2 more of 160 questions, and was left out."""

SATURATION, LENGTH, RARITY = 1.2, 0.4, 0.7
"""BM25's k1 and b, and the power of its weight by rarity."""

ENDING = 3
"""Letters at the end of a question's word that may differ from the guide's word."""

MAX_ROWS_TOGETHER = 4
"""Rows of a table or items of a list up to which it is one passage; of a longer one, each row or item is one."""

ROOM, WIDTH = 15, 120
"""Lines, and characters of a line, up to which what stands around a passage in its section is shown with it."""

ASKED = re.compile(r"(?:(^)| )<!-- asked: ((?s:.*?))\s-->(?(1)(?:\n\n)?|)", re.MULTILINE)
"""The questions of a passage, which no page shows: in a block above it, or at its end."""

HEAD = "|---|\n"
"""The end of a table's head."""

SMALL = frozenset(
    re.findall(
        r"\w+",
        "a am an and any are as at be but by can could did do does each every for from get give go had has have how i "
        "if in into is it its just let like make me mean means must my no not of on one only or our please put really "
        "say says should so some somebody something still such than that the them then there these they this to type "
        "us use used very want was we were what when where which who why will with without would you your",
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
        asked: questions that it answers, in the words of users: `<!-- asked: one; another -->` in the page's source.
    """

    page: str
    heading: str
    name: str
    text: str
    section: str
    asked: tuple[str, ...] = ()

    @property
    def late(self) -> bool:
        """Whether other answers come first: it is on a page for maintainers, or among the first lines of a page."""
        return self.page.endswith(tuple(f"({name})" for name in FOR_MAINTAINERS)) or self.page.startswith(
            f"{self.heading} ("
        )


def guide_text(words: Sequence[str]) -> str:
    """Return Markdown: the list of pages for no word, the page of that name, or the passages that answer the words.

    Raises:
        UserError: there is no such page, and no passage with any of the words.
    """
    by_name = pages()
    name = "-".join(words).lower().removesuffix(".md") or INDEX
    if name in by_name:
        return ASKED.sub("", by_name[name])
    every = [passage for page, text in by_name.items() if page != INDEX for passage in passages(page, text)]
    found = find(words, every)
    if not found:
        raise UserError(
            f"{' '.join(words)!r}: no page of this name, and nothing with these words. {did_you_mean(name, by_name)}"
            f"Pages: {', '.join(by_name)}"
        )
    by_section: dict[tuple[str, str], Passage] = {}
    for passage in found:
        by_section.setdefault((passage.page, passage.heading), passage)
    best, *others = by_section.values()
    absent = _absent(words, by_name.values())
    note = [f"Not in this guide: {', '.join(absent)}. What follows is nearest."] if absent else []
    further = [f"- {_line(passage)}" for passage in others[:FURTHER]]
    return (
        "\n\n".join(
            [
                *note,
                f"## {best.page}: {best.heading}\n\n{excerpt(best, words, found)}",
                *(["## Further", "\n".join(further)] if further else []),
                f"`study guide {best.page.rpartition('(')[2][:-1]}` shows the whole page.",
            ]
        )
        + "\n"
    )


def pages() -> dict[str, str]:
    """Read the text of every page, by its name, sorted."""
    found = [file for file in files("study").joinpath("guide").iterdir() if file.name.endswith(".md")]
    return {file.name.removesuffix(".md"): file.read_text("utf-8") for file in sorted(found, key=lambda at: at.name)}


def find(words: Sequence[str], every: Sequence[Passage]) -> list[Passage]:
    """Return the passages with some of the words, in any form and order, the best first.

    They are ranked by BM25F (Robertson & Zaragoza 2009) over heading, text and the questions beside a passage, and by
    the most similar of these questions. If a key or metric is asked for, the passage that begins with it comes first.
    """
    given = _words(" ".join(words))
    named = {word for word in [*given, "_".join(_telling(given))] if re.search(r"[_.]", word)}
    bags = iter(_stems([text for passage in every for text in _searched_texts(passage)]))
    fields = [tuple(next(bags) for _ in _searched_texts(passage)) for passage in every]
    having = Counter(stem for bag in fields for stem in set().union(*bag))
    rarity = {stem: math.log(1 + len(every) / number) ** RARITY for stem, number in having.items()}
    (wanted,) = _stems([" ".join(_telling(given))])
    near = [
        stem
        for word in wanted
        for stem in ([word] if word in rarity else get_close_matches(word, rarity, n=1, cutoff=0.75))
    ]
    terms = {stem: rarity[stem] for stem in near}
    merged = [(heading, text, sum(asked, Counter())) for heading, text, *asked in fields]
    mean = [sum(bag.total() for bag in bags) / len(every) for bags in zip(*merged, strict=True)]
    score: dict[int, float] = {}
    for row, (passage, parts, (_, _, *asked)) in enumerate(zip(every, merged, fields, strict=True)):
        value = 0.0
        for stem, weight in terms.items():
            often = sum(
                times * bag[stem] / (1 + LENGTH * (bag.total() / average - 1))
                for times, bag, average in zip((IN_HEADING, 1.0, IN_QUESTIONS), parts, mean, strict=True)
                if stem in bag
            )
            value += weight * often * (1 + SATURATION) / (often + SATURATION)
        value += ASKED_AS * max((_similarity(terms, question, rarity) for question in asked), default=0.0)
        if value:
            score[row] = value * (LATE if passage.late else 1.0) + (1000.0 if passage.name in named else 0.0)
    return [every[row] for row in sorted(score, key=lambda row: -score[row])]


def _searched_texts(passage: Passage) -> list[str]:
    """Return what is searched of a passage: its heading and name, its text, and each question beside it."""
    questions = [" ".join(_telling(_words(question))) for question in passage.asked]
    return [f"{passage.heading} {passage.name}", passage.text.rpartition(HEAD)[2], *questions]


def _stems(texts: Sequence[str]) -> list[Counter[str]]:
    """Count the stems of the words in each text, by Porter's algorithm, which SQLite has."""
    found: list[Counter[str]] = [Counter() for _ in texts]
    with closing(sqlite3.connect(":memory:")) as tables:
        tables.execute("CREATE VIRTUAL TABLE given USING fts5(text, tokenize = 'porter unicode61')")
        tables.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(given, instance)")
        tables.executemany("INSERT INTO given (rowid, text) VALUES (?, ?)", enumerate(texts))
        for row, stem in tables.execute("SELECT doc, term FROM stems"):
            found[row][stem] += 1
    return found


def _similarity(terms: dict[str, float], question: Counter[str], rarity: dict[str, float]) -> float:
    """Return the weight that a question beside a passage shares with the one asked, times its share of both."""
    common = sum(weight for stem, weight in terms.items() if stem in question)
    return 2 * common**2 / (sum(terms.values()) + sum(rarity[stem] for stem in question)) if common else 0.0


def _words(text: str) -> list[str]:
    """Return the words of a question; of a metric the name alone."""
    return re.findall(r"(?:\b(?:val|test|train)/)?(\w[\w./]*)", text.lower())


def _telling(words: Sequence[str]) -> Sequence[str]:
    """Return the words that are searched for: all but small ones and numbers, if there are others."""
    return [word for word in words if word not in SMALL and not word.isdigit()] or words


def _absent(words: Sequence[str], texts: Iterable[str]) -> list[str]:
    """Return the words of a question that the guide has in no form."""
    told = {word for text in texts for word in re.findall(r"[^\W\d_]+", text.lower())}
    asked = {word: None for word in re.findall(r"[^\W\d_]{4,}", " ".join(words).lower()) if word not in SMALL}
    return [word for word in asked if not any(one.startswith(word[: max(4, len(word) - ENDING)]) for one in told)]


def excerpt(passage: Passage, words: Sequence[str], found: Sequence[Passage]) -> str:
    """Return a passage with the next best ones of its section, and with what stands around it, as far as there is room.

    Of a key or metric that is asked for it is the passage alone.
    """
    if passage.name in words:
        return passage.text
    parts = [part for block in _blocks(passage.section) for part in _parts(block)]
    place = parts.index(passage.text)
    ranked = [parts.index(one.text) for one in found if one.section == passage.section][:MAX_ROWS_TOGETHER]
    around = [at for at, part in enumerate(parts) if HEAD not in part and not part.startswith("- ")]
    around.sort(key=lambda at: (abs(at - place), at))
    after = [place + 1] if passage.text.endswith(":") and place + 1 < len(parts) else []
    chosen = {place}
    for at in [*after, *ranked, *around]:
        text = _join_parts([part for number, part in enumerate(parts) if number in chosen | {at}])
        if sum(1 + len(line) // WIDTH for line in text.split("\n")) <= ROOM:
            chosen.add(at)
    return _join_parts([parts[at] for at in sorted(chosen)])


def _join_parts(parts: Sequence[str]) -> str:
    """Return parts of a section as Markdown, rows and items without a gap, with the head of a table once."""
    text = ""
    for before, part in zip(["", *parts], parts, strict=False):
        head, mark, row = part.rpartition(HEAD)
        is_next = (mark and before.startswith(head + mark)) or (before.startswith("- ") and part.startswith("- "))
        text += f"\n{row if mark else part}" if is_next else f"\n\n{part}"
    return text.strip()


def _line(passage: Passage) -> str:
    """Return where a passage stands and how it begins in one line; a table's row as its cells."""
    text = passage.text.rpartition(HEAD)[2]
    text = text.strip("| ").replace(" | ", ": ") if text.startswith("|") else re.sub("^```.*$", "", text, flags=re.M)
    line = " ".join(f"{passage.page}, {passage.heading}: {text.removeprefix('- ')}".split())
    return line if len(line) <= WIDTH else f"{line[:WIDTH].rsplit(' ', 1)[0]} ..."


def passages(page: str, text: str) -> Iterator[Passage]:
    """Yield the passages of a page, in their order."""
    title = text.partition("\n")[0].lstrip("# ")
    sections: dict[str, list[str]] = {}
    heading = title
    for block in _blocks(text):
        if block.startswith("#"):
            heading = block.lstrip("# ")
        elif not block.startswith(("<!-- From", "Go on with")):
            sections.setdefault(heading, []).append(block)
    for heading, found in sections.items():
        section = "\n\n".join(shown for block in found if (shown := ASKED.sub("", block)))
        asked: list[str] = []
        for part in (part for block in found for part in _parts(block)):
            asked += (question for beside in ASKED.finditer(part) for question in beside[2].split(";"))
            if shown := ASKED.sub("", part):
                name = re.match(r"(?:- |\| )?`([^`]+)`", shown.rpartition(HEAD)[2])
                yield Passage(f"{title} ({page})", heading, name[1] if name else "", shown, section, tuple(asked))
                asked = []


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
