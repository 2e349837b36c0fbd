"""A printed table as Markdown, LaTeX (booktabs) and CSV."""

from collections.abc import Iterable, Sequence
from itertools import groupby

import pandas as pd

from study.analysis.statistics import formatting
from study.analysis.statistics.parameter_tables import IndexLevels
from study.analysis.tables.printed_grid import (
    PrintedEntry,
    PrintedGrid,
    RankingDirection,
    ablation_grid,
    is_ablation_frame,
    metric_cells_to_grid,
)
from study.text import Markdown, escape_formula, escape_markdown, rows_as_markdown

LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "[": "{[}",  # after a line's end LaTeX would read it as a length
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}

FIT_TO_LINE_WIDTH = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
"""LaTeX before a tabular that makes it no wider than the text."""


def to_markdown(table: pd.DataFrame | PrintedGrid, best: RankingDirection | None = None, digits: int = 1) -> str:
    """Render a table of `ablation`, `sensitivity` or `load_ablation`, or a grid, as Markdown, its notes below.

    Args:
        table: to render.
        best: along each `row` or `column` the best is bold and the second in italics; None: nothing is marked.
        digits: of a frame's percentages, see `PrintedGrid`.
    """
    grid = _as_printed_grid(table, best, digits)
    heads = [
        ", ".join(
            f"{title} {formatting.format_setting(label)}".strip()
            for title, label in zip(grid.column_label_titles, column, strict=True)
        )
        for column in grid.columns
    ]
    rows = [
        [formatting.format_setting(label) for label in place] + [_markdown_entry(grid, entry) for entry in entries]
        for place, entries in zip(grid.rows, grid.entries, strict=True)
    ]
    numeric = [False] * len(grid.row_label_titles) + [True] * len(grid.columns)
    notes = escape_markdown(" ".join([*grid.notes, *_mark_legend(best, "in italics")]))
    return f"{rows_as_markdown([*grid.row_label_titles, *heads], rows, numeric)}\n\n{notes}"


def to_latex(
    table: pd.DataFrame | PrintedGrid, best: RankingDirection | None = None, digits: int = 1, caption: str = ""
) -> str:
    r"""Render a table as a LaTeX `table`, made no wider than the text. The best is bold, the second underlined.

    It needs `\usepackage{booktabs,graphicx}`. Arguments are those of `to_markdown`.
    """
    grid = _as_printed_grid(table, best, digits)
    body = [
        " & ".join([*_row_labels(grid, row), *(_latex_entry(grid, entry) for entry in grid.entries[row])]) + r" \\"
        for row in range(len(grid.rows))
    ]
    notes = " ".join([*grid.notes, *_mark_legend(best, "underlined")])
    lines = [
        r"\begin{table}",
        r"\centering",
        *([f"\\caption{{{escape_latex(caption)}}}"] if caption else []),
        FIT_TO_LINE_WIDTH,
        f"\\begin{{tabular}}{{{'l' * len(grid.row_label_titles)}{'c' * len(grid.columns)}}}",
        r"\toprule",
        *_latex_header(grid),
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}}",
        f"\\par\\smallskip{{\\footnotesize {escape_latex(notes)}}}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def to_csv(table: pd.DataFrame | PrintedGrid) -> str:
    """Render a table as CSV, a line per cell: labels, metric, mean, sd, n (not rounded, no percentages), remark.

    No text is a formula for a spreadsheet, see `study.text`.
    """
    grid = _as_printed_grid(table, None, 1)
    names = ["metric", "mean", "sd", "n", "remark"]
    labels = [
        *(name or "row" for name in grid.row_label_titles),
        *(name or "column" for name in grid.column_label_titles),
    ]
    lines = []
    for row, entries in zip(grid.rows, grid.entries, strict=True):
        for column, entry in zip(grid.columns, entries, strict=True):
            spread = entry.statistics
            numbers = [spread.mean, spread.standard_deviation, spread.count] if spread else [None, None, 0]
            lines.append([*map(str, (*row, *column)), entry.metric, *numbers, entry.remark])
    return frame_to_csv(pd.DataFrame(lines, columns=[*labels, *names], dtype=object), index=False)


def frame_to_csv(frame: pd.DataFrame, index: bool = True) -> str:
    """Render a frame as CSV, in which no text is a formula for a spreadsheet."""
    return frame.map(lambda cell: escape_formula(cell) if isinstance(cell, str) else cell).to_csv(index=index)


def escape_latex(text: str) -> str:
    """Escape text so that LaTeX prints it as it is, on one line."""
    return "".join(LATEX_ESCAPES.get(letter, letter) for letter in " ".join(text.split()))


def _as_printed_grid(table: pd.DataFrame | PrintedGrid, best: RankingDirection | None, digits: int) -> PrintedGrid:
    if isinstance(table, PrintedGrid):
        grid = table
    else:
        grid = ablation_grid(table, digits) if is_ablation_frame(table) else metric_cells_to_grid(table, digits=digits)
    return grid.with_best_marked(best) if best else grid


def _mark_legend(best: RankingDirection | None, second: str) -> list[str]:
    return [f"Best of a {best} in bold, second {second}."] if best else []


def _markdown_entry(grid: PrintedGrid, entry: PrintedEntry) -> Markdown:
    around = {"best": "**", "second": "*", None: ""}[entry.rank_mark]
    parts = f"{around}{grid.number_text(entry)}{around}", escape_markdown(entry.remark)
    return Markdown(" ".join(filter(None, parts)))


def _latex_entry(grid: PrintedGrid, entry: PrintedEntry) -> str:
    number = escape_latex(grid.number_text(entry))
    marked = {"best": f"\\textbf{{{number}}}", "second": f"\\underline{{{number}}}", None: number}[entry.rank_mark]
    return " ".join(filter(None, (marked, escape_latex(entry.remark))))


def _latex_header(grid: PrintedGrid) -> Iterable[str]:
    """Yield a line per level of the columns' labels; adjacent equal labels are merged, except on the last level."""
    for level, head in enumerate(grid.column_label_titles):
        is_last = level == len(grid.column_label_titles) - 1
        spans = _column_spans(grid.columns, level) if not is_last else [(at, 1) for at in range(len(grid.columns))]
        stub = [_latex_symbol(name) if is_last else "" for name in grid.row_label_titles]
        texts = [_latex_label(head, grid.columns[at][level]) for at, _ in spans]
        parts = [
            text if width == 1 else f"\\multicolumn{{{width}}}{{c}}{{{text}}}"
            for text, (_, width) in zip(texts, spans, strict=True)
        ]
        yield " & ".join([*stub, *parts]) + r" \\"
        if not is_last:
            first = len(grid.row_label_titles) + 1
            yield " ".join(f"\\cmidrule(lr){{{first + at}-{first + at + width - 1}}}" for at, width in spans)


def _column_spans(columns: Sequence[IndexLevels], level: int) -> list[tuple[int, int]]:
    """Return (first column, number of columns) of each run of columns with the same labels down to a level."""
    runs = [list(run) for _, run in groupby(range(len(columns)), key=lambda at: columns[at][: level + 1])]
    return [(run[0], len(run)) for run in runs]


def _row_labels(grid: PrintedGrid, row: int) -> list[str]:
    """Return a row's labels; an outer one that equals the one above is not repeated."""
    place, above = grid.rows[row], grid.rows[row - 1] if row else ()
    same = [place[: level + 1] == above[: level + 1] for level in range(len(place) - 1)]
    return [
        "" if repeated else escape_latex(formatting.format_setting(label))
        for label, repeated in zip(place, [*same, False], strict=True)
    ]


def _latex_label(head: str, label: object) -> str:
    text = escape_latex(formatting.format_setting(label))
    return f"{_latex_symbol(head)} = {text}" if head else text


def _latex_symbol(name: str) -> str:
    return formatting.SYMBOL_BY_KEY.get(name) or escape_latex(name)
