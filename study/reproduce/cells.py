"""The cells of a published table from a study's trials: at the last epoch, and at the best one on the test split."""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from study.analysis import epochs_frame, trials_frame
from study.analysis.statistics.cells import Cell, cell
from study.home.record import StudyRecord
from study.metrics import is_share, lower_is_better, searchable
from study.published import PublishedTable
from study.published.table import PER_UNIT
from study.reproduce.cell_matching import Labels, belongs, places
from study.spec import StudySpec

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
