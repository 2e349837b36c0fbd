"""Student's t of the best of several: how far its mean lies from its true one, in its own standard errors.

The best of m configurations was chosen by the means of values whose luck is still in them: its own mean is too high.
With normal values, the means over the seeds are independent of the standard deviations, so the chosen one's standard
error has n - 1 degrees of freedom whatever was chosen, and its luck is at most the largest of m. So

    P(T > c) <= 1 - E[Phi(c S)^m], S^2 = chi^2(n - 1) / (n - 1),

with equality where the m are alike and independent. Positive correlation, as by a shared baseline and shared seeds,
makes the largest smaller (Slepian 1962), and no variance has to equal another. The value at which the right side is
2.5% takes the place of Student's quantile. It is below Bonferroni's, and its equal for m = 1.
"""

from functools import cache

import numpy as np
from scipy.special import chdtr, ndtr, stdtrit

LUCK = np.linspace(0.0, 12.0, 6001)
"""Of the luckiest mean, in standard errors; below zero it cannot pass for better."""


@cache
def chosen_quantile(level: float, freedom: float, among: int = 1) -> float:
    """Which t the chosen one of `among` configurations exceeds with probability 1 - `level` at most.

    Args:
        level: above 0.5.
        freedom: degrees of freedom of a single one's standard error.
        among: 1: Student's quantile.
    """
    from scipy.optimize import brentq

    student = float(stdtrit(freedom, level))
    if among == 1:
        return student
    bonferroni = -float(stdtrit(freedom, (1 - level) / among))
    density = among * np.exp(-(LUCK**2) / 2) / np.sqrt(2 * np.pi) * ndtr(LUCK) ** (among - 1)

    def beyond(quantile: float) -> float:
        return float(np.trapezoid(density * chdtr(freedom, freedom * (LUCK / quantile) ** 2), LUCK)) - (1 - level)

    return float(brentq(beyond, student * 0.99, bonferroni * 1.01, xtol=1e-9))
