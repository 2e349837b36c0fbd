"""Grid search."""

from typing import TYPE_CHECKING

from study.knobs import Params, Scalar
from study.spec import StudySpec
from study.spec.space import grid_cells
from study.sweep.samplers import Strategy

if TYPE_CHECKING:
    from study.sweep.history import History


class GridStrategy(Strategy):
    """Grid search: every cell of the grid once, in the file's order; what was given to the study is not run again."""

    def __init__(self, spec: StudySpec, history: "History") -> None:
        super().__init__(spec, history)
        self._cells = grid_cells(self._space)
        self._next = next(self._cells, None)

    def suggest(self, number: int) -> dict[str, Scalar] | None:
        self._skip()
        return self._next

    def adopted(self, number: int, params: Params) -> None:
        self._skip()

    def _skip(self) -> None:
        while self._next is not None and self._history.knows(self._next):
            self._next = next(self._cells, None)
