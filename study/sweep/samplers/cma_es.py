"""Covariance matrix adaptation (CMA-ES, Hansen and Ostermeier 2001): ranges of one metric."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.distributions import FloatDistribution, IntDistribution

from study.spec import StudySpec
from study.spec.distributions import at, unit
from study.sweep.samplers.history import History, Told
from study.sweep.samplers.strategy import Strategy

if TYPE_CHECKING:
    from cmaes import CMA

SIGMA = 1 / 6
"""Standard deviation of the first generation: the ranges, from 0 to 1, reach three of them to either side."""

Rank = tuple[float, float, float]


class CMAStrategy(Strategy):
    """Draws from a normal distribution that moves, with each generation, to where the better half of the last was.

    Complete trials rank before stopped ones, by constraints and then value, stopped ones by how far they came and
    then their value there; failed ones do not count, nor what the study was given, nor a trial that ends when its
    generation is over. A distribution that has shrunk to a point begins again anywhere with twice as many trials in a
    generation (IPOP, Auger and Hansen 2005).
    """

    def __init__(self, spec: StudySpec, history: History) -> None:
        super().__init__(spec, history)
        self._ranges = {
            key: one
            for key, one in history.distributions.items()
            if isinstance(one, FloatDistribution | IntDistribution) and not one.single()
        }
        self._given = [spec.search.baseline, *spec.search.enqueue]
        self._generation: list[tuple[np.ndarray, Rank]] = []
        self._running: dict[int, np.ndarray] = {}
        self._optimizer = self._begin(None, np.full(len(self._ranges), 0.5)) if self._ranges else None

    def suggest(self, number: int) -> dict[str, Any]:
        units: dict[str, float] = {}
        if self._optimizer is not None:
            self._optimizer.reseed_rng(self._seed(number))
            units = dict(zip(self._ranges, self._optimizer.ask().tolist(), strict=True))
        return self._space.walk(lambda key, domain: at(self._history.distributions[key], units.get(key, 0.5)))

    def adopted(self, number: int, params: Mapping[str, Any]) -> None:
        if params not in self._given:
            self._running[number] = np.array([unit(one, params[key]) for key, one in self._ranges.items()])

    def told(self, told: Told) -> None:
        point, rank = self._running.pop(told.number, None), _rank(told)
        if self._optimizer is None or point is None or rank is None:
            return
        self._generation.append((point, rank))
        if len(self._generation) < self._optimizer.population_size:
            return
        ordered = sorted(self._generation, key=lambda one: one[1])
        self._optimizer.tell([(one, float(position)) for position, (one, _) in enumerate(ordered)])
        self._generation.clear()
        self._running.clear()
        if self._optimizer.should_stop():
            elsewhere = np.random.RandomState(self._seed(told.number)).rand(len(self._ranges))
            self._optimizer = self._begin(2 * self._optimizer.population_size, elsewhere)

    def _begin(self, population: int | None, mean: np.ndarray) -> "CMA":
        from cmaes import CMA

        bounds = np.tile([0.0, 1.0], (len(mean), 1))
        return CMA(mean=mean, sigma=SIGMA, bounds=bounds, population_size=population)


def _rank(told: Told) -> Rank | None:
    """The better trial's is smaller; None of a trial that says nothing."""
    if told.state == "complete" and told.score is not None:
        return (-math.inf, told.score.violation, -told.score.gains[0])
    if told.state == "pruned" and told.course:
        epoch, score = told.course[-1]
        return (-epoch, 0.0, -score.gains[0])
    return None
