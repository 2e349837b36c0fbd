"""Search the guide's pages for the terminal: all of them, one of them, or the passages that answer some words."""

import math
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, reduce
from importlib.resources import files
from typing import TypeAlias

from study.errors import UserError, did_you_mean

GUIDE_FOLDER = files("study").joinpath("guide")
INDEX_PAGE = "index"
MAINTAINER_PAGES = ("adding-things", "architecture", "changelog")
EXCERPT_LINES_BY_RANK, MAX_LINE_CHARACTERS = (16, 8, 8), 120
"""Lines of each section that is shown, the best first, and the characters up to which a line counts as one."""

HEADING_WEIGHT = 2.0
QUESTION_WORD_WEIGHT = 1.0
SIMILAR_QUESTION_WEIGHT = 2.2
SECTION_WEIGHT = 0.6
EVERYDAY_WORD_FACTOR = 0.6
LOW_PRIORITY_FACTOR = 0.7
"""What a word of the heading, and one of the questions beside a passage, counts beside one of its text; what the most
similar of these questions counts; what the whole section's score counts; what a word that stands for an everyday one
counts beside one that was asked for; the factor of a passage of low priority. `tests/benchmarks/guide_search.py` says
what each is worth."""

BM25_K1, BM25_B, RARITY_POWER = 1.2, 0.4, 0.7
"""BM25's k1 and b, and the power of its weight by rarity."""

MAX_ENDING_LETTERS = 3
"""Letters at the end of a question's word that may differ from the guide's word."""

MAX_PASSAGE_ROWS = 4
"""Rows of a table or items of a list up to which it is one passage; of a longer one, each row or item is one."""

ASKED_COMMENT_PATTERN = re.compile(r"(?:(^)| )<!-- asked: ((?s:.*?))\s-->(?(1)(?:\n\n)?|)", re.MULTILINE)
"""The questions of a passage, which no page shows: in a block above it, or at its end."""

TABLE_HEAD_END = "|---|\n"
"""The end of a table's head."""

STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a am an and any are as at be but by can could did do does each every for from get give go had has have how i "
        "if in into is it its just let like make me mean means must my n no not of on one only or our please put "
        "really say says should so some somebody something still such than that the them then there these they this to "
        "type us use used very want was we were what when where which who why will with without would you your",
    )
)
"""Words of a question that are not searched for."""

GERMAN_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "das dem den der die ein eine einen es für ich im in ist kann man mein meine mit nicht sind und was welche "
        "welcher wie wird wo zu",
    )
)
"""Small German words, not searched for where two of them or more are in a question: one alone may be English."""

SPELLING_VARIANTS = (
    ("iz", "is"),
    ("colour", "color"),
    ("grey", "gray"),
    ("centre", "center"),
    ("licence", "license"),
    ("lled", "led"),
)
"""Letters that are taken for others, so that both spellings of a word are one."""


SearchedFields: TypeAlias = tuple[Counter[str], Counter[str], Counter[str]]
"""How often each stem is in a heading, in a text and in the questions beside it."""


@dataclass(frozen=True)
class GuideSection:
    """What stands under a heading of a page.

    Attributes:
        page: the name of its page, as `own-data`.
        title: the title of its page.
        place_on_page: its place on the page, from 0 on.
        heading: the heading itself.
        passage_texts: its passages as Markdown, in their order.
    """

    page: str
    title: str
    place_on_page: int
    heading: str
    passage_texts: tuple[str, ...]

    @property
    def is_low_priority(self) -> bool:
        """Whether other answers come first: it is on a page for maintainers, or the first lines of a page."""
        return self.page in MAINTAINER_PAGES or self.place_on_page == 0


@dataclass(frozen=True)
class Passage:
    """Passage of the guide: a paragraph, a short list or table, a block of code, or an item or row of a long one.

    Attributes:
        guide_section: where it stands.
        place_in_section: its place there, from 0 on.
        leading_code: what it begins with, if that is code: a key, a metric, a command, a message.
        answered_questions: in the words of users: `<!-- asked: one; another -->` in the page's source.
    """

    guide_section: GuideSection
    place_in_section: int
    leading_code: str
    answered_questions: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Itself, as Markdown."""
        return self.guide_section.passage_texts[self.place_in_section]


def guide_text(words: Sequence[str]) -> str:
    """Return Markdown: the list of pages for no word, the page of that name, or the passages that answer the words.

    Raises:
        UserError: there is no such page, and no passage with any of the words.
    """
    by_name = read_pages()
    name = "-".join(words).lower().removesuffix(".md") or INDEX_PAGE
    if name in by_name:
        return ASKED_COMMENT_PATTERN.sub("", by_name[name])
    every = [passage for page, text in by_name.items() if page != INDEX_PAGE for passage in split_passages(page, text)]
    found = search_passages(words, every)
    if not found:
        raise UserError(
            f"{' '.join(words)!r}: no page of this name, and nothing with these words. {did_you_mean(name, by_name)}"
            f"Pages: {', '.join(by_name)}"
        )
    absent = _words_not_in_guide(words, by_name.values())
    parts = [f"Not in this guide: {', '.join(absent)}. What follows is nearest."] if absent else []
    for best, lines in zip(first_passage_of_sections(found), EXCERPT_LINES_BY_RANK, strict=False):
        section = best.guide_section
        parts += [
            f"## {section.title} ({section.page}): {section.heading}",
            passage_with_context(best, words, found, lines),
        ]
    return "\n\n".join([*parts, "`study guide PAGE` shows a whole page, as `study guide own-data`."]) + "\n"


def read_pages() -> dict[str, str]:
    """Read the text of every page, by its name, sorted."""
    found = [file for file in GUIDE_FOLDER.iterdir() if file.name.endswith(".md")]
    return {file.name.removesuffix(".md"): file.read_text("utf-8") for file in sorted(found, key=lambda at: at.name)}


def search_passages(words: Sequence[str], every: Sequence[Passage]) -> list[Passage]:
    """Return the passages with some of the words, in any form and order, the best first.

    They are ranked by BM25F (Robertson & Zaragoza 2009) over heading, text and the questions beside a passage, by the
    most similar of these questions, and by their section's BM25F. If a key or metric is asked for, the passage that
    begins with it comes first.
    """
    given = _question_words(" ".join(words))
    asked_names = [*given, "_".join(_without_stop_words(given))]
    named = {_replace_numbers_with_n(word) for word in asked_names if re.search(r"[_.]", word)}
    bags = iter(_count_stems([text for passage in every for text in _search_fields_of_passage(passage)]))
    fields = [tuple(next(bags) for _ in _search_fields_of_passage(passage)) for passage in every]
    having = Counter(stem for bag in fields for stem in set().union(*bag))
    rarity = {stem: math.log(1 + len(every) / number) ** RARITY_POWER for stem, number in having.items()}
    (wanted,) = _count_stems([" ".join(_without_stop_words(given))])
    guide_words, understood = _stems_for_everyday_words(given)
    near = [
        stem
        for word in wanted
        for stem in (
            [word] if word in rarity or word in understood else get_close_matches(word, rarity, n=1, cutoff=0.75)
        )
    ]
    asked_for = {stem: rarity[stem] for stem in near if stem in rarity}
    meant = {stem: EVERYDAY_WORD_FACTOR * rarity[stem] for stem in guide_words if stem in rarity}
    terms = meant | asked_for
    merged: list[SearchedFields] = []
    of_sections: dict[GuideSection, SearchedFields] = {}
    for passage, (heading, text, *asked) in zip(every, fields, strict=True):
        merged.append((heading, text, Counter()))
        _, texts, questions = of_sections.setdefault(passage.guide_section, (heading, Counter(), Counter()))
        texts.update(text)
        for question in asked:
            merged[-1][2].update(question)
            questions.update(question)
    score_of_section = dict(zip(of_sections, _bm25f_scores(terms, list(of_sections.values())), strict=True))
    score: dict[int, float] = {}
    for row, (passage, value, (_, _, *questions_beside)) in enumerate(
        zip(every, _bm25f_scores(terms, merged), fields, strict=True)
    ):
        similarities = (_question_similarity(asked_for, question, rarity) for question in questions_beside)
        value += SIMILAR_QUESTION_WEIGHT * max(similarities, default=0.0)
        if value:
            value += SECTION_WEIGHT * score_of_section[passage.guide_section]
            named_bonus = 1000.0 if _replace_numbers_with_n(passage.leading_code) in named else 0.0
            score[row] = value * (LOW_PRIORITY_FACTOR if passage.guide_section.is_low_priority else 1.0) + named_bonus
    return [every[row] for row in sorted(score, key=lambda row: -score[row])]


def _bm25f_scores(terms: Mapping[str, float], documents: Sequence[SearchedFields]) -> list[float]:
    """Return BM25F's score of each document, by its fields: heading, text, the questions beside it."""
    mean = [sum(bag.total() for bag in bags) / len(documents) for bags in zip(*documents, strict=True)]
    scores = []
    for parts in documents:
        score = 0.0
        for stem, weight in terms.items():
            often = sum(
                times * bag[stem] / (1 + BM25_B * (bag.total() / average - 1))
                for times, bag, average in zip((HEADING_WEIGHT, 1.0, QUESTION_WORD_WEIGHT), parts, mean, strict=True)
                if stem in bag
            )
            score += weight * often * (1 + BM25_K1) / (often + BM25_K1)
        scores.append(score)
    return scores


def _replace_numbers_with_n(name: str) -> str:
    """Return a name with N for each number, and for each capital letter that stands for one on a page."""
    return re.sub(r"_(?:\d+|[A-Z])(?=_|$)", "_N", name)


def first_passage_of_sections(found: Sequence[Passage]) -> list[Passage]:
    """Return the first passage of each section, in their order."""
    first: dict[GuideSection, Passage] = {}
    for passage in found:
        first.setdefault(passage.guide_section, passage)
    return list(first.values())


def _search_fields_of_passage(passage: Passage) -> list[str]:
    """Return what is searched of a passage: its heading with its name if that is one word, its text, each question."""
    questions = [" ".join(_without_stop_words(_question_words(question))) for question in passage.answered_questions]
    name = passage.leading_code if " " not in passage.leading_code else ""
    return [f"{passage.guide_section.heading} {name}", passage.text.rpartition(TABLE_HEAD_END)[2], *questions]


def _count_stems(texts: Sequence[str]) -> list[Counter[str]]:
    """Count the stems of the words in each text, by Porter's algorithm, which SQLite has."""
    found: list[Counter[str]] = [Counter() for _ in texts]
    with closing(sqlite3.connect(":memory:")) as tables:
        tables.execute("CREATE VIRTUAL TABLE given USING fts5(text, tokenize = 'porter unicode61')")
        tables.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(given, instance)")
        spelt = (reduce(lambda text, pair: text.replace(*pair), SPELLING_VARIANTS, text.lower()) for text in texts)
        tables.executemany("INSERT INTO given (rowid, text) VALUES (?, ?)", enumerate(spelt))
        for row, stem in tables.execute("SELECT doc, term FROM stems"):
            found[row][stem] += 1
    return found


def _question_similarity(terms: dict[str, float], question: Counter[str], rarity: dict[str, float]) -> float:
    """Return the weight that a question beside a passage shares with the one asked, times its share of both."""
    common = sum(weight for stem, weight in terms.items() if stem in question)
    return 2 * common**2 / (sum(terms.values()) + sum(rarity[stem] for stem in question)) if common else 0.0


def _stems_for_everyday_words(given: Sequence[str]) -> tuple[set[str], set[str]]:
    """Return the stems of the guide's words for the everyday ones of a question, and of these."""
    table = [(term, word) for term, words in _read_everyday_words().items() for word in words]
    question, *pairs = _count_stems([" ".join(given), *(text for pair in table for text in pair)])
    meant = [pair for pair in zip(pairs[::2], pairs[1::2], strict=True) if pair[1].keys() <= question.keys()]
    return {stem for term, _ in meant for stem in term}, {stem for _, word in meant for stem in word}


@cache
def _read_everyday_words() -> dict[str, list[str]]:
    """Read which everyday words are taken for which of the guide's."""
    lines = GUIDE_FOLDER.joinpath("everyday-words.txt").read_text("utf-8").splitlines()
    pairs = (line.split(": ") for line in lines if not line.startswith("#"))
    return {term: words.split(", ") for term, words in pairs}


def _question_words(text: str) -> list[str]:
    """Return the words of a question; of a metric the name alone, of a class's name as CmaEsSampler also its parts."""
    text = re.sub(r"\b[A-Za-z]+[a-z][A-Z][a-z]+\b", lambda name: f"{name[0]} {re.sub('(?=[A-Z])', ' ', name[0])}", text)
    return re.findall(r"(?:\b(?:val|test|train)/)?(\w[\w./]*)", text.lower())


def _without_stop_words(words: Sequence[str]) -> Sequence[str]:
    """Return the words that are searched for: all but small ones and numbers, if there are others."""
    german = GERMAN_STOP_WORDS.intersection(words)
    small = STOP_WORDS | german if len(german) > 1 else STOP_WORDS
    return [word for word in words if word not in small and not word.isdigit()] or words


def _words_not_in_guide(words: Sequence[str], texts: Iterable[str]) -> list[str]:
    """Return the words of a question that the guide has in no form."""
    told = {word for text in texts for word in re.findall(r"[^\W\d_]+", text.lower())}
    asked = {word: None for word in re.findall(r"[^\W\d_]{4,}", " ".join(words).lower()) if word not in STOP_WORDS}
    stems = {word: word[: max(4, len(word) - MAX_ENDING_LETTERS)] for word in asked}
    return [word for word, stem in stems.items() if not any(one.startswith(stem) for one in told)]


def passage_with_context(passage: Passage, words: Sequence[str], found: Sequence[Passage], max_lines: int) -> str:
    """Return a passage with what stands around it in its section, up to so many lines; longer code is cut.

    First come what it announces and the commands above it, then the next best passages, then the nearest, each with
    what it announces. Of a key or metric that is asked for it is the passage alone.
    """
    parts, place = passage.guide_section.passage_texts, passage.place_in_section
    if passage.leading_code in words:
        return passage.text
    ranked = [one.place_in_section for one in found if one.guide_section == passage.guide_section][:MAX_PASSAGE_ROWS]
    ranked.sort(key=lambda at: parts[at].startswith("```"))
    around = [at for at, part in enumerate(parts) if TABLE_HEAD_END not in part and not part.startswith("- ")]
    around.sort(key=lambda at: (abs(at - place), at))
    commands = [place - 1] if place and parts[place - 1].startswith("```sh") else []
    chosen = {place}
    for at in [place, *commands, *ranked, *around]:
        announced = {at + 1} if parts[at].endswith(":") and _is_whole_block(parts, at + 1) else set()
        wider = chosen | {at} | announced
        text = _join_parts([parts[number] for number in sorted(wider)])
        if sum(max(1, math.ceil(len(line) / MAX_LINE_CHARACTERS)) for line in text.split("\n")) <= max_lines:
            chosen = wider
    lines = _join_parts([parts[at] for at in sorted(chosen)]).split("\n")
    if lines[0].startswith("```") and len(lines) > max_lines:
        lines = [*lines[: max_lines - 2], "...", "```"]
    return "\n".join(lines)


def _is_whole_block(parts: Sequence[str], place: int) -> bool:
    """Return whether a part of a section is there, and no first row or item of a long table or list."""
    part, after = [*parts[place : place + 2], "", ""][:2]
    head, mark, _ = part.rpartition(TABLE_HEAD_END)
    is_first = after.startswith(head + mark) if mark else part.startswith("- ") and after.startswith("- ")
    return bool(part) and not is_first


def _join_parts(parts: Sequence[str]) -> str:
    """Return parts of a section as Markdown, rows and items without a gap, with the head of a table once."""
    text = ""
    for before, part in zip(["", *parts], parts, strict=False):
        head, mark, row = part.rpartition(TABLE_HEAD_END)
        is_next = (mark and before.startswith(head + mark)) or (before.startswith("- ") and part.startswith("- "))
        text += f"\n{row if mark else part}" if is_next else f"\n\n{part}"
    return text.strip()


def split_passages(page: str, text: str) -> Iterator[Passage]:
    """Yield the passages of a page, in their order."""
    title = text.partition("\n")[0].lstrip("# ")
    sections: list[tuple[str, list[str]]] = []
    for block in _split_blocks(text):
        if block.startswith("#"):
            sections.append((block.lstrip("# "), []))
        elif not block.startswith(("<!-- From", "Go on with")):
            sections[-1][1].extend(_split_list_or_table(block))
    for number, (heading, parts) in enumerate(sections):
        shown = [ASKED_COMMENT_PATTERN.sub("", part) for part in parts]
        section = GuideSection(page, title, number, heading, tuple(part for part in shown if part))
        asked: list[str] = []
        place = 0
        for part, told in zip(parts, shown, strict=True):
            asked += (question for beside in ASKED_COMMENT_PATTERN.finditer(part) for question in beside[2].split(";"))
            if told:
                name = re.match(r"(?:- |\| )?`([^`]+)`", told.rpartition(TABLE_HEAD_END)[2])
                yield Passage(section, place, name[1] if name else "", tuple(asked))
                asked, place = [], place + 1


def _split_blocks(text: str) -> list[str]:
    """Split Markdown into headings, paragraphs, lists, tables and blocks of code."""
    return [block.strip() for block in re.findall(r"^```(?s:.*?)^```$|^(?:(?!```).+\n)+", f"{text}\n", re.MULTILINE)]


def _split_list_or_table(block: str) -> list[str]:
    """Return the items of a long list, the rows of a long table with its head, or the block itself."""
    if block.startswith("- "):
        items = re.split(r"\n(?=- )", block)
        return items if len(items) > MAX_PASSAGE_ROWS else [block]
    rows = block.split("\n")
    if not block.startswith("|") or len(rows) <= MAX_PASSAGE_ROWS + 2:
        return [block]
    return ["\n".join([*rows[:2], row]) for row in rows[2:]]
