"""What may still be expected of each trial of a search, and of configurations that it has not tried."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from scipy.special import ndtr
from threadpoolctl import ThreadpoolController

from study.spec import StudySpec
from study.spec.distributions import at, distributions, unit
from study.spec.same import among
from study.sweep.curve_process import Array, CurveProcess

CANDIDATES = 64
"""New configurations that are weighed against each other."""

NEWEST = 100
"""Of so many values the hyperparameters are found."""

Seen = Sequence[tuple[int, int, float]]
"""Trial, index of the rung, and value there, larger is better; in the order in which they came."""


class Outlook(NamedTuple):
    """Of each trial and then of each new configuration, against the complete trial that is believed to be the best.

    Attributes:
        chance: the probability to end better.
        gain: by how much it is expected to end better, 0 where it does not.
    """

    chance: Array
    gain: Array


class Prospects:
    """A search's configurations as points, and what its model expects of them.

    Args:
        spec: of the study.
        tasks: the epochs, or other studies, whose values are modelled together; the last is the end of a full run.
    """

    def __init__(self, spec: StudySpec, tasks: int) -> None:
        self._spec, self._domains = spec, distributions(spec.space)
        self._numbers = {key: _numbers(domain) for key, domain in self._domains.items()}
        groups = [
            place
            for place, (key, domain) in enumerate(self._domains.items())
            for _ in range(1 if self._numbers[key] else len(getattr(domain, "choices", ())))
        ]
        self._process = CurveProcess(groups, tasks)
        self._conditional = bool(spec.space.sometimes())

    def point(self, params: Mapping[str, Any]) -> Array:
        """Coordinates: of ranges and of choices that are numbers 0 to 1, of other choices one for each. What a study
        file has tried may be in no range: it stands at its end."""
        found: list[float] = []
        for key, domain in self._domains.items():
            if not self._numbers[key]:
                assert isinstance(domain, CategoricalDistribution)
                found += [0.7 * (key in params and among(params[key], [choice])) for choice in domain.choices]
            elif not isinstance(params.get(key), int | float) or domain.single():
                found.append(0.5)
            elif isinstance(domain, CategoricalDistribution):
                order = sorted(domain.choices, key=float)  # type: ignore[arg-type]
                found.append(order.index(params[key]) / max(1, len(order) - 1) if among(params[key], order) else 0.5)
            else:
                assert isinstance(domain, FloatDistribution | IntDistribution)
                found.append(unit(domain, min(max(params[key], domain.low), domain.high)))
        return np.array(found)

    def drawn(self, number: int, count: int = CANDIDATES) -> list[dict[str, Any]]:
        """Configurations that the trial of this number could have."""
        draw = np.random.default_rng((self._spec.search.seed, number))
        if self._conditional:
            walk = self._spec.space.walk
            return [walk(lambda key, domain: at(self._domains[key], draw.random())) for _ in range(count)]
        places = draw.random((count, len(self._domains)))
        return [
            {key: at(domain, place) for (key, domain), place in zip(self._domains.items(), row, strict=True)}
            for row in places
        ]

    def mode(self, points: Array, seen: Seen) -> Array:
        """Hyperparameters, of the newest that was seen; `points` as in `outlook`."""
        trial, rung, value = _columns(seen[-NEWEST:])
        with _libraries().limit(limits=1):  # small matrices: more threads are slower
            return self._process.fit(points, trial, rung, _scaled(value, rung))

    def outlook(self, mode: Array, points: Array, seen: Seen, complete: Sequence[int]) -> Outlook:
        """What is expected of configurations.

        Args:
            mode: hyperparameters.
            points: (configurations, coordinates), those of the trials first: a trial's number is its place.
            complete: trials that ran in full; at least one.
        """
        trial, rung, value = _columns(seen)
        with _libraries().limit(limits=1):
            mean, covariance = self._process.last(mode, points, trial, rung, _scaled(value, rung))
        best = max(complete, key=lambda place: mean[place])
        spread = np.diag(covariance) + covariance[best, best] - 2 * covariance[best]
        spread = np.sqrt(np.maximum(spread, 1e-10))
        ahead = (mean - mean[best]) / spread
        return Outlook(ndtr(ahead), spread * (ahead * ndtr(ahead) + np.exp(-ahead * ahead / 2) / (2 * np.pi) ** 0.5))


@cache
def _libraries() -> ThreadpoolController:
    """What computes in threads; looking for it takes longer than what is computed."""
    return ThreadpoolController()


def _columns(seen: Seen) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    trials, rungs, values = zip(*seen, strict=True)
    return np.array(trials), np.array(rungs), np.array(values)


def _scaled(value: Array, rung: NDArray[np.int64]) -> Array:
    """Values around 0 in units of the spread within rungs."""
    parts = [value[rung == one] for one in np.unique(rung)]
    freedom = sum(len(part) - 1 for part in parts)
    squares = float(sum(((part - part.mean()) ** 2).sum() for part in parts))
    return (value - value.mean()) / ((squares / freedom) ** 0.5 if squares > 0 else 1.0)


def _numbers(domain: BaseDistribution) -> bool:
    """Whether the values of a key are numbers."""
    choices = domain.choices if isinstance(domain, CategoricalDistribution) else ()
    return all(isinstance(choice, int | float) and not isinstance(choice, bool) for choice in choices)
