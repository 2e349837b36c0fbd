"""Ways to cover a space that do not learn: Sobol's sequence and the grid."""

from collections.abc import Mapping
from typing import Any

from study.spec import StudySpec
from study.spec.distributions import at
from study.spec.space import grid_cells
from study.sweep.samplers.strategy import History, Strategy


class SobolStrategy(Strategy):
    """Sobol's sequence, scrambled (Owen 1998) by the search's seed: a point for each trial, a coordinate for each key.

    A trial takes the coordinates of the keys that it has.
    """

    def suggest(self, number: int) -> dict[str, Any]:
        from scipy.stats.qmc import Sobol  # slow to import

        if not self._space.domains:
            return {}
        points = Sobol(len(self._space.domains), scramble=True, seed=self._spec.search.seed)
        position = len(self._history.trials)
        if position:
            points.fast_forward(position)
        units = dict(zip(self._space.domains, points.random(1)[0].tolist(), strict=True))
        return self._space.walk(lambda key, domain: at(self._history.distributions[key], units[key]))


class GridStrategy(Strategy):
    """Every cell of the grid once, in the file's order; what was given to the study is not run again."""

    def __init__(self, spec: StudySpec, history: History) -> None:
        super().__init__(spec, history)
        self._cells = grid_cells(self._space)
        self._next = next(self._cells, None)

    def suggest(self, number: int) -> dict[str, Any] | None:
        self._skip()
        return self._next

    def adopted(self, number: int, params: Mapping[str, Any]) -> None:
        self._skip()

    def _skip(self) -> None:
        while self._next is not None and self._history.knows(self._next):
            self._next = next(self._cells, None)
