"""Writing the report of a study as files."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from matplotlib.figure import Figure

from study.analysis.figures import FIGURES
from study.analysis.figures.style import stack_panels, with_figure_style
from study.analysis.report.page_formats import page_to_html, page_to_markdown
from study.analysis.report.reference_sentences import references_frame
from study.analysis.report.report_page import build_report_page
from study.analysis.statistics.compare_studies import ComparedStudy
from study.analysis.statistics.trials_frame import trials_frame
from study.analysis.tables.table_formats import frame_to_csv
from study.files import as_user_error_if_unwritable, write_output
from study.ranking import Results


def write_report(
    results: Results,
    out: Path,
    pdf: bool = False,
    reload: int | None = None,
    beside: Sequence[ComparedStudy] | None = None,
) -> Path:
    """Write `report.html` (self-contained), `report.md`, `figures/*.png`, `trials.csv` and any `references.csv`.

    A study in any state has a report. The same study gives the same files, byte for byte. Whoever reads a file
    meanwhile sees the old one or the new one, never a part.

    Args:
        pdf: write `figures/*.pdf` as well; a folder that has some gets them in any case, so that none is outdated.
        reload: seconds after which a browser loads the page again; None: never.
        beside: the final training of the baseline and that of what the study found, one of which this is.

    Returns:
        The path of `report.html`.

    Raises:
        UserError: the folder cannot be written.
        OSError: the disk is full.
    """
    pdf = pdf or any((out / "figures").glob("*.pdf"))
    files = _report_files(results, pdf, reload, beside)
    with as_user_error_if_unwritable(out):
        (out / "figures").mkdir(parents=True, exist_ok=True)
        for name in FIGURES:
            for figure in (f"figures/{name}.png", f"figures/{name}.pdf"):
                if figure not in files:  # left by a report from before the trials were run again
                    (out / figure).unlink(missing_ok=True)
        for name, content in files.items():
            write_output(out / name, content)
    return out / "report.html"


def _report_files(
    results: Results, pdf: bool, reload: int | None, beside: Sequence[ComparedStudy] | None
) -> dict[str, bytes]:
    """Return every file of a report, by its path in the folder."""
    drawn = {name: figure for name, draw in FIGURES.items() if (figure := draw(results))}
    pictures = {name: figure_to_png(figure) for name, figure in drawn.items()}
    with stack_panels():
        below = {name: figure for name in drawn if (figure := FIGURES[name](results))}
    page = build_report_page(results, drawn, beside)
    files = {f"figures/{name}.png": picture for name, picture in pictures.items()}
    if pdf:
        files |= {f"figures/{name}.pdf": figure_to_pdf(figure) for name, figure in drawn.items()}
    files["trials.csv"] = frame_to_csv(trials_frame(results)).encode()
    if results.record.reference_events:
        files["references.csv"] = frame_to_csv(references_frame(results.record), index=False).encode()
    files["report.md"] = page_to_markdown(page).encode()
    narrow = {f"{name}.narrow": figure_to_png(figure) for name, figure in below.items()}
    files["report.html"] = page_to_html(page, pictures | narrow, reload).encode()
    return files


@with_figure_style
def figure_to_png(figure: Figure) -> bytes:
    """Encode a figure as PNG, without date and version.

    Fixes the figure's layout, so that files made from it afterwards have the same.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    stream = BytesIO()
    figure.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()


@with_figure_style
def figure_to_pdf(figure: Figure) -> bytes:
    """Encode a figure as PDF, without date and version."""
    stream = BytesIO()
    figure.savefig(stream, format="pdf", metadata={"Creator": None, "Producer": None, "CreationDate": None})
    return stream.getvalue()
