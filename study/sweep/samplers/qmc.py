"""Sobol's sequence: quasi-Monte Carlo, SciPy's."""

from scipy.stats.qmc import Sobol

from study.knobs import Scalar
from study.sweep.samplers import Strategy


class SobolStrategy(Strategy):
    """Sobol's sequence, scrambled (Owen 1998) by the search's seed: a point for each trial, a coordinate for each key.

    A trial takes the coordinates of the keys that it has.
    """

    def suggest(self, number: int) -> dict[str, Scalar]:
        if not self._space.domains:
            return {}
        points = Sobol(len(self._space.domains), scramble=True, seed=self._spec.search.seed)
        position = len(self._history.trials)
        if position:
            points.fast_forward(position)
        units = dict(zip(self._space.domains, points.random(1)[0].tolist(), strict=True))
        return self._space.walk(lambda key, domain: self._history.at(key, units[key]))
