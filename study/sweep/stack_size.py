"""How many trials are trained as one: as many as the study file says, or as their first epochs show to be fastest."""

from collections.abc import Callable, Mapping

SIZES = (1, 4, 8, 16)
"""That are tried in turn."""

EPOCHS = 2
"""That are measured at each, of those behind the first in a process, which takes longer."""

GAIN = 0.98
"""A larger stack is taken if a trial's epoch takes at most so much of the time that it takes in the best one so far."""


class StackSize:
    """Of the trials of one kind, which differ in numbers only.

    Where it is to be found out, stacks grow from 1 through `SIZES` while that makes a trial's epoch faster; the epochs
    that are measured are epochs of the study.

    Args:
        wanted: by the study file; None: it is to be found out.
        tell: is told, once, the size that was found, and a trial's seconds per epoch by size.
        known: the size that was found in an earlier session.
    """

    def __init__(
        self, wanted: int | None, tell: Callable[[int, Mapping[int, float]], object], known: int | None = None
    ) -> None:
        self._found, self._tell = wanted or known, tell
        self._limit: int | None = None
        self._place = 0
        self._took: dict[int, list[float]] = {}
        self._warm: set[tuple[str, int]] = set()

    @property
    def now(self) -> int:
        """How many go together at this moment, at most."""
        size = self._found or SIZES[self._place]
        return size if self._limit is None else min(size, self._limit)

    @property
    def most(self) -> int:
        """How many may ever go together."""
        size = self._found or SIZES[-1]
        return size if self._limit is None else min(size, self._limit)

    def keep_below(self, size: int) -> None:
        """More than this do not fit into memory."""
        self._limit = size if self._limit is None else min(size, self._limit)

    def took(self, process: str, rows: int, seconds: float) -> None:
        """A process with so many trials trained an epoch of each in these seconds."""
        if self._found or rows != self.now:
            return
        if (process, rows) not in self._warm:
            self._warm.add((process, rows))
            return
        self._took.setdefault(rows, []).append(seconds / rows)
        if len(self._took[rows]) < EPOCHS:
            return
        best = {size: min(took) for size, took in self._took.items()}
        before = min((took for size, took in best.items() if size != rows), default=float("inf"))
        if best[rows] <= GAIN * before and self._place + 1 < len(SIZES) and self._limit is None:
            self._place += 1
            return
        self._found = rows if best[rows] <= GAIN * before else min(best, key=best.__getitem__)
        self._tell(self._found, best)
