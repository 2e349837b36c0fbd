"""Curves of configurations that were never tried, from the ledger of a study that tried others.

A model of whole curves over the configuration (`study.simulation.smooth`) is fitted to the search's trials. Trials that
were pruned are used: what they would have gone on to is foretold first, those that came furthest first, from their
configuration and what they showed, by the trials that went on from there.

A configuration's curve is what the model says and a residual, drawn for each configuration and course: that of a trial
which was foretold to end alike, as the model knows it from trials that it was not fitted to. So courses differ by what
the model does not know.
Fresh seeds differ by what the study's confirm trials and replicates differed from their first seeds.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from study import metrics
from study.errors import UserError
from study.home.as_searched import as_searched
from study.home.record import StudyRecord, TrialRecord
from study.simulation.curves import Curve
from study.simulation.nearest import Coordinates
from study.simulation.smooth import Smooth
from study.simulation.table import key
from study.spec import StudySpec

Array = NDArray[np.float64]

ENOUGH = 5
"""Trials that ran to their end, at least."""
WEAK = 0.8
"""Of the deviation: an error above this is one of a model that knows little."""
MOST = 300
"""Trials that the model is fitted to: the newest."""
NEAR, SHARE = 3, 8
"""A configuration's residual is one of so many trials', or of this part of them, if that is more: of those that were
foretold to end most nearly as it. From all trials it made good configurations too good: the more a rule tries, the more
it seemed to find (`tests/benchmarks/plan_advice.py`)."""
FOLDS = 5
"""Parts of the trials, of which each is left out once for the error."""


@dataclass(frozen=True)
class Error:
    """How well the model foretells trials that it was not fitted to, at their last epoch.

    Attributes:
        trials, complete: that it was fitted to, and how many of these ran to their end.
        root_mean_square: of the study's metric at the end, over the complete ones.
        deviation: sample standard deviation of these, which one number for all would miss them by.
        agreement: Spearman's correlation of what was foretold and what came.
    """

    trials: int
    complete: int
    root_mean_square: float
    deviation: float
    agreement: float

    @property
    def is_weak(self) -> bool:
        """Whether one number for all configurations would be about as good."""
        return self.root_mean_square > WEAK * self.deviation


@dataclass(frozen=True)
class _Shift:
    """By how much a trial on another seed differed from its first seed, (epochs, metrics), by that seed."""

    seed: int
    difference: Array


@dataclass
class Surrogate:
    """The curves of a study's space, see above.

    Attributes:
        metrics: the study's own and those of its limits.
        error: what it is worth.
    """

    metrics: Sequence[str]
    error: Error
    _coordinates: Coordinates
    _model: Smooth
    _pace: Smooth
    _known: dict[str, Curve]
    _residuals: Array
    _left_out: Array
    _paces: Array
    _shifts: list[_Shift]
    _bounds: list[tuple[float | None, float | None]]
    _foretold: dict[str, tuple[Array, float]] = field(default_factory=dict)

    def course(self, number: int = 0) -> "SurrogateCurves":
        """The curves of the course of this number."""
        return SurrogateCurves(self, number)

    def like(self, values: Array) -> NDArray[np.intp]:
        """Places of the trials that were foretold to end most nearly so."""
        ends = self._left_out[:, -1, 0]
        return np.argsort(np.abs(ends - values[-1, 0]), kind="stable")[: max(NEAR, len(ends) // SHARE)]

    def foretold(self, params: Mapping[str, Any]) -> tuple[Array, float]:
        """What the model says of a configuration: (epochs, metrics), and seconds of an epoch."""
        name = key(params)
        if name not in self._foretold:
            point = self._coordinates([params])
            values = self._model(point).reshape(-1, len(self.metrics))
            self._foretold[name] = values, float(np.exp(self._pace(point)[0, 0]))
        return self._foretold[name]


@dataclass(frozen=True)
class SurrogateCurves:
    """The curves of one course over a surrogate, see `study.simulation.curves.Curves`."""

    surrogate: Surrogate
    number: int
    rows: None = None

    @property
    def metrics(self) -> Sequence[str]:
        """Of the surrogate."""
        return self.surrogate.metrics

    def curve(self, params: Mapping[str, Any], seed: int) -> Curve:
        """What the model says, its residual and that of the seed; a trial that ran in full is what it was."""
        model, own = self.surrogate, self._own(params)
        values = own.values + self._shift(params, seed) if seed else own.values
        return Curve(_bounded(values, model._bounds), own.seconds)

    def fresh(self, params: Mapping[str, Any], metric: str) -> float | None:
        """The same without the luck of the first seed: with the mean shift of the fresh ones."""
        shifts = [shift.difference for shift in self.surrogate._shifts]
        values = self._own(params).values
        values = values + np.mean(shifts, 0) if shifts else values
        return float(_bounded(values, self.surrogate._bounds)[-1, self.metrics.index(metric)])

    def _own(self, params: Mapping[str, Any]) -> Curve:
        model, name = self.surrogate, key(params)
        if name in model._known:
            return model._known[name]
        values, seconds = model.foretold(params)
        near = model.like(values)
        place = near[random.Random(f"residual {self.number} {name}").randrange(len(near))]
        return Curve(_bounded(values + model._residuals[place], model._bounds), seconds * float(model._paces[place]))

    def _shift(self, params: Mapping[str, Any], seed: int) -> Array | float:
        """What all configurations on this seed share, and what this one has for itself."""
        shifts = self.surrogate._shifts
        if not shifts:
            return 0.0
        means = _means(shifts)
        drawn = random.Random(f"seed {self.number} {seed}").choice(sorted(means))
        one = random.Random(f"seed {self.number} {seed} {key(params)}").choice(shifts)
        return means[drawn] + one.difference - means[one.seed]


def surrogate(spec: StudySpec, record: StudyRecord) -> Surrogate:
    """Fit the curves of a study, of its trials as the search ended them.

    Raises:
        UserError: too few of its trials ran to their end.
    """
    record = as_searched(record)
    names = list(spec.objective.needed)
    trials = [trial for trial in record.by_stage("baseline", "search") if trial.state in ("complete", "pruned")]
    trials = [trial for trial in trials if np.isfinite(_values(trial, names)).all()]
    complete = [trial for trial in trials if trial.state == "complete"]
    if len(complete) < ENOUGH:
        raise UserError(
            f"{spec.name}: {len(complete)} of its trials ran to their end, {ENOUGH} are needed to simulate it"
        )
    trials = trials[-MOST:]
    coordinates, seconds = Coordinates(spec), np.log([[_pace(trial)] for trial in trials])
    points, keys = coordinates([trial.params for trial in trials]), coordinates.keys
    lengths = np.array([trial.epochs for trial in trials])
    curves = _filled(points, keys, [_values(trial, names) for trial in trials], lengths, spec.epochs)
    flat = curves.reshape(len(trials), -1)
    model, pace = Smooth(points, keys, flat), Smooth(points, keys, seconds)
    left_out = model.left_out().reshape(curves.shape)
    residuals = curves - left_out
    for place, length in enumerate(lengths):  # behind its end a trial was foretold: what it was off by stays
        residuals[place, length:] = residuals[place, length - 1]
    table = [metrics.find(name) for name in names]
    return Surrogate(
        names,
        _error(points, keys, flat, lengths == spec.epochs, len(names)),
        coordinates,
        model,
        pace,
        {key(trial.params): Curve(_values(trial, names), _pace(trial)) for trial in complete},
        residuals,
        left_out,
        np.exp(seconds - pace.left_out()).ravel(),
        _shifts(spec, record, names),
        [(metric.low, metric.high) if metric else (None, None) for metric in table],
    )


def _filled(
    points: Array, keys: Sequence[slice], known: Sequence[Array], lengths: NDArray[np.int64], epochs: int
) -> Array:
    """(trials, epochs, metrics): the curves, their unknown ends foretold by the trials that went on from there."""
    width = points.shape[1]
    curves = np.full((len(known), epochs, known[0].shape[1]), np.nan)
    for place, values in enumerate(known):
        curves[place, : len(values)] = values
    for end in sorted(set(lengths[lengths < epochs].tolist()), reverse=True):
        ends, further = np.flatnonzero(lengths == end), np.flatnonzero(lengths > end)
        shown = np.hstack([curves[:, end - 1], curves[:, end - 1] - curves[:, (end - 1) // 2]])
        spread = shown[further].std(0)
        shown = np.hstack([points, shown / np.where(spread > 0, spread, 1.0) / 2])
        rises = (curves[further, end:] - curves[further, end - 1 : end]).reshape(len(further), -1)
        columns = [slice(column, column + 1) for column in range(width, shown.shape[1])]
        foretold = Smooth(shown[further], [*keys, *columns], rises)(shown[ends])
        curves[ends, end:] = curves[ends, end - 1 : end] + foretold.reshape(len(ends), epochs - end, -1)
    return curves


def _error(points: Array, keys: Sequence[slice], flat: Array, complete: NDArray[np.bool_], metrics: int) -> Error:
    """Fitted, scales too, without each part of the trials in turn."""
    from scipy.stats import spearmanr  # slow to import

    final, parts = -metrics, np.arange(len(points)) % FOLDS
    foretold = np.full(len(points), np.nan)
    for part in range(FOLDS):
        out = parts == part
        foretold[out] = Smooth(points[~out], keys, flat[~out])(points[out])[:, final]
    said, came = foretold[complete], flat[complete, final]
    varies = np.ptp(said) > 0 and np.ptp(came) > 0
    return Error(
        len(points),
        int(complete.sum()),
        float(np.sqrt(np.mean((said - came) ** 2))),
        float(came.std(ddof=1)),
        float(spearmanr(said, came).statistic) if varies else 0.0,
    )


def _shifts(spec: StudySpec, record: StudyRecord, names: Sequence[str]) -> list[_Shift]:
    found = []
    for trial in record.by_stage("replicate", "confirm", "rule"):
        first = record.trials[trial.repeats] if trial.repeats is not None else None
        if first is None or first.state != "complete" or trial.state != "complete" or trial.epochs != first.epochs:
            continue
        difference = _values(trial, names) - _values(first, names)
        if np.isfinite(difference).all():
            found.append(_Shift(trial.seed, difference))
    return found


def _means(shifts: Sequence[_Shift]) -> dict[int, Array]:
    seeds = {shift.seed for shift in shifts}
    return {seed: np.mean([shift.difference for shift in shifts if shift.seed == seed], 0) for seed in seeds}


def _values(trial: TrialRecord, names: Sequence[str]) -> Array:
    """(epochs, metrics) that a trial reported."""
    rows = [[report.get(name) for name in names] for report in trial.reports]
    return np.array(rows, dtype=float).reshape(len(rows), len(names))


def _pace(trial: TrialRecord) -> float:
    """Seconds of an epoch, with all that its runs took besides."""
    assert trial.seconds is not None
    return max(trial.seconds, 1e-3) / trial.epochs


def _bounded(values: NDArray[Any], bounds: Sequence[tuple[float | None, float | None]]) -> Array:
    low = [-np.inf if one is None else one for one, _ in bounds]
    high = [np.inf if one is None else one for _, one in bounds]
    return np.clip(values, low, high)
