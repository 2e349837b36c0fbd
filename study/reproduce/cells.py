"""The cells of a published table in a study's trials: at the last epoch, and at the best one on the test split."""

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
    """The numbers of each cell's trials, none where there are none yet; without the cells that can have none."""
    found: dict[Labels, list[int]] = {}
    documents = {one.number: spec.trial_document(one.params) for one in record.trials.values()}
    for place in places(table):
        where = table.where(*place)
        if where is not None:
            everyone = record.trials.values()
            found[place] = [one.number for one in everyone if belongs(where, one.params, documents[one.number])]
    return found


def last_epoch(table: PublishedTable, spec: StudySpec, record: StudyRecord) -> Cells:
    """What each cell's trials gave at their last epoch, which nothing chose; in the printed unit but for percent."""
    frame = trials_frame(spec, record)
    numbers = trials(table, spec, record)
    return {place: _cell(table, place, frame.loc[of_cell]) for place, of_cell in numbers.items()}


def best_epoch(table: PublishedTable, spec: StudySpec, record: StudyRecord) -> Cells:
    """The same at the epoch that is best on the test split, as some papers choose; optimistic.

    An accuracy is that of its own best epoch, any other metric that of the epoch with the best of the table's metric.
    Cells of metrics that only the last epoch has are left out, and all where the test split is not looked at in each.
    """
    frame, epochs = trials_frame(spec, record), epochs_frame(record)
    numbers, found = trials(table, spec, record), {}
    chosen = {by: _at_best(frame, epochs, by) for by in {_chooser(table, place) for place in numbers} if by in epochs}
    for place, of_cell in numbers.items():
        by = _chooser(table, place)
        if by in chosen and table.metric_of(*place).split("/")[1] in searchable():
            found[place] = _cell(table, place, chosen[by].loc[of_cell])
    return found if spec.base["train"]["report_test"] else {}


def _cell(table: PublishedTable, place: Labels, frame: pd.DataFrame) -> Cell:
    found = cell(frame, table.metric_of(*place))
    return replace(found, values=tuple(value * printed_per_unit(table, place) for value in found.values))


def printed_per_unit(table: PublishedTable, place: Labels) -> float:
    """By what a number of ours is multiplied to be in the unit that is printed: 1 for a share, which tables print."""
    return 1.0 if is_share(table.metric_of(*place)) else PER_UNIT[table.unit_of(*place)]


def _chooser(table: PublishedTable, place: Labels) -> str:
    """The metric that chooses a cell's epoch."""
    metric = table.metric_of(*place)
    return metric if metric.endswith("accuracy") else table.metric


def _at_best(frame: pd.DataFrame, epochs: pd.DataFrame, by: str) -> pd.DataFrame:
    """Trials with the metrics of the epoch that has the best value of one of them, the first of several."""
    known = epochs[epochs[by].notna()]
    values = -known[by] if lower_is_better(by) else known[by]
    best = known.loc[values.groupby(known["trial"]).idxmax()].set_index("trial").reindex(frame.index)
    shared = [name for name in best if name in frame]
    return frame.drop(columns=shared).join(best[shared])


def seeds(cells: Mapping[Labels, Cell]) -> list[int]:
    """The training seeds behind the numbers."""
    return sorted({seed for one in cells.values() for seed in one.seeds})
