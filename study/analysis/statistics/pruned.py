"""What pruned trials would have been worth at their end, estimated from what they showed until then.

How: `study.analysis.statistics.imputation`. What it is worth, by replay of recorded and simulated searches: the guide's
page on statistics.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from study import metrics
from study.analysis.statistics import formatting
from study.analysis.statistics.coordinates import axes
from study.analysis.statistics.frame import thin
from study.analysis.statistics.imputation import ENOUGH, Stage, impute
from study.home.record import StudyRecord, TrialRecord
from study.ranking import epochs
from study.spec import StudySpec

Array = NDArray[np.float64]

DEGREE = 4
"""Of the polynomials that the parameters add."""
MOST = 400
"""Trials that went on after an epoch and are looked at, evenly chosen."""
WIDER = 2.0
"""By which the draws' deviation is multiplied for an interval: without it one of 95% held as rarely as 60% of the time
in replays of recorded searches, as what lies beyond the trials that went on follows no line."""


@dataclass(frozen=True)
class Estimates:
    """Estimated final values of one metric.

    Attributes:
        ended: the value that each pruned trial had at its end, by number.
        draws: the values that it may have had at the end of a full run, (`DRAWS`,) each, by number.
    """

    ended: dict[int, float]
    draws: dict[int, Array]

    def value(self, number: int) -> float:
        """The estimate for one trial."""
        return float(self.draws[number].mean())


def pruned(spec: StudySpec, record: StudyRecord) -> "Pruned":
    """The pruned trials of a study; the same ones within `study.ranking.ranked_once`, whose estimates are kept."""
    if record.computed is None:
        return Pruned(spec, record)
    key = "pruned", id(spec)
    if key not in record.computed:
        record.computed[key] = spec, Pruned(spec, record)
    found: Pruned = record.computed[key][1]
    return found


class Pruned:
    """The pruned trials of a study's search.

    Args:
        spec, record: of the study; the record must not change.
    """

    def __init__(self, spec: StudySpec, record: StudyRecord) -> None:
        self._spec, self._record = spec, record
        self._known: dict[str, Estimates | str] = {}

    def values(self, metric: str) -> Estimates | str:
        """The estimates of a metric, or in words why there are none."""
        if metric not in self._known:
            self._known[metric] = self._estimates(metric)
        return self._known[metric]

    @cached_property
    def _trials(self) -> list[TrialRecord]:
        """The search's trials that ran to their end or were pruned."""
        return [trial for trial in self._record.by_stage("search") if trial.state in ("complete", "pruned")]

    @cached_property
    def _parameters(self) -> Array:
        """(trials, columns): the searched parameters, and which trials have those that not all have."""
        params = [trial.params for trial in self._trials]
        columns = [np.empty((len(params), 0))]
        for key, axis in axes(self._spec, DEGREE).items():
            columns.append(axis.columns(params) * np.sqrt(axis.weights))
            given = np.array([key in one for one in params], dtype=float)
            columns += [given[:, None] - given.mean()] if given.min(initial=1.0) < given.max(initial=0.0) else []
        return np.hstack(columns)

    def _estimates(self, metric: str) -> Estimates | str:
        trials, goal = self._trials, self._spec.objective
        if self._spec.search.early_stopping.name == "none":
            return "the study file has no rule of early stopping"
        stopped = np.array([trial.state == "pruned" for trial in trials], dtype=bool)
        ended = [epochs.value(goal, trial, metric) for trial in trials]
        final = np.array([_number(value) for value in ended])
        if not np.isfinite(final[stopped]).all():
            return "not every pruned trial reports it"
        lasts = np.array([trial.epochs for trial in trials])
        used, stages = stopped | np.isfinite(final), []
        for epoch in sorted(set(lasts[stopped].tolist()), reverse=True):
            ends, goes_on = np.flatnonzero(stopped & (lasts == epoch)), np.flatnonzero(used & (lasts > epoch))
            reached = np.array([*thin(goes_on.tolist(), MOST), *ends])
            shown = _shown(self._spec, [trials[place] for place in reached], metric, epoch)
            whole = np.isfinite(shown).all(1)
            there = np.isin(reached, ends)
            stages.append(Stage(reached[whole], there[whole], shown[whole, 0], shown[whole, 1:]))
            if (on := int((~stages[-1].stopped).sum())) < ENOUGH:
                return f"{formatting.count(on, 'trial')} went on after epoch {epoch}, {ENOUGH} are needed"
        table = metrics.find(metric)
        low, high = (table.low, table.high) if table else (None, None)
        values = impute(
            stages,
            np.where(stopped, np.nan, final),
            self._parameters,
            -math.inf if low is None else low,
            math.inf if high is None else high,
        )
        if not np.isfinite(values[stopped]).all():
            return "not every pruned trial reports what early stopping looks at"
        places = np.flatnonzero(stopped)
        numbers = [trials[place].number for place in places]
        return Estimates(
            dict(zip(numbers, final[places].tolist(), strict=True)), dict(zip(numbers, values[places], strict=True))
        )


def standard_error(draws: Array) -> float:
    """Of a mean that was drawn so often, (`DRAWS`,)."""
    return WIDER * float(draws.std(ddof=1))


def _shown(spec: StudySpec, trials: Sequence[TrialRecord], metric: str, epoch: int) -> Array:
    """(trials, features): what each showed up to an epoch; first the metric, had the trial ended there.

    Then the study's other metrics and limits, which early stopping compares, too, and from the reports of the epochs:
    how far the mean of the second half lies from the value, and how far that of the second quarter is behind.
    """
    names = list(dict.fromkeys([metric, *spec.objective.needed]))
    rows = []
    for trial in trials:
        reports = trial.reports[:epoch]
        until = replace(trial, reports=reports)
        row = [_number(epochs.value(spec.objective, until, name)) for name in names]
        half, quarter = epoch // 2, epoch // 4
        for name, value in zip(names, list(row), strict=True):
            course = [_number(report.get(name)) for report in reports]
            row += [fmean(course[half:]) - value] if half else []
            row += [fmean(course[half:]) - fmean(course[quarter:half])] if quarter else []
        rows.append(row)
    return np.array(rows, dtype=float)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
