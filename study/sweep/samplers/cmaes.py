"""Covariance matrix adaptation (CMA-ES, Hansen and Ostermeier 2001), for ranges and one metric."""

import math
from typing import TYPE_CHECKING

import numpy as np
from cmaes import CMA

from study.knobs import Params, Scalar
from study.spec import StudySpec
from study.sweep.samplers import Strategy

if TYPE_CHECKING:
    from study.sweep.history import History, TrialEnd

SIGMA = 1 / 6
"""Standard deviation of the first generation: the ranges, from 0 to 1, reach three of them to either side."""

Rank = tuple[float, float, float]


class CMAStrategy(Strategy):
    """Normal distribution that moves, with each generation, to where the better half of the last one was.

    Complete trials rank before pruned ones: complete ones by constraints and then value, pruned ones by their epochs
    and then their value there. Failed ones do not count, nor what the study was given, nor a trial that ends when its
    generation is over. A distribution that has shrunk to a point begins again anywhere with twice as many trials in a
    generation (IPOP, Auger and Hansen 2005).
    """

    def __init__(self, spec: StudySpec, history: "History") -> None:
        super().__init__(spec, history)
        self._ranges = [key for key, distribution in history.distributions.items() if not distribution.single()]
        self._generation: list[tuple[np.ndarray, Rank]] = []
        self._running: dict[int, np.ndarray] = {}
        self._optimizer = self._begin(None, np.full(len(self._ranges), 0.5)) if self._ranges else None

    def suggest(self, number: int) -> dict[str, Scalar]:
        units: dict[str, float] = {}
        if self._optimizer is not None:
            self._optimizer.reseed_rng(self._seed(number))
            units = dict(zip(self._ranges, self._optimizer.ask().tolist(), strict=True))
        return self._space.walk(lambda key, domain: self._history.at(key, units.get(key, 0.5)))

    def adopted(self, number: int, params: Params) -> None:
        if number not in self._history.given:
            self._running[number] = np.array([self._history.unit(key, params[key]) for key in self._ranges])

    def ended(self, end: "TrialEnd") -> None:
        point, rank = self._running.pop(end.number, None), _rank(end)
        if self._optimizer is None or point is None or rank is None:
            return
        self._generation.append((point, rank))
        if len(self._generation) < self._optimizer.population_size:
            return
        ordered = sorted(self._generation, key=lambda member: member[1])
        self._optimizer.tell([(point, float(position)) for position, (point, _) in enumerate(ordered)])
        self._generation.clear()
        self._running.clear()
        if self._optimizer.should_stop():
            elsewhere = np.random.RandomState(self._seed(end.number)).rand(len(self._ranges))
            self._optimizer = self._begin(2 * self._optimizer.population_size, elsewhere)

    def _begin(self, population: int | None, mean: np.ndarray) -> CMA:
        bounds = np.tile([0.0, 1.0], (len(mean), 1))
        return CMA(mean=mean, sigma=SIGMA, bounds=bounds, population_size=population)


def _rank(end: "TrialEnd") -> Rank | None:
    """Return a trial's rank, smaller for a better one; None if it says nothing."""
    if end.state == "complete" and end.score is not None:
        return (-math.inf, end.score.violation, -end.score.gains[0])
    if end.state == "pruned" and end.course:
        epoch, score = end.course[-1]
        return (-epoch, 0.0, -score.gains[0])
    return None
