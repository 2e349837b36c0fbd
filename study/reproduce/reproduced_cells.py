"""The cells of a published table from a study's trials: at the last epoch, and at the best one on the test split."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import pandas as pd

from study import data
from study.analysis import epochs_frame, trials_frame
from study.analysis.statistics.cells import Cell, cell
from study.home.record import StudyRecord
from study.metrics import is_share, lower_is_better, searchable
from study.published import PublishedTable
from study.published.table import PER_UNIT
from study.spec import StudySpec
from study.spec.space import grid_cells

# Which configurations of a study belong to which cell of a published table.

Labels = tuple[str, str]
"""Of a cell's row and column."""

Document = Mapping[str, Mapping[str, Any]]
"""The sections of a trial."""


def places(table: PublishedTable) -> list[Labels]:
    """Every cell of a table, row by row."""
    return list(product((row.label for row in table.rows), (column.label for column in table.columns)))


def planned(spec: StudySpec) -> Iterator[dict[str, Any]]:
    """The configurations that a study tries in any case: its baseline, the enqueued ones and the cells of its grid."""
    search = spec.search
    yield from ([search.baseline] if search.baseline is not None else []) + search.enqueue
    if search.sampler == "grid":
        yield from grid_cells(spec.space)


def belongs(where: Mapping[str, Any], params: Mapping[str, Any], document: Document) -> bool:
    """Whether a configuration has the keys and values of a cell.

    Args:
        where: keys and values of the cell; a name may be the label of an alternative in the study file.
        params: of the trial, with labels.
        document: the trial's sections, with the value of every key.
    """
    return all(_equal(params.get(key), value) or _equal(_value(document, key), value) for key, value in where.items())


def _value(document: Document, key: str) -> Any:
    section, name = key.split(".")
    return document[section].get(name)


def _equal(value: Any, other: Any) -> bool:
    """Whether two values are equal: 1 equals 1.0, but not true."""
    return isinstance(value, bool) == isinstance(other, bool) and value == other


Cells = dict[Labels, Cell]


def trials(table: PublishedTable, spec: StudySpec, record: StudyRecord) -> dict[Labels, list[int]]:
    """The numbers of each cell's trials, empty before any ran; without the cells that cannot have trials."""
    by_cell: dict[Labels, list[int]] = {}
    documents = {trial.number: spec.trial_document(trial.params) for trial in record.trials.values()}
    for place in places(table):
        wanted_values = table.where(*place)
        if wanted_values is not None:
            all_trials = record.trials.values()
            by_cell[place] = [
                trial.number for trial in all_trials if belongs(wanted_values, trial.params, documents[trial.number])
            ]
    return by_cell


def last_epoch(table: PublishedTable, spec: StudySpec, record: StudyRecord) -> Cells:
    """Each cell at its trials' last epoch, which nothing chose; in the printed unit, but fractions for percent."""
    frame = trials_frame(spec, record)
    numbers = trials(table, spec, record)
    return {place: _cell(table, place, frame.loc[of_cell]) for place, of_cell in numbers.items()}


def best_epoch(table: PublishedTable, spec: StudySpec, record: StudyRecord) -> Cells:
    """The same at the epoch that is best on the test split, as some papers choose it; optimistic.

    An accuracy is taken at its own best epoch, any other metric at the best epoch of the table's metric.
    Cells of metrics that only the last epoch has are left out, and all where the test split is not looked at in each.
    """
    frame, epochs = trials_frame(spec, record), epochs_frame(record)
    numbers, cells = trials(table, spec, record), {}
    frames = {
        metric: _at_best(frame, epochs, metric)
        for metric in {_choosing_metric(table, place) for place in numbers}
        if metric in epochs
    }
    for place, of_cell in numbers.items():
        metric = _choosing_metric(table, place)
        if metric in frames and table.metric_of(*place).split("/")[1] in searchable():
            cells[place] = _cell(table, place, frames[metric].loc[of_cell])
    return cells if spec.base["train"]["report_test"] else {}


def _cell(table: PublishedTable, place: Labels, frame: pd.DataFrame) -> Cell:
    fractions = cell(frame, table.metric_of(*place))
    return replace(fractions, values=tuple(value * printed_per_unit(table, place) for value in fractions.values))


def printed_per_unit(table: PublishedTable, place: Labels) -> float:
    """The factor that brings our number to the printed unit; 1 for fractions, which tables print as percent."""
    return 1.0 if is_share(table.metric_of(*place)) else PER_UNIT[table.unit_of(*place)]


def _choosing_metric(table: PublishedTable, place: Labels) -> str:
    """The metric that chooses a cell's epoch."""
    metric = table.metric_of(*place)
    return metric if metric.endswith("accuracy") else table.metric


def _at_best(frame: pd.DataFrame, epochs: pd.DataFrame, by: str) -> pd.DataFrame:
    """Trials with all metrics at the epoch at which the metric `by` is best, the first of several such epochs."""
    measured = epochs[epochs[by].notna()]
    values = -measured[by] if lower_is_better(by) else measured[by]
    best = measured.loc[values.groupby(measured["trial"]).idxmax()].set_index("trial").reindex(frame.index)
    shared = [name for name in best if name in frame]
    return frame.drop(columns=shared).join(best[shared])


def seeds(cells: Mapping[Labels, Cell]) -> list[int]:
    """The training seeds behind the numbers."""
    return sorted({seed for cell in cells.values() for seed in cell.seeds})


# Why a cell of a published table has no number of ours.

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
