"""Metrics of predictions on one split. A study file names them as `SPLIT/NAME`."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import torch
from torch import Tensor

from study.data.dataset import Facts


@dataclass(frozen=True)
class Metric:
    """What is computed, which direction is better, and whether it needs bias labels."""

    compute: Callable[[Tensor, Tensor, Tensor, Facts], Tensor]
    mode: Literal["max", "min"] = "max"
    needs_bias: bool = True


def accuracy(prediction: Tensor, target: Tensor, bias: Tensor, facts: Facts) -> Tensor:
    """Share of right predictions."""
    return (prediction == target).double().mean()


def worst_class_accuracy(prediction: Tensor, target: Tensor, bias: Tensor, facts: Facts) -> Tensor:
    """Smallest accuracy of a class that the split has."""
    return _accuracy_by(prediction, target, target, facts.classes).nan_to_num(torch.inf).min()


def aligned_accuracy(prediction: Tensor, target: Tensor, bias: Tensor, facts: Facts) -> Tensor:
    """Accuracy on the samples whose bias class is their own class."""
    return (prediction == target)[bias == target].double().mean()


def conflicting_accuracy(prediction: Tensor, target: Tensor, bias: Tensor, facts: Facts) -> Tensor:
    """Accuracy on the samples whose bias class is not their own class."""
    return (prediction == target)[bias != target].double().mean()


def worst_group_accuracy(prediction: Tensor, target: Tensor, bias: Tensor, facts: Facts) -> Tensor:
    """Smallest accuracy of a (class, bias class) group that the split has."""
    groups = int(facts.bias_classes or 1)
    by_group = _accuracy_by(prediction, target, target * groups + bias, facts.classes * groups)
    return by_group.nan_to_num(torch.inf).min()


def equalized_odds(prediction: Tensor, target: Tensor, bias: Tensor, facts: Facts) -> Tensor:
    """Gap between groups (FSCL paper Eq. 6), a fraction, 0 is fair.

    The mean over classes y, outputs c and pairs of bias classes (s, s') of |P(c | y, s) - P(c | y, s')|, over the
    pairs whose two groups the split has.
    """
    groups = int(facts.bias_classes or 1)
    if groups < 2:
        return torch.full((), torch.nan)
    cells = torch.zeros(facts.classes, groups, facts.classes, dtype=torch.float64, device=target.device)
    cells.index_put_((target, bias, prediction), torch.ones_like(target, dtype=torch.float64), accumulate=True)
    counts = cells.sum(2, keepdim=True)
    shares = cells / counts  # nan where a group is empty
    first, second = zip(*combinations(range(groups), 2), strict=True)
    return (shares[:, list(first)] - shares[:, list(second)]).abs().nanmean()


METRICS: dict[str, Metric] = {
    "accuracy": Metric(accuracy, needs_bias=False),
    "worst_class_accuracy": Metric(worst_class_accuracy, needs_bias=False),
    "aligned_accuracy": Metric(aligned_accuracy),
    "conflicting_accuracy": Metric(conflicting_accuracy),
    "worst_group_accuracy": Metric(worst_group_accuracy),
    "equalized_odds": Metric(equalized_odds, mode="min"),
}


def available(facts: Facts) -> list[str]:
    """The metrics that a data set can have."""
    return [name for name, metric in METRICS.items() if facts.bias_classes or not metric.needs_bias]


def compute(prediction: Tensor, target: Tensor, bias: Tensor | None, facts: Facts) -> dict[str, Tensor]:
    """Every available metric of predictions (N,) as scalars on the device; nan where no sample counts."""
    labels = torch.zeros_like(target) if bias is None else bias
    return {name: METRICS[name].compute(prediction, target, labels, facts) for name in available(facts)}


def _accuracy_by(prediction: Tensor, target: Tensor, group: Tensor, groups: int) -> Tensor:
    """Accuracy per group (groups,), nan for empty ones."""
    hits = torch.zeros(groups, dtype=torch.float64, device=target.device)
    hits = hits.index_add(0, group, (prediction == target).double())
    return hits / torch.bincount(group, minlength=groups)
