"""The difference between two configurations: the best of the search and the baseline, with its interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from scipy.special import stdtrit

from study.analysis.statistics.frame import metric
from study.home.record import StudyRecord, TrialRecord
from study.ranking import Candidate, Spread, baseline, candidates, spread
from study.spec import StudySpec

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Side:
    """One configuration and the trials that its metrics are taken from.

    Where a configuration was confirmed on fresh seeds, the trial by which it was chosen is left out: its value is the
    luckiest of many.
    """

    label: str
    number: int
    trials: Sequence[TrialRecord]
    spec: StudySpec

    def spread(self, name: str) -> Spread | None:
        """Mean and sample standard deviation of a metric over the trials that have it."""
        return spread(metric(self.spec, trial, name) for trial in self.trials)

    def seeds(self, name: str) -> list[int]:
        """The seeds behind `spread`."""
        return [trial.seed for trial in self.trials if metric(self.spec, trial, name) is not None]


@dataclass(frozen=True)
class Difference:
    """A difference of means and its interval (Welch's t, 95%), None where a side has fewer than two values."""

    value: float
    interval: tuple[float, float] | None

    @property
    def clear(self) -> bool | None:
        """Whether zero lies outside the interval; None without an interval."""
        return None if self.interval is None else self.interval[0] > 0 or self.interval[1] < 0


def side_of(spec: StudySpec, candidate: Candidate) -> Side:
    """A configuration with its confirm trials, or without any with the trials that the search saw."""
    label = "baseline" if candidate.trial.stage == "baseline" else f"trial {candidate.trial.number}"
    trials = candidate.repeats if candidate.confirmed else candidate.replicates
    return Side(label, candidate.trial.number, trials, spec)


def sides(spec: StudySpec, record: StudyRecord) -> tuple[Side | None, Side | None]:
    """The baseline and the best searched configuration, each None if no such trial is complete."""
    reference, best = baseline(record, spec), next(iter(candidates(record, spec)), None)
    return side_of(spec, reference) if reference else None, side_of(spec, best) if best else None


def final_side(spec: StudySpec, record: StudyRecord) -> Side | None:
    """The final trials of an exported configuration, None if none is complete."""
    trials = [trial for trial in record.by_stage("final") if trial.state == "complete"]
    return Side("final training", trials[0].number, trials, spec) if trials else None


def difference(one: Spread | None, other: Spread | None, confidence: float = CONFIDENCE) -> Difference | None:
    """`one` minus `other`; None if either is missing."""
    if one is None or other is None:
        return None
    value = one.mean - other.mean
    if one.deviation is None or other.deviation is None:
        return Difference(value, None)
    variances = [side.deviation**2 / side.count for side in (one, other) if side.deviation is not None]
    total = sum(variances)
    if total == 0.0:
        return Difference(value, (value, value))
    shares = [variance / total for variance in variances]  # squares of these cannot vanish, as those of variances can
    freedom = 1 / sum(share**2 / (side.count - 1) for share, side in zip(shares, (one, other), strict=True))
    reach = float(stdtrit(freedom, (1 + confidence) / 2)) * math.sqrt(total)
    return Difference(value, (value - reach, value + reach))


def split_metrics(spec: StudySpec, compared: Sequence[Side | None]) -> list[str]:
    """The study's metric on both splits, then every other `val/*` and `test/*` metric that the sides have."""
    trials = list(chain.from_iterable(side.trials for side in compared if side))
    names = {key for trial in trials for source in (*trial.reports[-1:], trial.tested) for key in source}
    first = [spec.metric, spec.test_metric]
    return [*first, *sorted(n for n in names if n.startswith(("val/", "test/")) and n not in first)]
