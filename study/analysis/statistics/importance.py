"""The share of the metric's variance over the searched space that each parameter explains."""

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from study.analysis.statistics.trials_frame import varied_domains
from study.home.record import TrialRecord
from study.knobs import Params, Scalar
from study.ranking import Results, cached_per_results
from study.spec import StudySpec
from study.text import pluralise

FloatArray = NDArray[np.float64]

if TYPE_CHECKING:
    import pandas as pd
    from optuna.distributions import BaseDistribution

# Shares of a response's variance over a space: main effects, interactions of pairs, and the remainder.
#
# The response is a sum of orthonormal functions of the inputs (see `ParameterBasis`) and of their products for pairs of
# inputs, plus noise. Then squared weights are parts of the variance over the space (Sobol 1993; Sudret 2008), wherever
# in it the samples lie. The weights of an input, and those of a pair, share a prior variance, whose deviation is
# half-Cauchy: effects that are not there shrink to nothing (Gelman 2006; Polson and Scott 2012). All of it is drawn by
# a Gibbs sampler, so that shares have intervals that know how little few samples say. What the sum does not reach is in
# the remainder, with the noise.

N_BURN_IN_DRAWS, N_DRAWS = 200, 800
MAIN_EFFECT_PRIOR_SCALE, INTERACTION_PRIOR_SCALE = 0.5, 0.1
"""Scales of the half-Cauchy priors, in deviations of the response."""
PAIR_COLUMNS_PER_INPUT = 2
"""Columns of each input that go into the products of a pair."""
MAX_INPUTS_WITH_FULL_PAIRS = 8
"""Number of inputs above which only the first column of each goes into products."""


NEGLIGIBLE_SHARE = 0.01
"""Share below which the lower end of an interval is taken as 0."""


@dataclass(frozen=True)
class VarianceShare:
    """A share of the variance, with its shortest 95% interval."""

    value: float
    low: float
    high: float

    @classmethod
    def from_draws(cls, draws: FloatArray) -> "VarianceShare":
        """Build a share from draws of it; an interval that begins below one percent begins at 0."""
        ordered = np.sort(draws)
        within = math.ceil(0.95 * len(ordered))
        first = int((ordered[within - 1 :] - ordered[: len(ordered) - within + 1]).argmin())
        low, high = float(ordered[first]), float(ordered[first + within - 1])
        return cls(float(draws.mean()), low if low >= NEGLIGIBLE_SHARE else 0.0, high)


def draw_variance_shares(
    inputs: Sequence[FloatArray], weights: Sequence[FloatArray], responses: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw the shares of the inputs, and of their pairs, from their posterior.

    Args:
        inputs: for each input its columns, (N, columns).
        weights: for each input its columns' expected squared sizes, relative to one another.
        responses: (N,).

    Returns:
        The shares of each input, (draws, inputs), of all pairs and of the remainder, (draws,); in each draw all of them
        add up to 1.
    """
    middle, scale = responses.mean(), max(float(responses.std()), 1e-12)
    targets = (responses - middle) / scale
    few = PAIR_COLUMNS_PER_INPUT if len(inputs) <= MAX_INPUTS_WITH_FULL_PAIRS else 1
    pairs = list(combinations(range(len(inputs)), 2))
    products = [_column_products(inputs[one][:, :few], inputs[other][:, :few]) for one, other in pairs]
    of_pairs = [np.outer(weights[one][:few], weights[other][:few]).ravel() for one, other in pairs]
    design = np.hstack([np.ones((len(targets), 1)), *inputs, *products])
    sizes = [block.shape[1] for block in (*inputs, *products)]
    relative = np.concatenate([*weights, *of_pairs])
    group = np.repeat(np.arange(len(sizes)), sizes)
    scales = np.repeat([MAIN_EFFECT_PRIOR_SCALE, INTERACTION_PRIOR_SCALE], [len(inputs), len(pairs)])
    drawn = _draw_by_gibbs_sampler(design, targets, relative, group, scales)
    alone, together = drawn[:, : len(inputs)], drawn[:, len(inputs) :].sum(1)
    return alone, together, 1.0 - alone.sum(1) - together


def _draw_by_gibbs_sampler(
    design: FloatArray, targets: FloatArray, relative: FloatArray, group: NDArray[np.intp], scales: FloatArray
) -> FloatArray:
    """Draw (draws, groups) shares by a Gibbs sampler."""
    generator = np.random.default_rng(0)
    gram, projected, total = design.T @ design, design.T @ targets, (targets**2).sum()
    count, sizes = len(design), np.bincount(group, minlength=len(scales))
    variance, helper, noise = scales**2 / 4, np.ones(len(scales)), 0.5
    found = np.empty((N_DRAWS, len(scales)))
    for step in range(N_BURN_IN_DRAWS + N_DRAWS):
        precision = gram / noise
        precision[np.diag_indices_from(precision)] += np.concatenate([[1e-4], 1 / (variance[group] * relative)])
        root = np.linalg.cholesky(precision)
        mean = np.linalg.solve(root, projected / noise)
        weights = np.linalg.solve(root.T, mean + generator.normal(size=len(mean)))
        residual = total - 2 * weights @ projected + weights @ gram @ weights
        noise = (0.05 + max(residual, 0.0) / 2) / generator.gamma(0.5 + count / 2)
        squares = np.bincount(group, weights[1:] ** 2 / relative, minlength=len(scales))
        variance = (1 / helper + squares / 2) / generator.gamma(0.5 + sizes / 2)
        variance = np.maximum(variance, 1e-8)
        helper = (1 / scales**2 + 1 / variance) / generator.gamma(np.ones(len(scales)))
        if step >= N_BURN_IN_DRAWS:
            parts = np.bincount(group, weights[1:] ** 2, minlength=len(scales))
            found[step - N_BURN_IN_DRAWS] = parts / (parts.sum() + noise)
    return found


def _column_products(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return (N, columns of the one * columns of the other)."""
    return np.asarray((one[:, :, None] * other[:, None, :]).reshape(len(one), -1))


# Searched parameters as coordinates for regressions: orthonormal functions over the values that a search can draw.
#
# A range has Legendre polynomials on its own scale (logarithmic where the search is), steps and whole numbers the same
# on their levels, choices a set of contrasts. Over uniform draws from the space each column has mean 0 and variance 1
# and no two columns correlate, so that a sum of squared weights is a share of variance (Sudret 2008, polynomial chaos).


MAX_DISCRETE_LEVELS = 50
"""Number of steps above which a range is taken for a continuous one."""

MAX_POLYNOMIAL_DEGREE = 7
"""Degree of the polynomials of a range: a peak a quarter as wide as the range is still seen."""


@dataclass(frozen=True)
class ParameterBasis:
    """One searched parameter.

    Attributes:
        key: its dotted key.
        n_levels: how many values it has, 0 for a continuous range.
        is_ordered: whether its values are numbers of a range; False for choices.
    """

    key: str
    n_levels: int
    is_ordered: bool
    _distribution: "BaseDistribution"

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        if not self.is_ordered:
            return self.n_levels - 1
        return min(MAX_POLYNOMIAL_DEGREE, self.n_levels - 1) if self.n_levels else MAX_POLYNOMIAL_DEGREE

    @property
    def column_weights(self) -> FloatArray:
        """(columns,): expected share of each column relative to the others, less for higher degrees."""
        return 1.0 / np.arange(1, self.n_columns + 1) ** 2 if self.is_ordered else np.ones(self.n_columns)

    def design_columns(self, trials: Iterable[Params]) -> FloatArray:
        """Return (N, columns) from the trials' parameters; 0 where a trial has no value or a foreign one."""
        coordinates = [
            self._position_of_value(params[self.key]) if self.key in params else math.nan for params in trials
        ]
        places = np.array(coordinates, dtype=float)
        known = np.isfinite(places)
        found = np.zeros((len(places), self.n_columns))
        if self.n_levels:
            rows = np.round(places[known] * self.n_levels - 0.5).astype(int)
            found[known] = _orthonormal_polynomials(self.n_levels, self.n_columns)[rows]
        else:
            degrees = np.arange(1, self.n_columns + 1)
            vander = legendre.legvander(2 * places[known] - 1, self.n_columns)[:, 1:]
            found[known] = vander * np.sqrt(2 * degrees + 1)
        return found

    def _position_of_value(self, value: Scalar) -> float:
        """Return where a value lies, between 0 and 1; NaN for a value that has no place."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        from study.spec.domain import is_among_typed_values
        from study.spec.optuna_distributions import unit_coordinate_of_value

        if isinstance(self._distribution, CategoricalDistribution):
            choices = self._distribution.choices
            at = next((place for place, choice in enumerate(choices) if is_among_typed_values(value, [choice])), None)
            return math.nan if at is None else (at + 0.5) / self.n_levels
        assert isinstance(self._distribution, FloatDistribution | IntDistribution)
        if not isinstance(value, int | float) or (self._distribution.log and value <= 0):
            return math.nan
        return float(np.clip(unit_coordinate_of_value(self._distribution, value), 0.0, 1.0 - 1e-12))


def parameter_bases(results: Results) -> dict[str, ParameterBasis]:
    """Return the searched parameters of a study by key, without constants."""
    from study.spec.optuna_distributions import distributions_of_domains

    of_space = distributions_of_domains(results.spec.search.space, results.integer_keys)
    return {key: _parameter_basis(key, of_space[key]) for key in varied_domains(results.spec)}


def _parameter_basis(key: str, distribution: "BaseDistribution") -> ParameterBasis:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(distribution, CategoricalDistribution):
        return ParameterBasis(key, len(distribution.choices), False, distribution)
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    levels = 0
    if distribution.step is not None and not distribution.log:
        levels = round((distribution.high - distribution.low) / distribution.step) + 1
    return ParameterBasis(key, levels if levels <= MAX_DISCRETE_LEVELS else 0, True, distribution)


def _orthonormal_polynomials(levels: int, count: int) -> FloatArray:
    """Return (levels, count): polynomials of rising degree that are orthonormal over equally likely levels."""
    places = np.linspace(-1.0, 1.0, levels)
    basis, upper = np.linalg.qr(legendre.legvander(places, count))
    signs = np.sign(np.diag(upper))
    return np.asarray((basis * signs * np.sqrt(levels))[:, 1:], dtype=float)


MIN_IMPORTANCE_TRIALS = 30
"""Trials that importance needs. With fewer the intervals were found to miss too often."""


@dataclass(frozen=True)
class Importances:
    """Shares of the metric's variance over the searched space, each value drawn with equal chance.

    Attributes:
        share_by_key: of each parameter alone, the largest first.
        n_trials_by_key: how many each rests on: those that have it.
        interactions_share, remainder_share: of all pairs; of everything else, which is noise between trials, and what
            is too jagged or takes three parameters. Of the trials of the first parameter; None without any.
        are_trials_selected: whether early stopping ended trials, so that these are among those that it let through.
        why_missing: why there are none, in words; empty otherwise.
    """

    share_by_key: dict[str, VarianceShare] = field(default_factory=dict)
    n_trials_by_key: dict[str, int] = field(default_factory=dict)
    interactions_share: VarianceShare | None = None
    remainder_share: VarianceShare | None = None
    are_trials_selected: bool = False
    why_missing: str = ""


def importance_frame(results: Results) -> "pd.DataFrame":
    """Return `compute_importances` as a table.

    Returns:
        Indexed by `parameter`, the most important first: `share` of the metric's variance over the space, `low` and
        `high`, the ends of its 95% interval, and `trials`, how many it rests on. Empty where nothing can be
        said: a warning says why.
    """
    import pandas as pd

    found = compute_importances(results)
    if found.why_missing:
        warnings.warn(f"importance: {found.why_missing}", stacklevel=3)
    rows = [
        (share.value, share.low, share.high, found.n_trials_by_key[key]) for key, share in found.share_by_key.items()
    ]
    index = pd.Index(list(found.share_by_key), name="parameter", dtype=object)
    frame = pd.DataFrame(rows, index=index, columns=["share", "low", "high", "trials"])
    return frame.astype({"share": float, "low": float, "high": float, "trials": "int64"})


@cached_per_results
def compute_importances(results: Results) -> Importances:
    """Compute the importance of each searched parameter, from the search's complete trials.

    What early stopping ended has no value, so that with it the shares speak of what it let through. A parameter that
    not every trial has is evaluated on those that have it, beside the parameters that these have in common.
    Configurations that the search could not have drawn are left out.
    """
    if not varied_domains(results.spec):
        return Importances(why_missing="nothing was searched")
    trials, responses = _complete_trials_and_metric(results)
    if len(trials) < MIN_IMPORTANCE_TRIALS:
        have = "has" if len(trials) == 1 else "have"
        there = f"{pluralise(len(trials), 'trial')} of the search {have} a value"
        return Importances(why_missing=f"{there}, {MIN_IMPORTANCE_TRIALS} are needed")
    if np.ptp(responses) == 0:
        return Importances(why_missing="all trials have the same value")
    found = [
        _importances_of_group(results, [trials[place] for place in members], responses[list(members)], keys)
        for members, keys in _group_keys_by_trials(results.spec, trials).items()
        if len(members) >= MIN_IMPORTANCE_TRIALS and np.ptp(responses[list(members)]) > 0
    ]
    if not found:
        return Importances(why_missing=f"no parameter has {MIN_IMPORTANCE_TRIALS} trials")
    shares = sorted(chain.from_iterable(one.share_by_key.items() for one in found), key=lambda item: -item[1].value)
    return replace(
        found[0],  # of the most trials
        share_by_key=dict(shares),
        n_trials_by_key=dict(chain.from_iterable(one.n_trials_by_key.items() for one in found)),
        are_trials_selected=any(trial.state == "pruned" for trial in results.record.trials_of_stages("search")),
    )


def _complete_trials_and_metric(results: Results) -> tuple[list[TrialRecord], NDArray[np.float64]]:
    """Return the complete trials by number, and their values."""
    ranked = sorted(results.ranked_by_search_value, key=lambda candidate: candidate.trial.number)
    complete = [candidate for candidate in ranked if _is_within_space(candidate.trial, results.spec)]
    return [candidate.trial for candidate in complete], np.array([candidate.search_value for candidate in complete])


def _is_within_space(trial: TrialRecord, spec: StudySpec) -> bool:
    """Return whether the search could have given these values; enqueued configurations may lie outside its space."""
    params = trial.params.items()
    return all(spec.search.space[key].contains(value) for key, value in params if key in spec.search.space)


def _group_keys_by_trials(spec: StudySpec, trials: Sequence[TrialRecord]) -> dict[tuple[int, ...], list[str]]:
    """Group the parameters that the same trials have, by the places of these trials, the most trials first."""
    groups: dict[tuple[int, ...], list[str]] = {}
    for key in varied_domains(spec):
        members = tuple(place for place, trial in enumerate(trials) if key in trial.params)
        groups.setdefault(members, []).append(key)
    return dict(sorted(groups.items(), key=lambda item: -len(item[0])))


def _importances_of_group(
    results: Results, trials: Sequence[TrialRecord], responses: NDArray[np.float64], keys: Sequence[str]
) -> Importances:
    """Compute the importance of these parameters, among all that these trials have in common."""
    shared = {
        key: basis for key, basis in parameter_bases(results).items() if all(key in trial.params for trial in trials)
    }
    params = [trial.params for trial in trials]
    inputs = [basis.design_columns(params) for basis in shared.values()]
    weights = [basis.column_weights for basis in shared.values()]
    alone, together, remainder = draw_variance_shares(inputs, weights, responses)
    share_by_key = {key: VarianceShare.from_draws(draws) for key, draws in zip(shared, alone.T, strict=True)}
    return Importances(
        {key: share_by_key[key] for key in keys},
        dict.fromkeys(keys, len(trials)),
        VarianceShare.from_draws(together) if len(shared) > 1 else None,
        VarianceShare.from_draws(remainder),
    )
