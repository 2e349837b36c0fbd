"""A Gaussian process over (configuration, epoch), which learns from complete, paused and pruned trials alike."""

from typing import Any

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from study.spec import StudySpec
from study.spec.rungs import down
from study.sweep.prospects import Prospects, Seen
from study.sweep.samplers.history import History
from study.sweep.samplers.strategy import Strategy


class MultiFidelityStrategy(Strategy):
    """The configuration of some random ones from whose full run the largest gain is expected.

    It models the values at some epochs together with those at the end, and how they go together is learnt
    (`study.sweep.curve_process`). What another study found (`search.from`) is one more such fidelity: it counts for as
    much as it agrees. The first `WARM` trials are random.
    """

    WARM, MOST, DEEPEST = 3, 60, 8

    def __init__(self, spec: StudySpec, history: History) -> None:
        super().__init__(spec, history)
        self._rungs = down(spec.epochs, max(1, spec.epochs // self.DEEPEST), 2)
        self._prospects = Prospects(spec, len(self._rungs) + 1)

    def suggest(self, number: int) -> dict[str, Any]:
        drawn = self._prospects.drawn(number)
        known = self._history.window(self.MOST // 2, self.MOST // 2, pruned=True)
        complete = [
            place for place, trial in enumerate(known) if trial.state == TrialState.COMPLETE and trial.number >= 0
        ]
        if not complete or len(known) < self.WARM:
            return next((params for params in drawn if not self._history.knows(params)), drawn[0])
        seen = [one for place, trial in enumerate(known) for one in self._values(place, trial)]
        points = np.array([self._prospects.point(params) for params in [*(trial.params for trial in known), *drawn]])
        mode = self._prospects.mode(points, seen)
        gain = self._prospects.outlook(mode, points, seen, complete).gain[len(known) :]
        order = np.argsort(-gain, kind="stable")
        return next((drawn[place] for place in order if not self._history.knows(drawn[place])), drawn[order[0]])

    def _values(self, place: int, trial: FrozenTrial) -> Seen:
        """What is known of a trial; its number among the points is `place`."""
        sign = 1.0 if self._history.directions[0].name == "MAXIMIZE" else -1.0
        if trial.number < 0:
            return [(place, 0, sign * (trial.value or 0.0))]
        course = trial.intermediate_values
        found = [
            (place, index, sign * course[rung])
            for index, rung in enumerate(self._rungs[:-1], start=1)
            if rung in course
        ]
        if trial.state == TrialState.COMPLETE:
            found.append((place, len(self._rungs), sign * (trial.value or 0.0)))
        return found
