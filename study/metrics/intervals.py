"""Confidence intervals of a metric: of a share of samples, and of a mean over seeds with the error of its split.

The standard errors themselves are from `study.training.standard_errors`. SciPy is imported where it is needed: a model
in MLflow says Wilson's interval without it.
"""

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

from study.metrics import find_metric, is_gap_metric

if TYPE_CHECKING:
    from study.data.dataset import Facts


NORMAL_DEGREES_OF_FREEDOM = 1e6
"""Degrees of freedom at which Student's t is practically the normal distribution."""

Z_95 = 1.959964
"""Number of deviations within which a standard normal variable is with a probability of 95%."""


def wilson_interval(share: float, count: float, z: float = Z_95) -> tuple[float, float]:
    """Compute Wilson's score interval of a share of `count` samples.

    Args:
        share: 0 to 1.
        z: how many standard errors to each side; by default those of 95%.

    Returns:
        Its ends, within 0 and 1; 0 and 1 without a sample.
    """
    if count == 0:
        return 0.0, 1.0
    square = z**2 / count
    centre, width = share + square / 2, math.sqrt(max(0.0, share * (1 - share)) * square + square**2 / 4)
    return max(0.0, (centre - width) / (1 + square)), min(1.0, (centre + width) / (1 + square))


def mean_confidence_interval(
    mean: float,
    standard_deviation: float | None,
    count: int,
    split_error: float,
    *,
    is_proportion: bool,
    min_value: float | None,
    confidence: float,
) -> tuple[float, float]:
    """Compute the interval of a metric's mean over seeds, by their spread and the error of its split.

    Seeds share their split, so that its error stays whatever their number; of one seed it is the only one. The two
    variances are added, with Satterthwaite's degrees of freedom. Wilson's interval, of as many samples as would give
    that variance, stays within 0 and 1 (as Korn and Graubard's for surveys); of others Student's t, from `min_value`
    on. That of a log loss is of its logarithm: losses of few samples are skewed, and a mean that lacks the rare large
    ones has too small an error, too.

    Args:
        standard_deviation: over seeds; None: there is one.
        count: of seeds.
        split_error: the standard error of the mean because its split is a sample, above 0.
        is_proportion: whether the values are shares, within 0 and 1.
        min_value: the least that values of another kind can be, 0 of a loss; None: there is no bound.
    """
    from scipy.special import stdtrit  # here: most of what asks for a spread needs no interval

    of_seeds = standard_deviation**2 / count if standard_deviation is not None else 0.0
    variance = of_seeds + split_error**2
    freedom = (count - 1) * (variance / of_seeds) ** 2 if of_seeds else math.inf
    reach = float(stdtrit(min(freedom, NORMAL_DEGREES_OF_FREEDOM), (1 + confidence) / 2))
    if not is_proportion:
        half = reach * math.sqrt(variance)
        if min_value == 0.0 and half < mean:
            return mean * math.exp(-half / mean), mean * math.exp(half / mean)
        return max(-math.inf if min_value is None else min_value, mean - half), mean + half
    least = min(split_error / math.sqrt(2), 0.5)  # of none right: half a sample, as its error was taken
    share = min(max(mean, least), 1 - least)
    return wilson_interval(mean, share * (1 - share) / variance, reach)


MAX_GROUPS_OF_MINIMUM = 4
"""Largest number of classes or cells whose smallest accuracy has an interval. If all of n are alike, the smallest is so
much too low that its 95% interval holds in 0.975^n of cases: in 90% of four, 78% of ten, 8% of a hundred."""


def is_minimum_over_many_groups(reported: str, facts: "Facts") -> bool:
    """Tell whether it is the smallest accuracy of too many classes or cells for an interval of its own."""
    metric = find_metric(reported)
    if metric is None or metric.unit != "share" or "worst_" not in reported:
        return False
    groups = facts.classes if metric.needs_inferred_groups else facts.bias_classes or 1
    return facts.classes * (1 if reported.endswith("worst_class_accuracy") else groups) > MAX_GROUPS_OF_MINIMUM


def why_no_interval(reported: str, facts: "Facts", cell_sizes: Collection[int]) -> str | None:
    """Return why no interval of a metric's value would hold, as the end of a sentence; None: one may.

    Args:
        facts: of the data set.
        cell_sizes: numbers of samples of the cells of class and bias class.
    """
    name = reported.split("/")[-1]
    if is_gap_metric(reported):
        return "of few samples a gap between groups is too large on average"
    if is_minimum_over_many_groups(reported, facts):
        kind = "classes" if name.endswith("worst_class_accuracy") else "cells"
        return f"the smallest of more than {MAX_GROUPS_OF_MINIMUM} {kind} is too low on average"
    if name in ("unbiased_accuracy", "unbiased_log_loss") and {0, 1} <= set(cell_sizes):
        return "many cells are empty beside others of one sample, so that chance decides which of them count"
    return None
