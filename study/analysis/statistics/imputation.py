"""What a measured course would have ended with, had it gone on: draws of the final values of trials that were stopped.

Early stopping looks at what a trial showed so far, and at nothing else. Given that, those that were stopped would have
ended as those that went on did: their final values are missing at random (Rubin 1976). So, from the last epoch at which
trials were stopped backwards, the final value is regressed on what was seen up to that epoch, among the trials that
went on; the values drawn for those that stopped there count as known one epoch earlier (the g-formula of Robins 1986,
in the form of multiple imputation for a monotone pattern).

Each regression is Bayesian, with a normal-inverse-gamma prior: the final value is the value seen plus a constant, or a
constant alone, plus what the course before, bends of the line, and the parameters add, all shrunk towards none. How
strongly is averaged over, by the evidence of each choice. So few points bend nothing, and draws spread where they reach
beyond what went on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

DRAWS = 100
ENOUGH = 6
"""Trials that went on after an epoch, for the others to be estimated from."""

BENDS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Quantiles of the values seen, at which the line may bend."""
SLOPES = (0.0, 1.0)
"""Prior means of the line's slope: the value seen says nothing, or is kept up to a constant."""
OF_COURSE = (0.05, 0.5, 5.0, 50.0)
"""Prior variances of the weights of value and course, in units of the residual variance."""
OF_BENDS = 0.3
"""Prior variance of the weights of bends, in parts of those."""
OF_PARAMETERS = (0.0, 0.01, 0.1, 1.0, 9.0)
"""Prior variances of the weights of the parameters, likewise."""
LEAST_SCALE = 1e-3
"""Inputs that vary by less are not stretched further."""


@dataclass(frozen=True)
class Stage:
    """One epoch after which trials were stopped.

    Attributes:
        members: (N,) places of the trials that reached it, of all trials.
        stopped: (N,) which of them were stopped there.
        seen: (N,) the metric, had the trial ended there.
        course: (N, features) whatever else was seen up to there.
    """

    members: NDArray[np.intp]
    stopped: NDArray[np.bool_]
    seen: Array
    course: Array


def impute(stages: Sequence[Stage], final: Array, parameters: Array, low: float, high: float, seed: int = 0) -> Array:
    """Draws of all final values.

    Args:
        stages: the last epoch first.
        final: (trials,), NaN for those that were stopped.
        parameters: (trials, columns), about as large as the columns of `study.analysis.statistics.coordinates`.
        low, high: what the metric can be.
        seed: of the draws.

    Returns:
        (trials, `DRAWS`); the value itself for a trial that ran to its end.
    """
    generator = np.random.default_rng(seed)
    values = np.repeat(final[:, None], DRAWS, axis=1)
    for stage in stages:
        drawn = _drawn(stage, values[stage.members[~stage.stopped]], parameters[stage.members], generator)
        values[stage.members[stage.stopped]] = np.clip(drawn, low, high)
    return values


def _drawn(stage: Stage, known: Array, parameters: Array, generator: np.random.Generator) -> Array:
    """(stopped, draws) from the final values (went on, draws) of those that went on."""
    on, off = ~stage.stopped, stage.stopped
    seen, further = _standardised(stage.seen[:, None], on)[:, 0], _standardised(stage.course, on)
    bent = _bends(seen)
    inputs = np.hstack([np.ones((len(seen), 1)), seen[:, None], further, bent, parameters])
    own, widths = inputs[on], (1, 1 + further.shape[1], bent.shape[1], parameters.shape[1])
    gram, shape, shift = own.T @ own, 1.0 + on.sum() / 2, stage.seen - stage.seen[on].mean()
    fits, evidence = [], []
    for slope in SLOPES:
        target = known - slope * shift[on][:, None]
        projected, total = own.T @ target, (target**2).sum(0)
        for of_course, of_parameters in product(OF_COURSE, OF_PARAMETERS if parameters.shape[1] else OF_PARAMETERS[:1]):
            prior = np.repeat([1e4, of_course, OF_BENDS * of_course, max(of_parameters, 1e-8)], widths)
            root = np.linalg.cholesky(gram + np.diag(1 / prior))
            weights = np.linalg.solve(root.T, np.linalg.solve(root, projected))
            rate = 1e-5 + 0.5 * np.maximum(total - (projected * weights).sum(0), 0.0)
            evidence.append(-np.log(np.diag(root)).sum() - 0.5 * np.log(prior).sum() - shape * np.log(rate))
            fits.append((slope, root, weights, rate))
    chosen = _chosen(np.array(evidence), generator)
    noise = generator.normal(size=(inputs.shape[1], DRAWS))
    precision, own_noise = generator.gamma(shape, size=DRAWS), generator.normal(size=(off.sum(), DRAWS))
    drawn = np.empty((off.sum(), DRAWS))
    for place in np.unique(chosen):
        at, (slope, root, weights, rate) = chosen == place, fits[place]
        deviation = np.sqrt(rate[at] / precision[at])
        beta = weights[:, at] + deviation * np.linalg.solve(root.T, noise[:, at])
        drawn[:, at] = slope * shift[off][:, None] + inputs[off] @ beta + deviation * own_noise[:, at]
    return drawn


def _chosen(evidence: Array, generator: np.random.Generator) -> NDArray[np.intp]:
    """(draws,): a fit for each draw, as likely as its evidence (fits, draws) makes it."""
    shares = np.exp(evidence - evidence.max(0))
    shares = (shares / shares.sum(0)).cumsum(0)
    return np.minimum((shares < generator.random(DRAWS)).sum(0), len(evidence) - 1)


def _standardised(inputs: Array, on: NDArray[np.bool_]) -> Array:
    """Columns with mean 0 and deviation 1 over those that went on."""
    return np.asarray((inputs - inputs[on].mean(0)) / np.maximum(inputs[on].std(0), LEAST_SCALE))


def _bends(seen: Array) -> Array:
    """(N, bends): how far a value lies outwards of each, seen from the middle of those that went on."""
    at = np.quantile(seen, BENDS)
    return np.maximum(np.where(at < 0, at - seen[:, None], seen[:, None] - at), 0.0)
