"""A study's report: one description of its content, written as Markdown and as one HTML page that needs no network."""

import base64
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from study.analysis import message, tables
from study.analysis.figures import FIGURES
from study.analysis.frame import trials_frame
from study.errors import UserError
from study.record import StudyRecord
from study.spec import StudySpec

DPI = 180


@dataclass(frozen=True)
class Section:
    """One part of the report: a heading, paragraphs, then a figure and a table where it has them."""

    title: str
    paragraphs: tuple[str, ...] = ()
    figure: str | None = None
    table: pd.DataFrame | None = None
    folded: bool = False

    @property
    def columns(self) -> list[str]:
        """The table's header, empty if there is no table or nothing in it."""
        return [] if self.table is None or self.table.empty else list(self.table.columns)

    @property
    def rows(self) -> list[tuple[object, ...]]:
        """The table's rows."""
        return [] if self.table is None else list(self.table.itertuples(index=False, name=None))


def write_report(spec: StudySpec, record: StudyRecord, out: Path) -> Path:
    """Write `report.md`, `report.html`, `figures/*.png` and `trials.csv` into a folder; the same input, the same bytes.

    Returns:
        The HTML page.

    Raises:
        UserError: the folder cannot be written.
    """
    figures = _figures(spec, record)
    frame = trials_frame(spec, record)
    files = {f"figures/{name}.png": png for name, png in figures.items()} | {"trials.csv": frame.to_csv().encode()}
    sections = list(_content(spec, record, frame))
    inlined = {name: base64.b64encode(png).decode() for name, png in figures.items()}
    for suffix in ("md", "html"):
        text = _template(suffix).render(spec=spec, record=record, sections=sections, figures=inlined)
        files[f"report.{suffix}"] = text.encode()
    try:
        (out / "figures").mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            _write(out / name, content)
    except OSError as error:
        raise UserError(f"{out}: the report cannot be written there: {error.strerror}") from None
    return out / "report.html"


def _content(spec: StudySpec, record: StudyRecord, frame: pd.DataFrame) -> Iterator[Section]:
    yield Section("What came out", tuple(message.headline(spec, record)), table=tables.printed_summary(spec, record))
    yield Section("Each seed", figure="seeds")
    if spec.final_seeds is None:
        yield Section("Best configurations", table=tables.printed_configurations(spec, record))
        yield Section("Learning curves", figure="learning_curves")
        yield Section("Each parameter against the metric", figure="parameters")
        yield Section("The course of the search", figure="progress")
    else:
        yield Section("Learning curves", figure="learning_curves")
    yield Section("What to bear in mind", tuple(message.caveats(spec, record)), table=tables.printed_counts(record))
    yield Section("Settings", table=message.settings(spec))
    yield Section("Where it ran", table=message.sessions(record))
    yield Section(f"All {len(frame)} trials", table=tables.printed_trials(spec, frame), folded=True)


def _figures(spec: StudySpec, record: StudyRecord) -> dict[str, bytes]:
    """PNG of every figure that has something to show."""
    found = {}
    for name, draw in FIGURES.items():
        figure = draw(spec, record)
        if figure is not None:
            stream = io.BytesIO()
            figure.savefig(stream, format="png", dpi=DPI, metadata={"Software": None})
            found[name] = stream.getvalue()
    return found


def _template(suffix: str) -> Template:
    environment = Environment(
        loader=PackageLoader("study.analysis"),
        autoescape=suffix == "html",
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["cell"] = _markdown_cell
    return environment.get_template(f"report.{suffix}.j2")


def _markdown_cell(text: object) -> str:
    return " ".join(str(text).replace("|", "\\|").replace("<", "&lt;").split())


def _write(path: Path, content: bytes) -> None:
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content)
    part.replace(path)
