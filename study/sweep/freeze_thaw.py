"""Early stopping by a model of all curves: trials pause that are not expected to become the best, and may go on."""

from collections.abc import Container, Mapping
from typing import Any, NamedTuple

import numpy as np

from study.home.events import State
from study.spec import StudySpec
from study.spec.objective import Score
from study.spec.rungs import down, grace
from study.sweep.curve_process import Array
from study.sweep.prospects import Prospects
from study.sweep.rule import EarlyStopping, Verdict


class _Outlook(NamedTuple):
    """What is expected of the trials that are looked at and of new configurations.

    Attributes:
        among: the index of each trial's place.
        chance: the probability to end better than the best complete one.
        rate: the expected gain per epoch that is left.
        new: the largest rate of a new configuration.
    """

    among: dict[int, int]
    chance: Array
    rate: Array
    new: float


class FreezeThaw(EarlyStopping):
    """Freeze-thaw (Swersky et al. 2014, arXiv 1406.3896) with a Gaussian process over (configuration, rung).

    The first `START` trials run in full, or as many as are confirmed. Every other pauses at a rung unless it may well
    end better than the best complete one (with probability `DOUBT`), or gains as much per epoch that is left as a new
    configuration would. A free process goes to the paused trial or the new configuration with the largest expected gain
    per epoch. How the order at a rung foretells that at the end is learnt from the trials of the study: where the early
    leaders are the losers, they are what pauses.

    Rungs are `reduction` times fewer epochs each, from the last epoch down to `grace`.

    Args:
        spec: of the study, with one metric and no constraints.
    """

    name = "freeze_thaw"
    START, DOUBT = 4, 0.1
    BEST, NEWEST = 30, 90

    def __init__(self, spec: StudySpec) -> None:
        rule = spec.search.early_stopping
        self._epochs, self._rungs = spec.epochs, down(spec.epochs, grace(rule, spec.epochs), rule.reduction)
        self._prospects = Prospects(spec, len(self._rungs))
        self._full = max(self.START, spec.search.confirm.top)
        self._places: dict[int, int] = {}  # of each trial among the points
        self._points: list[Array] = []
        self._seen: list[tuple[int, int, float]] = []
        self._reached: dict[int, int] = {}  # epochs of the last rung that each trial reached
        self._complete: list[int] = []
        self._paused: set[int] = set()
        self._known: _Outlook | None = None
        self._new: tuple[int, Array] | None = None
        self._mode: tuple[int, Array] | None = None

    def pauses_at(self, trial: int) -> Container[int]:
        return self._rungs[:-1]

    def decided(self, trial: int, params: Mapping[str, Any]) -> None:
        self._places[trial] = len(self._points)
        self._points.append(self._prospects.point(params))
        self._reached[trial] = 0
        self._known = None

    def judge(self, trial: int, epoch: int, score: Score) -> Verdict:
        reached = [rung for rung in self._rungs if self._reached[trial] < rung <= epoch]
        if not reached:
            return "on"
        self._hear(trial, reached[-1], score)
        if self._places[trial] < self._full or not self._complete:
            return "on"
        outlook = self._outlook()
        own = outlook.among.get(self._places[trial])
        if own is not None and (outlook.chance[own] >= self.DOUBT or outlook.rate[own] >= outlook.new):
            return "on"
        self._paused.add(trial)
        return "pause"

    def completed(self, trial: int, score: Score) -> None:
        self._hear(trial, self._epochs, score)
        self._complete.append(self._places[trial])

    def thaw(self, more: bool) -> int | None:
        if not self._paused:
            return None
        outlook = self._outlook()
        known = {
            trial: outlook.among[self._places[trial]]
            for trial in sorted(self._paused)
            if self._places[trial] in outlook.among
        }
        if not known:
            return None
        best = max(known, key=lambda trial: outlook.rate[known[trial]])
        worth = outlook.rate[known[best]] > outlook.new if more else outlook.chance[known[best]] >= self.DOUBT
        return best if worth else None

    def thawed(self, trial: int) -> None:
        self._paused.discard(trial)

    def ended(self, trial: int, state: State) -> None:
        self._paused.discard(trial)

    def _hear(self, trial: int, rung: int, score: Score) -> None:
        self._reached[trial] = rung
        self._seen.append((self._places[trial], self._rungs.index(rung), score.gains[0]))
        self._known = None

    def _outlook(self) -> _Outlook:
        if self._known is None:
            begun = len(self._points)
            if self._new is None or self._new[0] != begun:
                drawn = self._prospects.drawn(begun)
                self._new = begun, np.array([self._prospects.point(params) for params in drawn])
            window = self._window()
            among = {place: index for index, place in enumerate(window)}
            points = np.concatenate([[self._points[place] for place in window], self._new[1]])
            seen = [(among[place], rung, value) for place, rung, value in self._seen if place in among]
            complete = [among[place] for place in self._complete if place in among]
            chance, gain = self._prospects.outlook(self._hyperparameters(), points, seen, complete)
            trials = list(self._places)
            left = [self._epochs - self._reached[trials[place]] for place in window]
            rate = gain / np.maximum([*left, *[self._epochs] * len(self._new[1])], 1)
            self._known = _Outlook(among, chance, rate, float(rate[len(window) :].max()))
        return self._known

    def _window(self) -> list[int]:
        """The trials that are looked at: the best complete ones and the newest."""
        last = {place: value for place, rung, value in self._seen if rung == len(self._rungs) - 1}
        best = sorted(self._complete, key=lambda place: -last[place])[: self.BEST]
        return sorted({*best, *range(max(0, len(self._points) - self.NEWEST), len(self._points))})

    def _hyperparameters(self) -> Array:
        """Found anew each time that a quarter more was seen, of what was seen by then: so they do not depend on when
        they are asked for."""
        count = 4
        while (more := count + count // 4) <= len(self._seen):
            count = more
        if self._mode is None or self._mode[0] != count:
            self._mode = count, self._prospects.mode(np.array(self._points), self._seen[:count])
        return self._mode[1]
