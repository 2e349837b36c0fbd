"""A sampler that can try recorded configurations alone: each suggestion stands for the nearest that was not tried."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from study.simulation.table import key
from study.spec import StudySpec
from study.spec.same import among
from study.spec.schema import Domain
from study.sweep.sampler import Sampler

HALF = 0.5**0.5


class Coordinates:
    """Configurations as points, of which nearness is asked.

    A range's value is its coordinate from 0 to 1 on its own scale. Choices stand at the corners of a simplex of side 1.
    A key that a configuration does not have is a choice of its own. A baseline need not be in the space: below a
    logarithmic range it stands at its lower end, and for a range what is no number is a key that it does not have.
    """

    def __init__(self, spec: StudySpec) -> None:
        self._domains = spec.space.domains

    @property
    def keys(self) -> list[slice]:
        """Which coordinates are those of each key."""
        widths = [len(domain.choices or [0]) + 1 for domain in self._domains.values()]
        ends = [sum(widths[: place + 1]) for place in range(len(widths))]
        return [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> NDArray[np.float64]:
        """(configurations, coordinates)."""
        points = [
            [place for name, domain in self._domains.items() for place in _place(domain, name, row)] for row in rows
        ]
        return np.array(points, dtype=np.float64).reshape(len(rows), -1)


def _place(domain: Domain, name: str, row: Mapping[str, Any]) -> list[float]:
    """Where a configuration stands by one key; the last coordinate is for those that do not have it."""
    absent = 0.0 if name in row else HALF
    if domain.choices is not None:
        return [*(HALF if name in row and among(row[name], [choice]) else 0.0 for choice in domain.choices), absent]
    assert domain.low is not None
    assert domain.high is not None
    value = row.get(name)
    if not isinstance(value, int | float) or domain.low == domain.high:
        return [0.5, 0.0 if isinstance(value, int | float) else HALF]
    scale = math.log if domain.log else float
    low, high = scale(domain.low), scale(domain.high)
    return [(scale(max(value, domain.low) if domain.log else value) - low) / (high - low), absent]


class NearestSampler(Sampler):
    """The study's sampler, whose suggestions are replaced by the nearest recorded configuration that was not tried.

    The sampler hears of the recorded ones alone. None are left: it suggests nothing, as a grid that is exhausted.

    Args:
        rows: the recorded configurations, all in the study's space.
    """

    def __init__(self, spec: StudySpec, rows: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(spec)
        self._rows, self._coordinates = rows, Coordinates(spec)
        self._points = self._coordinates(rows)
        self._places = {key(row): place for place, row in enumerate(rows)}
        self._free = np.ones(len(rows), dtype=bool)

    def ask(self, number: int) -> dict[str, Any] | None:
        """The nearest recorded configuration to what the sampler suggests; None where all were tried."""
        if not self._free.any():
            return None
        suggested = self._strategy.suggest(number)
        if suggested is None:
            return None
        distances = ((self._points - self._coordinates([suggested])) ** 2).sum(1)
        params = dict(self._rows[int(np.where(self._free, distances, np.inf).argmin())])
        self.adopt(number, params)
        return params

    def adopt(self, number: int, params: Mapping[str, Any], given: bool = False) -> None:
        """Take in a trial; a recorded configuration is tried once."""
        super().adopt(number, params, given)
        place = self._places.get(key(params))
        if place is not None:
            self._free[place] = False
