"""Values of a key in Optuna's terms, and as a coordinate between 0 and 1."""

import math
from collections.abc import Container, Mapping
from decimal import Decimal

import optuna
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution

from study.knobs import Scalar
from study.spec.domain import Domain, is_among_typed_values, last_grid_value
from study.spec.space import SearchSpace


class CategoricalDistribution(optuna.distributions.CategoricalDistribution):
    """Choices that are told apart by type, too: Optuna's own takes true for 1.

    The name is Optuna's, because its storage contains it.
    """

    def to_internal_repr(self, param_value_in_external_repr: Scalar) -> float:
        """Return the index of a choice.

        Raises:
            ValueError: it is none of the choices.
        """
        value = param_value_in_external_repr
        if isinstance(value, bool | int | float):
            for place, choice in enumerate(self.choices):
                if is_among_typed_values(value, [choice]):
                    return place
            raise ValueError(f"{value!r} not in {self.choices}")
        return super().to_internal_repr(value)


def distributions_of_space(space: SearchSpace) -> dict[str, BaseDistribution]:
    """Return the distribution of each key of a space."""
    return distributions_of_domains(space.domains, space.integer_keys)


def distributions_of_domains(domains: Mapping[str, Domain], integers: Container[str]) -> dict[str, BaseDistribution]:
    """Return the distribution of each domain; `integers` are the keys with whole numbers."""
    return {key: _make_distribution(domain, key in integers) for key, domain in domains.items()}


def value_at_unit_coordinate(distribution: BaseDistribution, unit: float) -> Scalar:
    """Return the value at a coordinate from 0 to 1; uniform coordinates give values of this distribution."""
    if isinstance(distribution, optuna.distributions.CategoricalDistribution):
        return distribution.choices[_step_index(unit, len(distribution.choices))]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    if distribution.step is not None and not distribution.log:
        steps = _step_index(unit, _count_distribution_steps(distribution))
        value = float(Decimal(str(distribution.low)) + steps * Decimal(str(distribution.step)))
    else:
        low, high = _range_ends_on_scale(distribution)
        value = low + unit * (high - low)
        value = math.exp(value) if distribution.log else value
    value = min(max(value, distribution.low), distribution.high)
    return round(value) if isinstance(distribution, IntDistribution) else float(value)


def unit_coordinate_of_value(distribution: FloatDistribution | IntDistribution, value: float) -> float:
    """Return the coordinate at which `value_at_unit_coordinate` gives a value: of several, the middle."""
    if distribution.step is not None and not distribution.log:
        return (round((value - distribution.low) / distribution.step) + 0.5) / _count_distribution_steps(distribution)
    low, high = _range_ends_on_scale(distribution)
    return ((math.log(value) if distribution.log else value) - low) / (high - low)


def _make_distribution(domain: Domain, whole: bool) -> BaseDistribution:
    if domain.choices is not None:
        return CategoricalDistribution(domain.choices)
    assert domain.low is not None
    assert domain.high is not None
    last = domain.high if domain.step is None else last_grid_value(domain, whole)
    if whole:
        return IntDistribution(int(domain.low), int(last), log=domain.log, step=int(domain.step or 1))
    return FloatDistribution(domain.low, last, log=domain.log, step=domain.step)


def _count_distribution_steps(distribution: FloatDistribution | IntDistribution) -> int:
    return round((distribution.high - distribution.low) / (distribution.step or 1)) + 1


def _step_index(unit: float, cells: int) -> int:
    return min(int(unit * cells), cells - 1)


def _range_ends_on_scale(distribution: FloatDistribution | IntDistribution) -> tuple[float, float]:
    """Return the range's ends on its own scale; whole numbers on a log scale reach 0.5 further, as in Optuna."""
    if not distribution.log:
        return distribution.low, distribution.high
    margin = 0.5 if isinstance(distribution, IntDistribution) else 0.0
    return math.log(distribution.low - margin), math.log(distribution.high + margin)
