"""The guide's pages for the terminal: all of them, one of them, or the places where words occur."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files

from study.errors import UserError, nearest

INDEX = "index"
MOST = 20
"""Places that are listed at most."""


@dataclass(frozen=True)
class Place:
    """A paragraph of a page, or a row of a table, that has the words.

    Attributes:
        page: its name, as `selection`.
        heading: the nearest one above it.
        text: the paragraph on one line.
    """

    page: str
    heading: str
    text: str


def guide(words: Sequence[str]) -> str:
    """Markdown: the list of pages for no word, the page of that name, or the places where all of the words occur.

    Raises:
        UserError: there is no such page, and no place with these words.
    """
    by_name = pages()
    name = "-".join(words).lower().removesuffix(".md") or INDEX
    if name in by_name:
        return by_name[name]
    places = list(find(words, by_name))
    if not places:
        raise UserError(
            f"{' '.join(words)!r}: no page of this name, and no place with these words. {nearest(name, by_name)}"
            f"Pages: {', '.join(by_name)}"
        )
    shown = [f"- **{place.page}**, {place.heading}: {_excerpt(place.text, words)}" for place in places[:MOST]]
    rest = [f"{len(places) - MOST} more places: give more words."] if len(places) > MOST else []
    return "\n\n".join([f"# {' '.join(words)}", "\n".join(shown), *rest, "`study guide PAGE` shows a page."]) + "\n"


def pages() -> dict[str, str]:
    """The text of every page by its name, sorted."""
    found = [file for file in files("study").joinpath("guide").iterdir() if file.name.endswith(".md")]
    return {file.name.removesuffix(".md"): file.read_text("utf-8") for file in sorted(found, key=lambda at: at.name)}


def find(words: Sequence[str], by_name: dict[str, str]) -> Iterator[Place]:
    """The places with all of the words, in any order and case; those with a word in their heading come first."""
    wanted = [word.lower() for word in words]
    places = [place for name, text in by_name.items() if name != INDEX for place in _places(name, text)]
    has_all = [place for place in places if all(word in f"{place.heading} {place.text}".lower() for word in wanted)]
    yield from sorted(has_all, key=lambda place: -sum(word in place.heading.lower() for word in wanted))


def _excerpt(text: str, words: Sequence[str], most: int = 160) -> str:
    """The part of a paragraph around the first of the words that it has."""
    if len(text) <= most:
        return text
    at = min((place for word in words if (place := text.lower().find(word.lower())) >= 0), default=0)
    start = max(0, min(at - most // 2, len(text) - most))
    part = text[start : start + most]
    return f"{'... ' if start else ''}{part}{' ...' if start + most < len(text) else ''}"


def _places(name: str, text: str) -> Iterator[Place]:
    heading = name
    for block in _blocks(text):
        if block.startswith("#"):
            heading = block.lstrip("# ")
        else:
            yield Place(name, heading, block)


def _blocks(text: str) -> Iterator[str]:
    """Headings, paragraphs, and single lines of tables, lists and code."""
    lines: list[str] = []
    is_code = False
    for line in [*text.splitlines(), ""]:
        is_code ^= line.startswith("```")
        alone = is_code or line.startswith(("#", "|", "- ", "```"))
        if (alone or not line.strip()) and lines:
            yield " ".join(lines)
            lines = []
        if line.strip() and not line.startswith(("```", "|--", "| --")):
            lines.append(line.strip())
