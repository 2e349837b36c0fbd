"""How alike two orders of the same configurations are: Kendall's tau-b, with an interval that holds for few of them.

The interval is normal in Fisher's z. Its variance is the larger of two: 0.437 / (n - 4) of Bonett and Wright, "Sample
size requirements for estimating Pearson, Kendall and Spearman correlations" (2000), which is too small near 1, and the
one estimated from the pairs of each configuration by Cliff and Charlin, "Variances and covariances of Kendall's tau and
their estimation" (1991), which is too small for few. It takes Student's t, and a tau of 1 counts as a pair less. In
simulations of 5 to 25 pairs of normal numbers with a tau of 0 to 0.91, it held the truth in 94% to 100% of the cases; a
percentile bootstrap in 39% to 99%.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from study.analysis.statistics.difference import CONFIDENCE

LEAST = 5
"""Configurations that a tau needs: of four, the same order or its reverse comes by chance in one of twelve cases."""


@dataclass(frozen=True)
class Agreement:
    """The tau-b of `n` configurations and its interval, None where there are fewer than `LEAST` or all tie."""

    n: int
    tau: float | None = None
    interval: tuple[float, float] | None = None


def agreement(order: Sequence[float], other: Sequence[float]) -> Agreement:
    """Kendall's tau-b of two orders of the same configurations, with its 95% interval."""
    n, first, second = len(order), np.asarray(order, float), np.asarray(other, float)
    if n < LEAST or np.ptp(first) == 0 or np.ptp(second) == 0:
        return Agreement(n)
    signs = [(np.sign(first - one), np.sign(second - two)) for one, two in zip(first, second, strict=True)]
    rows = np.array([left @ right for left, right in signs])
    untied = [sum(float(np.abs(side).sum()) for side in sides) for sides in zip(*signs, strict=True)]
    scale = n * (n - 1) / math.sqrt(untied[0] * untied[1])  # 1 without ties
    means = scale * rows / (n - 1)
    tau = float(means.mean())
    both = sum(float(np.abs(left * right).sum()) for left, right in signs) / (n * (n - 1))
    of_pairs = max(0.0, scale**2 * both - tau**2)
    variance = (4 * (n - 2) * float(means.var(ddof=1)) + 2 * of_pairs) / (n * (n - 1))
    most = 1 - 2 / math.comb(n, 2)
    inner = min(max(tau, -most), most)
    deviation = math.sqrt(max(0.437 / (n - 4), variance / (1 - inner**2) ** 2))
    reach = float(stdtrit(n - 2, (1 + CONFIDENCE) / 2)) * deviation
    low, high = (math.tanh(math.atanh(inner) + sign * reach) for sign in (-1, 1))
    return Agreement(n, tau, (min(tau, low), max(tau, high)))
