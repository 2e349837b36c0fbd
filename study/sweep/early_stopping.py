"""Early stopping: which searched trials go on at a rung, by asynchronous successive halving."""

import math
from bisect import bisect_right, insort
from collections import defaultdict

from study.spec import StudySpec
from study.spec.objective import TrialScore
from study.spec.rungs import RungSchedule


class AshaRung:
    """The trials that reached a rung, by constraints and then by their metric.

    The cut is their percentile 100 (1 - 1/reduction), interpolated linearly as Ray Tune's ASHA does it; a trial that
    equals it goes on. Between two peers that miss the limits by different amounts nothing is interpolated: the cut is
    the nearer of them.
    """

    def __init__(self, reduction: int) -> None:
        self._place = (1 - 1 / reduction) * 100 / 100  # by way of percent, for the same bits as Ray's
        self._peers: list[tuple[float, float]] = []  # ascending

    def admit_trial(self, standing: tuple[float, float]) -> bool:
        """Add a trial; return whether it was good enough among those before it to go on, as the first one is."""
        goes_on = not self._peers or standing >= self._cutoff_score()
        insort(self._peers, standing)
        return goes_on

    def _cutoff_score(self) -> tuple[float, float]:
        place = (len(self._peers) - 1) * self._place
        (missed, low), (more, high), part = self._peers[math.floor(place)], self._peers[math.ceil(place)], place % 1.0
        if missed != more:
            return (missed, low) if part < 0.5 else (more, high)
        # equal but for rounding; NumPy's percentile, and so Ray, goes from the nearer end
        return missed, low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)


class EarlyStopping:
    """Decides of each searched trial whether it goes on (Li et al. 2020, MLSys); of several seeds it hears the first.

    A trial that reaches a rung goes on if it is among the best 1/`reduction` of those that reached the rung before it.
    Without constraints these are the decisions of Ray Tune's ASHAScheduler. An epoch without a score is skipped: the
    trial is judged at its next epoch that has one. It is fed from the ledger, so that a resumed study decides as an
    uninterrupted one, and draws nothing at random. Without rungs every trial runs in full, and so it does where the
    study has several metrics: an early epoch says too little of a front.
    """

    def __init__(self, spec: StudySpec) -> None:
        rule = spec.search.early_stopping
        self.name: str = rule.name
        self._rungs = () if spec.objective.has_several_metrics else RungSchedule(rule, spec.epochs).rung_epochs
        self._reached: dict[int, AshaRung] = defaultdict(lambda: AshaRung(rule.reduction))
        self._heard: set[tuple[int, int]] = set()

    def should_prune(self, trial: int, epoch: int, score: TrialScore) -> bool:
        """Return whether a trial ends after this epoch; never called for the last epoch of a full run.

        An epoch of a trial that was heard before changes nothing, and False is returned.
        """
        number = bisect_right(self._rungs, epoch)
        if number == 0 or (trial, number) in self._heard:
            return False
        self._heard.add((trial, number))
        return not self._reached[number].admit_trial((-score.total_violation, score.values_to_maximise[0]))
