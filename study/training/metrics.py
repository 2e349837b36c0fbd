"""Metrics of predictions on one split. A study file names them as `SPLIT/NAME`.

Everything but the two that need scores is read off one table of counts. No metric waits for the device: each is a
scalar there, and the caller fetches them all at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from study.data.dataset import Facts
from study.training.counts import Counts, gap, smallest

NAMED_GROUPS = 16


@dataclass(frozen=True)
class Outcome:
    """What a metric is computed from.

    Attributes:
        counts: of the predictions.
        scores: logits or whatever ranks the classes, (N, Y), or None.
        target: classes (N,), -1 for samples without one, which count nowhere.
    """

    counts: Counts
    scores: Tensor | None
    target: Tensor


def _always(facts: Facts) -> bool:
    return True


def _biased(facts: Facts) -> bool:
    return bool(facts.bias_classes)


def _alignable(facts: Facts) -> bool:
    return facts.bias_classes == facts.classes


def _binary(facts: Facts) -> bool:
    return facts.classes == 2


def _binary_biased(facts: Facts) -> bool:
    return _binary(facts) and _biased(facts)


def _beyond_five(facts: Facts) -> bool:
    return facts.classes >= 6


@dataclass(frozen=True)
class Metric:
    """What is computed, which direction is better, which data sets can have it and whether it needs scores."""

    compute: Callable[[Outcome], Tensor]
    mode: Literal["max", "min"] = "max"
    possible: Callable[[Facts], bool] = _always
    needs_scores: bool = False


def accuracy(outcome: Outcome) -> Tensor:
    """Share of right predictions."""
    table = outcome.counts.table
    return table.sum(1).diagonal().sum() / table.sum()


def top5_accuracy(outcome: Outcome) -> Tensor:
    """Share of samples whose class is among the five of the highest scores."""
    assert outcome.scores is not None
    hit = (outcome.scores.topk(5, dim=1).indices == outcome.target[:, None]).any(1)
    return hit.sum().double() / (outcome.target >= 0).sum()


def balanced_accuracy(outcome: Outcome) -> Tensor:
    """Mean of the accuracies of the classes that the split has."""
    return outcome.counts.class_accuracy.nanmean()


def worst_class_accuracy(outcome: Outcome) -> Tensor:
    """Smallest accuracy of a class that the split has."""
    return smallest(outcome.counts.class_accuracy)


def aligned_accuracy(outcome: Outcome) -> Tensor:
    """Accuracy on the samples whose bias class is their own class."""
    return outcome.counts.accuracy(outcome.counts.aligned)


def conflicting_accuracy(outcome: Outcome) -> Tensor:
    """Accuracy on the samples whose bias class is not their own class."""
    return outcome.counts.accuracy(1 - outcome.counts.aligned)


def unbiased_accuracy(outcome: Outcome) -> Tensor:
    """Mean of the accuracies of the (class, bias class) cells that the split has (FairKL paper Table 3, BiasCon)."""
    return outcome.counts.group_accuracy.nanmean()


def worst_group_accuracy(outcome: Outcome) -> Tensor:
    """Smallest accuracy of a (class, bias class) cell that the split has."""
    return smallest(outcome.counts.group_accuracy)


def group_accuracy(outcome: Outcome, of_class: int, of_bias: int) -> Tensor:
    """Accuracy of one (class, bias class) cell."""
    return outcome.counts.group_accuracy[of_class, of_bias]


def equalized_odds(outcome: Outcome) -> Tensor:
    """Gap between groups (FSCL paper Eq. 6), a fraction, 0 is fair.

    The mean over classes y, outputs c and pairs of bias classes (s, s') of |P(c | y, s) - P(c | y, s')|, over the
    pairs whose two groups the split has.
    """
    cells = outcome.counts.by_group
    counts = cells.sum(2, keepdim=True)
    present = (counts > 0).sum(1, keepdim=True)
    # The sum of all pairs' differences from sorted values, without a tensor of pairs: the k-th of n enters once for
    # each smaller and, negative, once for each larger one. Empty groups, nan, are sorted to the end.
    ordered = (cells / counts).sort(1).values
    rank = torch.arange(cells.shape[1], device=cells.device)[None, :, None]
    total = torch.where(rank < present, (2 * rank + 1 - present) * ordered, 0.0).sum()
    return total / (present * (present - 1) / 2 * cells.shape[2]).sum()


def equal_opportunity(outcome: Outcome) -> Tensor:
    """Largest difference between bias classes of the true positive rate, class 1 being the positive one (Hardt)."""
    return gap(outcome.counts.group_accuracy[1])


def demographic_parity(outcome: Outcome) -> Tensor:
    """Largest difference between bias classes of the rate of an output, over all outputs."""
    return gap(outcome.counts.output_rate).amax()


def accuracy_parity(outcome: Outcome) -> Tensor:
    """Largest difference of the accuracy between bias classes (what WCL paper 6.2 prints as equalized odds)."""
    return gap(outcome.counts.bias_accuracy)


def auc(outcome: Outcome) -> Tensor:
    """Area under the ROC curve of score 1 - score 0: how often a positive is above a negative, ties half."""
    assert outcome.scores is not None
    score = outcome.scores[:, 1].double() - outcome.scores[:, 0].double()
    positive, negative = outcome.target == 1, outcome.target == 0
    negatives = negative.sum()
    ranked = torch.where(negative, score, torch.inf).sort().values
    below = torch.searchsorted(ranked, score)
    not_above = torch.searchsorted(ranked, score, right=True).clamp(max=negatives)
    wins = torch.where(positive, below + not_above, 0).sum().double() / 2
    return wins / (positive.sum() * negatives)


def _groups() -> dict[str, Metric]:
    """The accuracy of each single cell, for data sets of few of them."""
    return {
        f"group_{y}_{s}_accuracy": Metric(
            partial(group_accuracy, of_class=y, of_bias=s), possible=partial(_has_group, of_class=y, of_bias=s)
        )
        for y in range(NAMED_GROUPS)
        for s in range(NAMED_GROUPS // (y + 1))
    }


def _has_group(facts: Facts, of_class: int, of_bias: int) -> bool:
    groups = facts.bias_classes or 0
    return of_class < facts.classes and of_bias < groups and facts.classes * groups <= NAMED_GROUPS


METRICS: dict[str, Metric] = {
    "accuracy": Metric(accuracy),
    "top5_accuracy": Metric(top5_accuracy, possible=_beyond_five, needs_scores=True),
    "balanced_accuracy": Metric(balanced_accuracy),
    "worst_class_accuracy": Metric(worst_class_accuracy),
    "auc": Metric(auc, possible=_binary, needs_scores=True),
    "aligned_accuracy": Metric(aligned_accuracy, possible=_alignable),
    "conflicting_accuracy": Metric(conflicting_accuracy, possible=_alignable),
    "unbiased_accuracy": Metric(unbiased_accuracy, possible=_biased),
    "worst_group_accuracy": Metric(worst_group_accuracy, possible=_biased),
    "equalized_odds": Metric(equalized_odds, mode="min", possible=_biased),
    "equal_opportunity": Metric(equal_opportunity, mode="min", possible=_binary_biased),
    "demographic_parity": Metric(demographic_parity, mode="min", possible=_biased),
    "accuracy_parity": Metric(accuracy_parity, mode="min", possible=_biased),
    **_groups(),
}


def mode(name: str) -> Literal["max", "min"] | None:
    """Which direction of a reported metric, `SPLIT/NAME`, is better; the name of a probe or an encoder may stand before
    the metric's own. None: neither is."""
    parts = name.split("/")[-1].split("_")
    ends = ("_".join(parts[start:]) for start in range(len(parts)))
    found = next((METRICS[end] for end in ends if end in METRICS), None)
    if found is None:
        return "min" if parts[-1] == "mse" else None
    return found.mode


def available(facts: Facts) -> list[str]:
    """The metrics that a data set can have."""
    return [name for name, metric in METRICS.items() if metric.possible(facts)]


def compute(
    scores: Tensor | None, prediction: Tensor, target: Tensor, bias: Tensor | None, facts: Facts
) -> dict[str, Tensor]:
    """Every available metric, as float64 scalars on the device; nan where no sample counts.

    Args:
        scores: logits, (N, classes), or None, which leaves out the metrics that rank classes.
        prediction: outputs, (N,).
        target: classes, (N,); a sample of -1 has none and counts nowhere.
        bias: bias classes, (N,), or None, which leaves every metric of groups nan; a sample of -1 is in no group.
        facts: of the data set.
    """
    outcome = Outcome(Counts.of(prediction, target, bias, facts), scores, target)
    wanted = [name for name in available(facts) if scores is not None or not METRICS[name].needs_scores]
    return {name: METRICS[name].compute(outcome) for name in wanted}
