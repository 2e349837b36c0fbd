"""A Gaussian process over (configuration, epoch), which learns from complete, paused and pruned trials alike."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from study.spec import StudySpec
from study.spec.rungs import down
from study.sweep.prospects import Prospects, Seen
from study.sweep.samplers.history import History
from study.sweep.samplers.strategy import Strategy

Worth = Callable[[Sequence[float]], float]
"""Of the metrics' values one number, larger is better."""


class MultiFidelityStrategy(Strategy):
    """The configuration of some random ones from whose full run the largest gain is expected.

    It models the values at some epochs together with those at the end, and how they go together is learnt
    (`study.sweep.curve_process`). What another study found (`search.from`) is one more such fidelity: it counts for as
    much as it agrees. The first `WARM` trials are random.

    Several metrics are one number for each suggestion, with weights of its own, so that suggestions spread along the
    trade-off: ParEGO (Knowles 2006, IEEE Transactions on Evolutionary Computation 10, Eq. 2).
    """

    WARM, MOST, DEEPEST = 3, 60, 8
    SUM = 0.05
    """The weight of ParEGO's sum beside its largest term."""

    def __init__(self, spec: StudySpec, history: History) -> None:
        super().__init__(spec, history)
        self._rungs = down(spec.epochs, max(1, spec.epochs // self.DEEPEST), 2)
        self._prospects = Prospects(spec, len(self._rungs) + 1)
        self._signs = np.array([1.0 if one is StudyDirection.MAXIMIZE else -1.0 for one in history.directions])

    def suggest(self, number: int) -> dict[str, Any]:
        drawn = self._prospects.drawn(number)
        known = self._history.window(self.MOST // 2, self.MOST // 2, pruned=True)
        complete = [
            place for place, trial in enumerate(known) if trial.state == TrialState.COMPLETE and trial.number >= 0
        ]
        if not complete or len(known) < self.WARM:
            return next((params for params in drawn if not self._history.knows(params)), drawn[0])
        lessons = sum(trial.number < 0 for trial in known)  # they come first
        worths = [self._worth(number, known[:lessons])] * lessons
        worths += [self._worth(number, known[lessons:])] * (len(known) - lessons)
        seen = [one for place, trial in enumerate(known) for one in self._values(place, trial, worths[place])]
        points = np.array([self._prospects.point(params) for params in [*(trial.params for trial in known), *drawn]])
        mode = self._prospects.mode(points, seen)
        gain = self._prospects.outlook(mode, points, seen, complete).gain[len(known) :]
        order = np.argsort(-gain, kind="stable")
        return next((drawn[place] for place in order if not self._history.knows(drawn[place])), drawn[order[0]])

    def _worth(self, number: int, known: Sequence[FrozenTrial]) -> Worth:
        """What the trial of this number is to be good at; of one metric that metric.

        Args:
            known: of one study, at whose ends each metric counts from 0 to 1; from all epochs where the ends are alike.
        """
        ends = [trial.values for trial in known if trial.state == TrialState.COMPLETE]
        if len(self._signs) == 1 or not ends:
            return lambda values: float(self._signs[0] * values[0])
        gains = self._signs * np.array(ends)
        every = np.array([*ends, *(values for trial in known for values in self._history.course(trial).values())])
        best, spread = gains.max(0), np.ptp(gains, axis=0)
        spread = np.where(spread > 0, spread, np.ptp(every, axis=0))
        spread = np.where(spread > 0, spread, 1.0)
        weights = np.random.default_rng((self._spec.search.seed, number, 1)).dirichlet(np.ones(len(self._signs)))

        def worth(values: Sequence[float]) -> float:
            short = weights * (best - self._signs * np.array(values)) / spread
            return -float(short.max() + self.SUM * short.sum())

        return worth

    def _values(self, place: int, trial: FrozenTrial, worth: Worth) -> Seen:
        """What is known of a trial; its number among the points is `place`."""
        if trial.number < 0:
            return [(place, 0, worth(trial.values))]
        course = self._history.course(trial)
        rungs = enumerate(self._rungs[:-1], start=1)
        found = [(place, index, worth(course[rung])) for index, rung in rungs if rung in course]
        if trial.state == TrialState.COMPLETE:
            found.append((place, len(self._rungs), worth(trial.values)))
        return found
