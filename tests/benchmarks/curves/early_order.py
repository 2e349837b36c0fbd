"""From which epoch on the order of configurations can be trusted: what an epoch says of the end on another seed.

Curves cross: what learns a shortcut first leads first. So a rule that ends trials early needs the first epoch whose
order says nearly as much of the end as the end itself does, and not before.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

LEVEL = 0.5
"""Share of what the last epoch says of another seed that an epoch has to say to be trusted. Going on with
the best third there loses nothing on any recorded table whose end tells anything (`tests/benchmarks/curves`)."""

LEAST = 8
"""Configurations below which nothing is said."""

RESAMPLES = 1000


@dataclass(frozen=True)
class EarlyOrder:
    """How far the order of configurations at an epoch is that of the end.

    Attributes:
        correlations: by epoch, Spearman's rank correlation of the values there on one seed with the last ones on
            another, the mean over all pairs of seeds, (epochs,). The last is what the end says of another seed.
        low, high: ends of their intervals over configurations, (epochs,).
        epoch: the first, from 1, from which on all correlations are at least `level` times the last one; None: even
            the end says nothing of another seed, since its interval reaches 0.
        earliest, latest: ends of the interval of `epoch` over configurations; None: there is none.
        configurations, seeds: that the curves are of.
        level: see `epoch`.
    """

    correlations: Floats
    low: Floats
    high: Floats
    epoch: int | None
    earliest: int | None
    latest: int | None
    configurations: int
    seeds: int
    level: float

    def __str__(self) -> str:
        """For people."""
        of = "the end" if self.seeds == 1 else "the end on another seed"
        last = f"the last says {self.correlations[-1]:+.2f} (rank correlation, {self.configurations} configurations)"
        if self.epoch is None:
            return f"no epoch tells how configurations rank at {of}: {last}"
        to = f"{self.earliest} to {self.latest or 'never'}"
        return f"from epoch {self.epoch} on ({to}) the order is that of {of}: {last}"


def early_order(
    curves: ArrayLike, level: float = LEVEL, confidence: float = 0.9, seed: int = 0, resamples: int = RESAMPLES
) -> EarlyOrder | None:
    """From which epoch on the order of configurations can be trusted.

    Args:
        curves: values of the metric, whichever direction is better, (seeds, configurations, epochs). Configurations
            whose last value is not finite on some seed are left out. With one seed, epochs are compared with the end on
            the same seed: whether that end says anything of another one is not known then.
        level: see `EarlyOrder`.
        confidence: of the intervals, by resampling configurations; ranks stay those among all.
        seed: of the resampling.

    Returns:
        None with fewer than `LEAST` configurations.

    Raises:
        ValueError: `curves` has other dimensions, or a configuration has a last value but not all before it.
    """
    values = np.asarray(curves, dtype=np.float64)
    if values.ndim != 3 or 0 in values.shape:
        raise ValueError(f"curves of shape {values.shape} given, expected (seeds, configurations, epochs), none 0")
    values = values[:, np.isfinite(values[..., -1]).all(0)]
    if not np.isfinite(values).all():
        raise ValueError("a configuration has a last value, but not one of each epoch before it")
    seeds, configurations, _ = values.shape
    if configurations < LEAST:
        return None
    ranks = np.apply_along_axis(_ranks, 1, values)
    whole = _correlations(ranks, np.full((1, configurations), 1 / configurations))[0]
    draws = np.random.default_rng(seed).multinomial(
        configurations, np.full(configurations, 1 / configurations), resamples
    )
    drawn = _correlations(ranks, draws / configurations)
    tails = (1 - confidence) / 2, (1 + confidence) / 2
    low, high = np.quantile(drawn, tails, axis=0)
    if low[-1] <= 0:
        return EarlyOrder(whole, low, high, None, None, None, configurations, seeds, level)
    earliest, latest = np.quantile(_first(drawn, level), tails, method="inverted_cdf").tolist()
    first = int(_first(whole[None], level)[0])
    last = None if np.isinf(latest) else int(latest)
    return EarlyOrder(whole, low, high, first, int(earliest), last, configurations, seeds, level)


def _ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return ranks


def _correlations(ranks: Floats, weights: Floats) -> Floats:
    """The correlation of each epoch with the end, the mean over pairs of seeds.

    Args:
        ranks: (seeds, configurations, epochs).
        weights: of configurations, which add up to 1, (resamples, configurations).

    Returns:
        (resamples, epochs); 0 where all values are equal.
    """
    centred = ranks - ranks.mean(1, keepdims=True)
    found = [_correlation(centred[one], centred[other, :, -1:], weights) for one, other in _pairs(len(ranks))]
    return np.mean(found, axis=0)


def _pairs(seeds: int) -> Iterator[tuple[int, int]]:
    yield from permutations(range(seeds), 2) if seeds > 1 else [(0, 0)]


def _correlation(one: Floats, other: Floats, weights: Floats) -> Floats:
    """Of each column of (configurations, epochs) with (configurations, 1), by weights: (resamples, epochs)."""
    means, end = weights @ one, weights @ other
    together = weights @ (one * other) - means * end
    spread = (weights @ one**2 - means**2) * (weights @ other**2 - end**2)
    apart = spread > 1e-9
    result: Floats = np.where(apart, together / np.sqrt(np.where(apart, spread, 1.0)), 0.0)
    return result


def _first(correlations: Floats, level: float) -> Floats:
    """The first epoch from which on all correlations are at least `level` times the last, by row of (N, epochs);
    infinity where the last is not above 0."""
    last = correlations[:, -1:]
    below = correlations < level * last - 1e-9
    epochs = below.shape[1]
    behind = np.where(below.any(1), epochs - np.argmax(below[:, ::-1], axis=1), 0)
    return np.where(last[:, 0] > 0, behind + 1.0, np.inf)
