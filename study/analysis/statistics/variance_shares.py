"""Shares of a response's variance over a space: main effects, interactions of pairs, and the remainder.

The response is a sum of orthonormal functions of the inputs (`study.analysis.statistics.importance`) and of their
products for pairs of inputs, plus noise. Then squared weights are parts of the variance over the space (Sobol 1993;
Sudret 2008), wherever in it the samples lie. The weights of an input, and those of a pair, share a prior variance,
whose deviation is half-Cauchy: effects that are not there shrink to nothing (Gelman 2006; Polson and Scott 2012). All
of it is drawn by a Gibbs sampler, so that shares have intervals that know how little few samples say. What the sum does
not reach is in the remainder, with the noise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BURN_IN, DRAWS = 200, 800
MAIN_SCALE, PAIR_SCALE = 0.5, 0.1
"""Scales of the half-Cauchy priors, in deviations of the response."""
PAIR_COLUMNS = 2
"""Of each input, for the products of a pair."""
MANY = 8
"""Of more inputs only the first column of each goes into products."""


NOTHING = 0.01
"""A share that is printed as none."""


@dataclass(frozen=True)
class Shares:
    """Draws of shares of the variance; in each draw all of them and the remainder add up to 1.

    Attributes:
        mains: (draws, inputs).
        pairs: (draws, pairs), in the order of `itertools.combinations`.
    """

    mains: Array
    pairs: Array

    @property
    def interactions(self) -> Array:
        """(draws,)."""
        return np.asarray(self.pairs.sum(1))

    @property
    def remainder(self) -> Array:
        """(draws,)."""
        return 1.0 - self.mains.sum(1) - self.interactions


@dataclass(frozen=True)
class Share:
    """A share of the variance, with its shortest 95% interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, draws: Array) -> "Share":
        """From draws of it; an interval that begins below one percent begins at 0."""
        ordered = np.sort(draws)
        within = math.ceil(0.95 * len(ordered))
        first = int((ordered[within - 1 :] - ordered[: len(ordered) - within + 1]).argmin())
        low, high = float(ordered[first]), float(ordered[first + within - 1])
        return cls(float(draws.mean()), low if low >= NOTHING else 0.0, high)


def variance_shares(inputs: Sequence[Array], weights: Sequence[Array], responses: Array, seed: int = 0) -> Shares:
    """The shares of the inputs, and of their pairs.

    Args:
        inputs: for each input its columns, (N, columns).
        weights: of the columns of each: their expected sizes, squared, beside one another.
        responses: (N,), or (N, M) for values that are themselves drawn: each step takes the next.
        seed: of the draws.
    """
    responses = responses[:, None] if responses.ndim == 1 else responses
    generator = np.random.default_rng(seed)
    middle, scale = responses.mean(), max(float(responses.std()), 1e-12)
    targets = (responses - middle) / scale
    few = PAIR_COLUMNS if len(inputs) <= MANY else 1
    pairs = list(combinations(range(len(inputs)), 2))
    products = [_products(inputs[one][:, :few], inputs[other][:, :few]) for one, other in pairs]
    of_pairs = [np.outer(weights[one][:few], weights[other][:few]).ravel() for one, other in pairs]
    design = np.hstack([np.ones((len(targets), 1)), *inputs, *products])
    sizes = [block.shape[1] for block in (*inputs, *products)]
    relative = np.concatenate([*weights, *of_pairs])
    group = np.repeat(np.arange(len(sizes)), sizes)
    scales = np.repeat([MAIN_SCALE, PAIR_SCALE], [len(inputs), len(pairs)])
    drawn = _gibbs(design, targets, relative, group, scales, generator)
    return Shares(drawn[:, : len(inputs)], drawn[:, len(inputs) :])


def _gibbs(
    design: Array,
    targets: Array,
    relative: Array,
    group: NDArray[np.intp],
    scales: Array,
    generator: np.random.Generator,
) -> Array:
    """(draws, groups) shares."""
    gram, projected, total = design.T @ design, design.T @ targets, (targets**2).sum(0)
    count, sizes = len(design), np.bincount(group, minlength=len(scales))
    variance, helper, noise = scales**2 / 4, np.ones(len(scales)), 0.5
    found = np.empty((DRAWS, len(scales)))
    for step in range(BURN_IN + DRAWS):
        at = step % targets.shape[1]
        precision = gram / noise
        precision[np.diag_indices_from(precision)] += np.concatenate([[1e-4], 1 / (variance[group] * relative)])
        root = np.linalg.cholesky(precision)
        mean = np.linalg.solve(root, projected[:, at] / noise)
        weights = np.linalg.solve(root.T, mean + generator.normal(size=len(mean)))
        residual = total[at] - 2 * weights @ projected[:, at] + weights @ gram @ weights
        noise = (0.05 + max(residual, 0.0) / 2) / generator.gamma(0.5 + count / 2)
        squares = np.bincount(group, weights[1:] ** 2 / relative, minlength=len(scales))
        variance = (1 / helper + squares / 2) / generator.gamma(0.5 + sizes / 2)
        variance = np.maximum(variance, 1e-8)
        helper = (1 / scales**2 + 1 / variance) / generator.gamma(np.ones(len(scales)))
        if step >= BURN_IN:
            parts = np.bincount(group, weights[1:] ** 2, minlength=len(scales))
            found[step - BURN_IN] = parts / (parts.sum() + noise)
    return found


def _products(one: Array, other: Array) -> Array:
    """(N, columns of the one * columns of the other)."""
    return np.asarray((one[:, :, None] * other[:, None, :]).reshape(len(one), -1))
