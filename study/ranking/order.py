"""Which configuration of a study is best: one rule, used by driver, export, summary and report alike.

A configuration's value is the study's metric at the last epoch, the mean over its replicates where it has some. Only
complete trials count, never a part of one. Where the best configurations were all confirmed on fresh seeds, the mean
over these decides, so that a lucky seed does not win; else the value of the search does. Several metrics and
constraints are ordered as `study.spec.objective.order` does, ties go to the earlier trial. Only validation metrics are
looked at.
"""

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from study.home.record import ENDED, StudyRecord, TrialRecord
from study.spec import StudySpec, objective
from study.spec.objective import Objective, Score
from study.spec.schema import Confirm


@dataclass(frozen=True)
class Spread:
    """Mean, sample standard deviation (None for fewer than two values) and count."""

    mean: float
    deviation: float | None
    count: int

    def to_document(self) -> dict[str, Any]:
        """As plain values: mean, sd, n."""
        return {"mean": self.mean, "sd": self.deviation, "n": self.count}


@dataclass(frozen=True)
class Candidate:
    """A configuration that ran at full budget.

    Attributes:
        trial: the baseline, search or final trial.
        value: its metric, the first of several; the mean over `replicates`.
        score: all its metrics, and by how much it misses the constraints.
        replicates: the trial itself and those on further seeds that the search saw.
        repeats: its complete confirm trials.
        confirmed: the metric over these, None if there are none.
        confirmed_score: the score of their means.
    """

    trial: TrialRecord
    value: float
    score: Score
    replicates: list[TrialRecord] = field(default_factory=list)
    repeats: list[TrialRecord] = field(default_factory=list)
    confirmed: Spread | None = None
    confirmed_score: Score | None = None


Rank = Callable[[StudyRecord, StudySpec], list[Candidate]]


def spread(values: Iterable[float | None]) -> Spread | None:
    """Mean and sample standard deviation of the values that there are."""
    found = [value for value in values if value is not None]
    if not found:
        return None
    return Spread(statistics.fmean(found), statistics.stdev(found) if len(found) > 1 else None, len(found))


def spreads(trials: Sequence[TrialRecord]) -> dict[str, Spread]:
    """Every validation metric at the last epoch, and every test metric that was read, over trials of several seeds."""
    found = {}
    for name in sorted({name for trial in trials for name in trial.reports[-1] if name.startswith("val/")}):
        found[name] = spread(trial.last(name) for trial in trials)
    for name in sorted({name for trial in trials for name in trial.tested}):
        found[name] = spread(trial.tested.get(name) for trial in trials)
    return {name: value for name, value in found.items() if value}


@contextmanager
def unchanging(record: StudyRecord) -> Iterator[None]:
    """For as long as a record does not change, it is ranked once: a report asks for the ranking dozens of times."""
    record.known = {}
    try:
        yield
    finally:
        record.known = None


def _once(rank: Rank) -> Rank:
    """A ranking that is computed once within `unchanging`."""

    @wraps(rank)
    def found(record: StudyRecord, spec: StudySpec) -> list[Candidate]:
        if record.known is None:
            return rank(record, spec)
        key = rank.__name__, id(spec)
        if key not in record.known:
            record.known[key] = spec, rank(record, spec)  # with the study, so that its id is not another's
        return list(record.known[key][1])  # the caller's own, to order in place

    return found


@_once
def candidates(record: StudyRecord, spec: StudySpec) -> list[Candidate]:
    """The search's complete trials, the best first: by confirmed mean where there is one, the others behind."""
    return [one for one in ranked(record, spec) if one.trial.stage == "search"]


@_once
def searched(record: StudyRecord, spec: StudySpec) -> list[Candidate]:
    """The search's complete trials by the value of the search alone, the best first."""
    trials = [one for trial in record.by_stage("search") if (one := _candidate(trial, record, spec))]
    return _sorted(trials, [one.score for one in trials])


@_once
def ranked(record: StudyRecord, spec: StudySpec) -> list[Candidate]:
    """Candidates and baseline, the best first: a search that gained nothing has its baseline at the top."""
    reference, confirmed = baseline(record, spec), is_confirmed(record, spec)
    everyone = ([reference] if reference else []) + searched(record, spec)
    everyone.sort(key=lambda one: one.trial.number)
    first = [one for one in everyone if confirmed and one.confirmed_score]
    others = [one for one in everyone if one not in first]
    means = [one.confirmed_score for one in first if one.confirmed_score]
    return _sorted(first, means) + _sorted(others, [one.score for one in others])


def front(record: StudyRecord, spec: StudySpec) -> list[Candidate]:
    """The configurations, the baseline among them, that no other is better than in every metric; the best first."""
    everyone = ranked(record, spec)
    return [everyone[place] for place in objective.front([one.score for one in everyone])]


def mean_score(goal: Objective, trials: Sequence[TrialRecord]) -> Score | None:
    """The score of the means over trials of each metric at the last epoch, None if a trial lacks one."""
    if not all(trial.reports for trial in trials) or not trials:
        return None
    if len(trials) == 1:
        return goal.score(trials[0].reports[-1])
    means: dict[str, float | None] = {}
    for name in goal.needed:
        values = [value for trial in trials if (value := trial.last(name)) is not None]
        means[name] = statistics.fmean(values) if len(values) == len(trials) else None
    return goal.score(means)


def best(record: StudyRecord, spec: StudySpec) -> Candidate | None:
    """The best configuration, None if no trial is complete."""
    return next(iter(ranked(record, spec)), None)


def baseline(record: StudyRecord, spec: StudySpec) -> Candidate | None:
    """The baseline, if it completed."""
    return next((_candidate(trial, record, spec) for trial in record.by_stage("baseline")), None)


def confirm(record: StudyRecord, spec: StudySpec) -> Confirm:
    """What the study file says of confirm trials, or what was asked for later."""
    if record.confirming is None:
        return spec.search.confirm
    top, seeds = record.confirming
    return Confirm(top=top, seeds=seeds)


def confirm_seeds(record: StudyRecord, spec: StudySpec) -> range:
    """Training seeds of the confirm trials: none that the search saw."""
    wanted, first = confirm(record, spec), max(spec.seeds) + 1
    return range(first, first + (wanted.seeds if wanted.top else 0))


def to_confirm(record: StudyRecord, spec: StudySpec, top: bool = True) -> list[TrialRecord]:
    """The trials whose configurations run again on fresh seeds: the baseline and, with `top`, the search's best."""
    wanted = confirm(record, spec).top
    if wanted == 0:
        return []
    reference = baseline(record, spec)
    best = searched(record, spec)[:wanted] if top else []
    return [one.trial for one in ([reference] if reference else []) + best]


def is_confirmed(record: StudyRecord, spec: StudySpec) -> bool:
    """Whether every configuration to confirm has run on all its seeds: before that, their means do not compare."""
    chosen = to_confirm(record, spec)
    ended = [trial.repeats for trial in record.by_stage("confirm") if trial.state in ENDED]
    seeds = confirm(record, spec).seeds
    return bool(chosen) and all(ended.count(trial.number) >= seeds for trial in chosen)


def _candidate(trial: TrialRecord, record: StudyRecord, spec: StudySpec) -> Candidate | None:
    if trial.state != "complete":
        return None
    seeds = [trial, *record.repeats_of(trial.number, "replicate")]
    wanted = 1 if trial.stage == "final" else len(spec.seeds)
    score = mean_score(spec.objective, seeds)
    if score is None or len(seeds) < wanted or any(one.state != "complete" for one in seeds):
        return None
    repeats = [one for one in record.repeats_of(trial.number) if one.state == "complete"]
    confirmed = spread(one.last(spec.metric) for one in repeats)
    return Candidate(trial, score.values[0], score, seeds, repeats, confirmed, mean_score(spec.objective, repeats))


def _sorted(found: list[Candidate], scores: Sequence[Score]) -> list[Candidate]:
    return [found[place] for place in objective.order(scores)]
