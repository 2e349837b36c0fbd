"""How long processes were busy with trials, shared among those that ran in one at the same time."""

from collections.abc import Hashable


class ProcessTime:
    """The time of each process, each moment divided evenly among the trials that run in it.

    Example:
        >>> time = ProcessTime()
        >>> time.begin(0, "node:1", 0.0)
        >>> time.begin(1, "node:1", 4.0)
        >>> time.end(0, 10.0), time.end(1, 11.0)
        (7.0, 4.0)
    """

    def __init__(self) -> None:
        self._shares: dict[Hashable, dict[int, float]] = {}
        self._since: dict[Hashable, float] = {}
        self._places: dict[int, Hashable] = {}

    def begin(self, trial: int, process: str | None, now: float) -> None:
        """A trial begins to run in a process; None: one of its own."""
        self.end(trial, now)
        place = self._places[trial] = process or trial
        self._settle(place, now)
        self._shares.setdefault(place, {})[trial] = 0.0

    def end(self, trial: int, now: float) -> float:
        """It runs no more: the seconds that were its own, 0 where it did not."""
        if (place := self._places.pop(trial, None)) is None:
            return 0.0
        self._settle(place, now)
        return self._shares[place].pop(trial)

    def _settle(self, place: Hashable, now: float) -> None:
        shares = self._shares.get(place, {})
        passed = max(0.0, now - self._since.get(place, now))
        self._since[place] = now
        for trial in shares:
            shares[trial] += passed / len(shares)
