"""Why a cell of a published table has no number of ours."""

from collections.abc import Iterable, Mapping
from typing import Any

from study import data
from study.analysis.statistics.cells import Cell
from study.published import PublishedTable
from study.reproduce.cell_matching import Labels, belongs, places, planned
from study.spec import StudySpec

PUBLISHED_ONLY = "published only"
NOT_RUN = "not run"
TO_BRING = "data to bring"
NOT_YET = "not yet"
FAILED = "failed"
PRUNED = "pruned"
UNREAD = "without this metric"

MEANING = {
    PUBLISHED_ONLY: "this project does not have the method",
    NOT_RUN: "not part of this study: see --profile",
    TO_BRING: "not part of this study; its data must be brought by the user",
    NOT_YET: "no trial is complete yet: study reproduce goes on with it",
    FAILED: "every trial failed",
    PRUNED: "every trial was pruned",
    UNREAD: "the trials do not report the metric",
}


def missing(table: PublishedTable, spec: StudySpec, full: StudySpec, ours: Mapping[Labels, Cell]) -> dict[Labels, str]:
    """One of `MEANING` for each cell without a value.

    Args:
        spec: the study that was run.
        full: the table's study file without a profile.
        ours: our cells, without those that cannot have trials.
    """
    planned_here = [(params, spec.trial_document(params)) for params in planned(spec)]
    planned_in_full = [(params, full.trial_document(params)) for params in planned(full)]
    reasons = {}
    for place in places(table):
        values = table.where(*place)
        if values is None:
            reasons[place] = PUBLISHED_ONLY
        elif not ours[place].values:
            in_study = any(belongs(values, *configuration) for configuration in planned_here)
            sections = (document for params, document in planned_in_full if belongs(values, params, document))
            section = next((document["data"] for document in sections), None)
            reasons[place] = _trials_reason(ours[place], in_study) or (TO_BRING if _must_bring(section) else NOT_RUN)
    return reasons


def reasons_text(cells: Mapping[Labels, str], rows: Iterable[str], columns: Iterable[str]) -> list[str]:
    """Each reason with its cells as text; a whole row is named by the row's label alone."""
    across, lines = list(columns), []
    for reason, meaning in MEANING.items():
        of_row = {row: [column for column in across if cells.get((row, column)) == reason] for row in rows}
        of_row = {row: missing_columns for row, missing_columns in of_row.items() if missing_columns}
        if of_row:
            texts = [
                row if missing_columns == across else f"{row}: {' | '.join(missing_columns)}"
                for row, missing_columns in of_row.items()
            ]
            lines.append(f"{reason} ({meaning}): {'; '.join(texts)}")
    return lines


def _trials_reason(cell: Cell, is_planned: bool) -> str | None:
    if cell.unread:
        return UNREAD
    if cell.open or not (cell.failed or cell.pruned):
        return NOT_YET if is_planned or cell.open else None
    return FAILED if cell.failed else PRUNED


def _must_bring(section: Mapping[str, Any] | None) -> bool:
    """Whether files of a data set are missing that only the user can get."""
    sources = () if section is None else data.sources(section)
    return any(source.url is None and source.existing_path() is None for source in sources)
