"""Searched parameters as coordinates for regressions: orthonormal functions over the values that a search can draw.

A range has Legendre polynomials on its own scale (logarithmic where the search is), steps and whole numbers the same
on their levels, choices a set of contrasts. Over uniform draws from the space each column has mean 0 and variance 1 and
no two columns correlate, so that a sum of squared weights is a share of variance (Sudret 2008, polynomial chaos).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from study.analysis.statistics.frame import varied
from study.spec import StudySpec

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Array = NDArray[np.float64]

LEVELS = 50
"""A range of more steps is taken for a continuous one."""


@dataclass(frozen=True)
class Axis:
    """One searched parameter.

    Attributes:
        key: its dotted key.
        levels: how many values it has, 0 for a continuous range.
        ordered: whether its values are numbers of a range; False for choices.
        degree: of the polynomials of a range, at most.
    """

    key: str
    levels: int
    ordered: bool
    degree: int
    _distribution: "BaseDistribution"

    @property
    def count(self) -> int:
        """Columns."""
        if not self.ordered:
            return self.levels - 1
        return min(self.degree, self.levels - 1) if self.levels else self.degree

    @property
    def weights(self) -> Array:
        """(columns,): a column's expected share beside the others': less for polynomials of higher degree."""
        return 1.0 / np.arange(1, self.count + 1) ** 2 if self.ordered else np.ones(self.count)

    def columns(self, trials: Iterable[Mapping[str, Any]]) -> Array:
        """(N, columns) from the trials' parameters; 0 for a trial without the parameter, or with a foreign value."""
        places = np.array([self._place(params.get(self.key), self.key in params) for params in trials], dtype=float)
        known = np.isfinite(places)
        found = np.zeros((len(places), self.count))
        if self.levels:
            rows = np.round(places[known] * self.levels - 0.5).astype(int)
            found[known] = _on_levels(self.levels, self.count)[rows]
        else:
            degrees = np.arange(1, self.count + 1)
            vander = legendre.legvander(2 * places[known] - 1, self.count)[:, 1:]
            found[known] = vander * np.sqrt(2 * degrees + 1)
        return found

    def _place(self, value: Any, given: bool) -> float:
        """Between 0 and 1, NaN for a value that has no place."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        from study.spec.distributions import unit
        from study.spec.same import among

        if not given:
            return float("nan")
        if isinstance(self._distribution, CategoricalDistribution):
            choices = self._distribution.choices
            at = next((place for place, choice in enumerate(choices) if among(value, [choice])), None)
            return float("nan") if at is None else (at + 0.5) / self.levels
        assert isinstance(self._distribution, FloatDistribution | IntDistribution)
        if not isinstance(value, int | float) or (self._distribution.log and value <= 0):
            return float("nan")
        return float(np.clip(unit(self._distribution, value), 0.0, 1.0 - 1e-12))


def axes(spec: StudySpec, degree: int) -> dict[str, Axis]:
    """The searched parameters of a study, constants left out, by key."""
    from study.spec.distributions import distributions

    of_space = distributions(spec.space)
    return {key: _axis(key, of_space[key], degree) for key in varied(spec)}


def _axis(key: str, distribution: "BaseDistribution", degree: int) -> Axis:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(distribution, CategoricalDistribution):
        return Axis(key, len(distribution.choices), False, degree, distribution)
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    levels = 0
    if distribution.step is not None and not distribution.log:
        levels = round((distribution.high - distribution.low) / distribution.step) + 1
    return Axis(key, levels if levels <= LEVELS else 0, True, degree, distribution)


def _on_levels(levels: int, count: int) -> Array:
    """(levels, count): polynomials of rising degree that are orthonormal over equally likely levels."""
    places = np.linspace(-1.0, 1.0, levels)
    basis, upper = np.linalg.qr(legendre.legvander(places, count))
    signs = np.sign(np.diag(upper))
    return np.asarray((basis * signs * np.sqrt(levels))[:, 1:], dtype=float)
