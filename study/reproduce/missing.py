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
    PUBLISHED_ONLY: "the project does not have the method",
    NOT_RUN: "not part of this study: see --profile",
    TO_BRING: "not part of this study, which needs data that the user must bring",
    NOT_YET: "no trial has run to its end yet: study reproduce goes on with it",
    FAILED: "every trial failed",
    PRUNED: "early stopping ended every trial",
    UNREAD: "the trials do not report the metric",
}


def missing(table: PublishedTable, spec: StudySpec, full: StudySpec, ours: Mapping[Labels, Cell]) -> dict[Labels, str]:
    """One of `MEANING` for each cell without a value.

    Args:
        spec: the study that was run.
        full: the table's study file without a profile.
        ours: our cells, without those that can have no trials.
    """
    here = [(params, spec.trial_document(params)) for params in planned(spec)]
    full_study = [(params, full.trial_document(params)) for params in planned(full)]
    found = {}
    for place in places(table):
        where = table.where(*place)
        if where is None:
            found[place] = PUBLISHED_ONLY
        elif not ours[place].values:
            in_study = any(belongs(where, *one) for one in here)
            documents = (document for params, document in full_study if belongs(where, params, document))
            section = next((document["data"] for document in documents), None)
            found[place] = _of_trials(ours[place], in_study) or (TO_BRING if _must_bring(section) else NOT_RUN)
    return found


def listed(cells: Mapping[Labels, str], rows: Iterable[str], columns: Iterable[str]) -> list[str]:
    """Per reason the cells that it holds for, whole rows by the row's label alone."""
    across, lines = list(columns), []
    for reason, meaning in MEANING.items():
        of_row = {row: [column for column in across if cells.get((row, column)) == reason] for row in rows}
        of_row = {row: found for row, found in of_row.items() if found}
        if of_row:
            named = [row if found == across else f"{row}: {' | '.join(found)}" for row, found in of_row.items()]
            lines.append(f"{reason} ({meaning}): {'; '.join(named)}")
    return lines


def _of_trials(cell: Cell, in_study: bool) -> str | None:
    if cell.unread:
        return UNREAD
    if cell.open or not (cell.failed or cell.pruned):
        return NOT_YET if in_study or cell.open else None
    return FAILED if cell.failed else PRUNED


def _must_bring(section: Mapping[str, Any] | None) -> bool:
    """Whether a data set's files are not there, and only the user can get them."""
    return section is not None and any(one.url is None and one.there() is None for one in data.sources(section))
