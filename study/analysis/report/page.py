"""A report's page, independent of format, and its writers for Markdown and self-contained HTML."""

import base64
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, ClassVar

from jinja2 import Environment, PackageLoader, StrictUndefined

from study.text import escaped, rows_as_markdown

if TYPE_CHECKING:
    import pandas as pd


def packed(text: str) -> str:
    """Pack a text for a page, by zlib and base 64; a script of the page unpacks it."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


@cache
def library() -> str:
    """Return the packed script of Plotly that comes with its Python package."""
    from plotly.offline import get_plotlyjs

    return packed(get_plotlyjs())


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    kind: ClassVar = "text"
    text: str


@dataclass(frozen=True)
class Points:
    """A list of sentences."""

    kind: ClassVar = "points"
    items: Sequence[str]


@dataclass(frozen=True)
class Table:
    """A frame of text; columns of numbers are aligned to the right in HTML."""

    kind: ClassVar = "table"
    frame: "pd.DataFrame"

    @cached_property
    def header(self) -> list[str]:
        return [str(name) for name in self.frame.columns]

    @cached_property
    def rows(self) -> list[list[str]]:
        return [[str(cell) for cell in row] for row in self.frame.itertuples(index=False)]

    @cached_property
    def numeric(self) -> list[bool]:
        """Whether each column holds numbers, which no word after a comma follows."""
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.header)
        return [all(re.match(r"[+-]?\d(?!.*, [a-z])|-$", cell) for cell in column) for column in columns]


@dataclass(frozen=True)
class Picture:
    """A figure of `figures/`, by the name of its file without `.png`, or a plot that the HTML page alone has."""

    kind: ClassVar = "picture"
    name: str
    caption: str
    plotted: bool = False


Block = Text | Points | Table | Picture


@dataclass(frozen=True)
class Section:
    """Blocks under a heading; a `folded` section is closed at first in HTML."""

    title: str
    blocks: Sequence[Block]
    folded: bool = False


@dataclass(frozen=True)
class Page:
    """A title, the lead as parts of a word or two and a few sentences, and sections.

    Attributes:
        behind: titles of the lead's parts that are folded at first in HTML.
    """

    title: str
    lead: Sequence[tuple[str, str]]
    sections: Sequence[Section]
    behind: Sequence[str] = ()


def to_html(
    page: Page, pictures: Mapping[str, bytes], plots: Mapping[str, str] | None = None, reload: int | None = None
) -> str:
    """Render a page as HTML that needs no network and, where scripts run, no other file. Every text is escaped.

    Args:
        pictures: PNG files by the names that the page uses.
        plots: Plotly figures (JSON) by the names of the others. With any, the page carries Plotly itself, 1.9 MB.
        reload: seconds after which a browser loads the page again; None: never.
    """
    loader = PackageLoader("study.analysis.report")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["name_parts"] = lambda name: re.split(r"(?<=[/_])|(?<=\.)(?=[a-z])", name)
    environment.filters["unbroken"] = lambda cell: re.sub(r" (?=points|seeds|±)|(?<=±) ", "\u00a0", cell)
    drawn = {name: packed(plot) for name, plot in (plots or {}).items()}
    encoded = {name: base64.b64encode(png).decode() for name, png in pictures.items()}
    carried = {"library": library(), **drawn} if drawn else {}
    return environment.get_template("report.html.j2").render(
        page=page, pictures=encoded, carried=carried, reload=reload
    )


def to_markdown(page: Page) -> str:
    """Render a page as Markdown; pictures are links to `figures/NAME.png`, plots to the HTML page."""
    parts = [
        f"# {escaped(page.title)}",
        *(f"**{escaped(title)}.** {escaped(text)}" for title, text in page.lead),
    ]
    for section in page.sections:
        parts += [f"## {escaped(section.title)}", *(_block(block) for block in section.blocks)]
    return "\n\n".join(parts) + "\n"


def markdown_table(frame: "pd.DataFrame") -> str:
    """Render a frame of text as a Markdown table."""
    table_frame = Table(frame)
    return rows_as_markdown(table_frame.header, table_frame.rows, table_frame.numeric)


def _block(block: Block) -> str:
    match block:
        case Text(text):
            return escaped(text)
        case Points(items):
            return "\n".join(f"- {escaped(item)}" for item in items)
        case Table(frame):
            return markdown_table(frame)
        case Picture(name, caption, plotted=True):
            return f"[{name}](report.html): {escaped(caption)}"
        case Picture(name, caption):
            return f"![{escaped(caption)}](figures/{name}.png)\n\n{escaped(caption)}"
