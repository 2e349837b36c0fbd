"""The values of searched trials at ASHA's rungs, and the cut-offs there; no tables, so that it is told at once."""

from dataclasses import dataclass

import numpy as np

from study.home.record import StudyRecord, TrialRecord
from study.ranking.epochs import scores
from study.spec import StudySpec, rungs


@dataclass(frozen=True)
class RungPlace:
    """A searched trial's place at a rung.

    Attributes:
        epoch: of the rung.
        place, of: its place, from 1, among the trials that had come there when it came, itself included.
        final_place, final_of: the same among all that ever came there.
        early: whether it went on only because it came early: the cut-off of all others that ever came would have
            pruned it.
        pruned: how many of those ahead of it in the end were pruned there.
    """

    epoch: int
    place: int
    of: int
    final_place: int
    final_of: int
    early: bool
    pruned: int


def rung_places(spec: StudySpec, record: StudyRecord, number: int) -> list[RungPlace]:
    """Return where a searched trial stood at each rung that it went on from; empty where the study has several metrics
    or constraints, or another rule than ASHA with one bracket."""
    if len(spec.objective.metrics) > 1 or spec.objective.constraints:
        return []
    places = []
    for epoch in rung_epochs(spec):
        came = arrivals(spec, record, epoch)
        if number not in came or record.trials[number].epochs <= epoch:
            continue
        own, others = came[number], [value for trial, value in came.items() if trial != number]
        before = others[: list(came).index(number)]
        ahead = sum(spec.better(value, own) for value in before)
        limit = cut_off(others, spec)
        early = bool(own < limit if spec.mode == "max" else own > limit)
        better = [record.trials[trial] for trial, value in came.items() if spec.better(value, own)]
        pruned = sum(trial.state == "pruned" and trial.epochs == epoch for trial in better)
        places.append(RungPlace(epoch, ahead + 1, len(before) + 1, len(better) + 1, len(came), early, pruned))
    return places


def rung_epochs(spec: StudySpec) -> list[int]:
    """The epochs at which ASHA with one bracket compares trials; none for any other rule."""
    rule = spec.search.early_stopping
    if rule.name != "asha" or rule.brackets > 1 or spec.final_seeds is not None:
        return []
    return list(rungs.brackets(rule, spec.epochs)[0].rungs)


def value_at(trial: TrialRecord, spec: StudySpec, epoch: int) -> float | None:
    """Return what a trial was worth behind an epoch, had it ended there."""
    if spec.objective.window is None:  # its last epoch counts, so that no other has to be looked at
        score = spec.objective.score(trial.reports[epoch - 1]) if trial.epochs >= epoch else None
        return None if score is None else score.values[0]
    by_epoch = dict(scores(spec.objective, trial.reports[:epoch])) if trial.epochs >= epoch else {}
    return by_epoch[epoch].values[0] if epoch in by_epoch else None


def arrivals(spec: StudySpec, record: StudyRecord, rung: int) -> dict[int, float]:
    """The values of the searched trials at a rung, by trial, in the order of their arrival."""
    numbers = dict.fromkeys(number for event, number, epoch, _ in record.story if event == "report" and epoch == rung)
    trials = [record.trials[number] for number in numbers if record.trials[number].stage == "search"]
    values = {trial.number: value_at(trial, spec, rung) for trial in trials}
    return {number: value for number, value in values.items() if value is not None}


def cut_off(values: list[float], spec: StudySpec) -> float:
    """The worst value with which a trial goes on: 1 / reduction of the values are no worse; NaN without any."""
    if not values:
        return float("nan")
    share = 100 / spec.search.early_stopping.reduction
    return float(np.percentile(values, 100 - share if spec.mode == "max" else share))
