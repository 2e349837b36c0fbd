"""A report's page, independent of format, and its writers for Markdown and self-contained HTML.

What stands between backticks in a sentence, as a command that can be typed, is shown as code.
"""

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from study.text import escape_markdown, rows_as_markdown, sentence_case

if TYPE_CHECKING:
    import pandas as pd


def command_as_code(command: str) -> str:
    """Return a command as code of a sentence; as it is if it holds signs that could end the code or be markup."""
    return command if re.search(r"[`<]", command) else f"`{command}`"


@dataclass(frozen=True)
class TableBlock:
    """A frame of text; columns of numbers are aligned to the right in HTML.

    Attributes:
        bar_shares: of each cell, row by row, how much of it a bar fills in HTML, 0 to 1; None: it has no bar.
    """

    frame: "pd.DataFrame"
    bar_shares: Sequence[Sequence[float | None]] = ()

    @cached_property
    def header(self) -> list[str]:
        return [str(name) for name in self.frame.columns]

    @cached_property
    def rows(self) -> list[list[str]]:
        return [[str(cell) for cell in row] for row in self.frame.itertuples(index=False)]

    @cached_property
    def are_columns_numeric(self) -> list[bool]:
        """Whether each column holds numbers, which no word after a comma follows."""
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.header)
        return [all(re.match(r"[+-]?\d(?!.*, [a-z])|-$", cell) for cell in column) for column in columns]


@dataclass(frozen=True)
class FigureBlock:
    """A figure of `figures/`, by the name of its file without `.png`."""

    name: str
    caption: str


PageBlock = str | list[str] | TableBlock | FigureBlock
"""A paragraph, a list of sentences, a table or a figure."""


@dataclass(frozen=True)
class PageSection:
    """Blocks under a heading; a `folded` section is closed at first in HTML."""

    title: str
    blocks: Sequence[PageBlock]
    folded: bool = False


@dataclass(frozen=True)
class ReportPage:
    """A title, the lead in parts, and sections.

    Attributes:
        lead: a title and its sentences each; in HTML four and more stand in a list below the first.
        folded_titles: titles of the lead's parts that are folded at first in HTML, with what the fold calls each.
    """

    title: str
    lead: Sequence[tuple[str, Sequence[str]]]
    sections: Sequence[PageSection]
    folded_titles: Mapping[str, str] = field(default_factory=dict)

    @property
    def fold_title(self) -> str:
        """What the fold of the lead holds; empty without one."""
        folded = (self.folded_titles[title] for title, _ in self.lead if title in self.folded_titles)
        return sentence_case(", ".join(folded))


def page_to_html(page: ReportPage, pictures: Mapping[str, bytes], reload: int | None = None) -> str:
    """Render a page as HTML that needs no network and no other file. Every text is escaped.

    Args:
        pictures: PNG files by the names that the page uses; `NAME.narrow` takes the place of NAME on a narrow screen.
        reload: seconds after which a browser loads the page again; None: never.
    """
    loader = PackageLoader("study.analysis.report")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["name_parts"] = lambda name: re.split(r"(?<=[/_])|(?<=\.)(?=[a-z])", name)
    environment.filters["code"] = lambda text: Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))
    environment.filters["unbroken"] = lambda cell: re.sub(r" (?=points|seeds|±)|(?<=±) ", "\u00a0", cell)
    encoded = {name: base64.b64encode(png).decode() for name, png in pictures.items()}
    return environment.get_template("report.html.j2").render(page=page, pictures=encoded, reload=reload)


def page_to_markdown(page: ReportPage) -> str:
    """Render a page as Markdown; pictures are links to `figures/NAME.png`."""
    parts = [
        f"# {escape_markdown(page.title)}",
        *(f"**{escape_markdown(title)}.** {_sentences_to_markdown(' '.join(told))}" for title, told in page.lead),
    ]
    for section in page.sections:
        parts += [f"## {escape_markdown(section.title)}", *(_block_to_markdown(block) for block in section.blocks)]
    return "\n\n".join(parts) + "\n"


def frame_to_markdown(frame: "pd.DataFrame") -> str:
    """Render a frame of text as a Markdown table."""
    table = TableBlock(frame)
    return rows_as_markdown(table.header, table.rows, table.are_columns_numeric)


def _sentences_to_markdown(text: str) -> str:
    """Escape sentences, but for their code."""
    return re.sub(r"\\`(.+?)\\`", lambda code: re.sub(r"\\(.)", r"\1", code[0]), escape_markdown(text))


def _block_to_markdown(block: PageBlock) -> str:
    match block:
        case str():
            return _sentences_to_markdown(block)
        case list(items):
            return "\n".join(f"- {_sentences_to_markdown(item)}" for item in items)
        case TableBlock(frame):
            return frame_to_markdown(frame)
        case FigureBlock(name, caption):
            return f"![{escape_markdown(caption)}](figures/{name}.png)\n\n{escape_markdown(caption)}"
