"""Compute the metrics of predictions on one split; their names, directions and units are in `study.metrics`.

All but the two that rank are read off one table of counts and losses. No metric waits for the device: each is a
scalar there, and the caller fetches them all at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from study.data.dataset import Facts
from study.metrics import CELLS_BY_GROUP_METRIC, METRICS, available_metrics
from study.metrics.intervals import is_minimum_over_many_groups
from study.training.cell_statistics import PredictionCounts, min_without_nan, range_without_nan
from study.training.standard_errors import STANDARD_ERROR_FUNCTIONS


@dataclass(frozen=True)
class ScoredPredictions:
    """The predictions that a metric is computed from.

    Attributes:
        counts: of the predictions; for metrics of inferred groups, with these in place of bias classes.
        scores: logits or whatever ranks the classes, (N, Y), or None.
        target: classes (N,), -1 for samples without one, which count nowhere.
    """

    counts: PredictionCounts
    scores: Tensor | None
    target: Tensor


def accuracy(outcome: ScoredPredictions) -> Tensor:
    """Compute the share of right predictions."""
    by_class = outcome.counts.counts_by_class
    return by_class.diagonal().sum() / by_class.sum()


def top5_accuracy(outcome: ScoredPredictions) -> Tensor:
    """Compute the share of samples whose class is among the five with the highest scores."""
    assert outcome.scores is not None
    hit = (outcome.scores.topk(5, dim=1).indices == outcome.target[:, None]).any(1)
    return hit.sum().double() / (outcome.target >= 0).sum()


def balanced_accuracy(outcome: ScoredPredictions) -> Tensor:
    """Average the accuracies of the classes that the split has."""
    return outcome.counts.class_accuracy.nanmean()


def worst_class_accuracy(outcome: ScoredPredictions) -> Tensor:
    """Return the smallest accuracy of a class that the split has."""
    return min_without_nan(outcome.counts.class_accuracy)


def aligned_accuracy(outcome: ScoredPredictions) -> Tensor:
    """Compute the accuracy on the samples whose bias class is one of their class's own."""
    return outcome.counts.accuracy_in_cells(outcome.counts.aligned_mask)


def conflicting_accuracy(outcome: ScoredPredictions) -> Tensor:
    """Compute the accuracy on the samples whose bias class is none of their class's own."""
    return outcome.counts.accuracy_in_cells(1 - outcome.counts.aligned_mask)


def unbiased_accuracy(outcome: ScoredPredictions) -> Tensor:
    """Average the accuracies of the (class, bias class) cells that the split has (FairKL paper Table 3, BiasCon)."""
    return outcome.counts.group_accuracy.nanmean()


def worst_group_accuracy(outcome: ScoredPredictions) -> Tensor:
    """Return the smallest accuracy of a (class, bias class) cell that the split has."""
    return min_without_nan(outcome.counts.group_accuracy)


def shrunk_unbiased_accuracy(outcome: ScoredPredictions) -> Tensor:
    """Average the shrunk accuracies of all cells, empty ones too; see `CellStatistics`."""
    return outcome.counts.accuracy_statistics.shrunk_values.mean()


def shrunk_worst_group_accuracy(outcome: ScoredPredictions) -> Tensor:
    """Return the smallest shrunk accuracy of a cell; see `CellStatistics`."""
    return outcome.counts.accuracy_statistics.shrunk_values.amin()


def conflicting_or_overall_accuracy(outcome: ScoredPredictions) -> Tensor:
    """Compute the accuracy where the group is not the class; where no sample is like that, on all samples.

    A biased network may be right on all of a small split: a search by its groups then goes by accuracy.
    """
    value = conflicting_accuracy(outcome)
    return torch.where(value.isnan(), accuracy(outcome), value)


def group_accuracy(outcome: ScoredPredictions, of_class: int, of_bias: int) -> Tensor:
    """Return the accuracy of one (class, bias class) cell."""
    return outcome.counts.group_accuracy[of_class, of_bias]


def equalized_odds(outcome: ScoredPredictions) -> Tensor:
    """Compute the gap between groups (FSCL paper Eq. 6), a fraction, 0 is fair.

    It is the mean over classes y, outputs c and pairs of bias classes (s, s') of |P(c | y, s) - P(c | y, s')|, over the
    pairs whose two groups the split has; NaN where there is no such pair for one of the classes.
    """
    cells = outcome.counts.counts_by_group
    counts = cells.sum(2, keepdim=True)
    present = (counts > 0).sum(1, keepdim=True)
    # Sorted values give the sum of all pairs' differences without a tensor of pairs: the k-th of n is added once for
    # each smaller value and subtracted once for each larger one. Empty groups, NaN, are sorted to the end.
    ordered = (cells / counts).sort(1).values
    rank = torch.arange(cells.shape[1], device=cells.device)[None, :, None]
    total = torch.where(rank < present, (2 * rank + 1 - present) * ordered, 0.0).sum()
    pairs = present * (present - 1) / 2
    return torch.where((pairs > 0).all(), total / (pairs * cells.shape[2]).sum(), torch.nan)


def equalized_odds_difference(outcome: ScoredPredictions) -> Tensor:
    """Compute the largest gap between groups in the rate of an output, given the class, a fraction, 0 is fair.

    With two classes it is fairlearn's `equalized_odds_difference`; NaN where `equalized_odds` is.
    """
    cells = outcome.counts.counts_by_group
    return range_without_nan((cells / cells.sum(2, keepdim=True)).transpose(0, 1)).amax()


def equal_opportunity(outcome: ScoredPredictions) -> Tensor:
    """Compute the largest difference between bias classes in the true positive rate; class 1 is positive (Hardt)."""
    return range_without_nan(outcome.counts.group_accuracy[1])


def demographic_parity(outcome: ScoredPredictions) -> Tensor:
    """Compute the largest difference between bias classes in the rate of an output, over all outputs."""
    by_bias = outcome.counts.counts_by_group.sum(0)
    return range_without_nan(by_bias / by_bias.sum(1, keepdim=True)).amax()


def accuracy_parity(outcome: ScoredPredictions) -> Tensor:
    """Compute the largest difference in accuracy between bias classes (WCL paper 6.2 calls it equalized odds)."""
    cells = outcome.counts.accuracy_statistics
    return range_without_nan(cells.sums.sum(0) / cells.samples.sum(0))


def log_loss(outcome: ScoredPredictions) -> Tensor:
    """Average -log p of each sample's class over all samples, p being the softmax of the scores."""
    cells = outcome.counts.log_loss_statistics_by_class
    return cells.sums.sum() / cells.samples.sum()


def balanced_log_loss(outcome: ScoredPredictions) -> Tensor:
    """Average the mean log losses of the classes that the split has."""
    cells = outcome.counts.log_loss_statistics_by_class
    return (cells.sums / cells.samples).nanmean()


def unbiased_log_loss(outcome: ScoredPredictions) -> Tensor:
    """Average the mean log losses of the (class, bias class) cells that the split has."""
    cells = outcome.counts.log_loss_statistics
    return (cells.sums / cells.samples).nanmean()


def shrunk_unbiased_log_loss(outcome: ScoredPredictions) -> Tensor:
    """Average the shrunk log losses of all cells, empty ones too; see `CellStatistics`."""
    return outcome.counts.log_loss_statistics.shrunk_values.mean()


def auc(outcome: ScoredPredictions) -> Tensor:
    """Compute the area under the ROC curve of score 1 - score 0: how often a positive is above a negative.

    Ties count half.
    """
    assert outcome.scores is not None
    score = outcome.scores[:, 1].double() - outcome.scores[:, 0].double()
    positive, negative = outcome.target == 1, outcome.target == 0
    negatives = negative.sum()
    ranked = torch.where(negative, score, torch.inf).sort().values
    below = torch.searchsorted(ranked, score)
    not_above = torch.searchsorted(ranked, score, right=True).clamp(max=negatives)
    wins = torch.where(positive, below + not_above, 0).sum().double() / 2
    return wins / (positive.sum() * negatives)


METRIC_FUNCTIONS: Mapping[str, Callable[[ScoredPredictions], Tensor]] = {
    "accuracy": accuracy,
    "top5_accuracy": top5_accuracy,
    "balanced_accuracy": balanced_accuracy,
    "worst_class_accuracy": worst_class_accuracy,
    "auc": auc,
    "aligned_accuracy": aligned_accuracy,
    "conflicting_accuracy": conflicting_accuracy,
    "unbiased_accuracy": unbiased_accuracy,
    "worst_group_accuracy": worst_group_accuracy,
    "shrunk_unbiased_accuracy": shrunk_unbiased_accuracy,
    "shrunk_worst_group_accuracy": shrunk_worst_group_accuracy,
    "inferred_unbiased_accuracy": shrunk_unbiased_accuracy,
    "inferred_conflicting_accuracy": conflicting_or_overall_accuracy,
    "inferred_worst_group_accuracy": shrunk_worst_group_accuracy,
    "log_loss": log_loss,
    "balanced_log_loss": balanced_log_loss,
    "unbiased_log_loss": unbiased_log_loss,
    "shrunk_unbiased_log_loss": shrunk_unbiased_log_loss,
    "inferred_unbiased_log_loss": shrunk_unbiased_log_loss,
    "equalized_odds": equalized_odds,
    "equalized_odds_difference": equalized_odds_difference,
    "equal_opportunity": equal_opportunity,
    "demographic_parity": demographic_parity,
    "accuracy_parity": accuracy_parity,
    **{name: partial(group_accuracy, of_class=y, of_bias=s) for name, (y, s) in CELLS_BY_GROUP_METRIC.items()},
}
"""Function that computes each metric of predictions, by the metric's name in `study.metrics`."""


def compute_metrics(
    scores: Tensor | None,
    prediction: Tensor,
    target: Tensor,
    bias: Tensor | None,
    facts: Facts,
    inferred: Tensor | None = None,
    errors: bool = False,
) -> dict[str, Tensor]:
    """Compute every available metric, as float64 scalars on the device; NaN where no sample counts.

    Args:
        scores: logits, (N, classes), or None, which leaves out the metrics that need them.
        prediction: outputs, (N,).
        target: classes, (N,); a sample of -1 has none and counts nowhere.
        bias: bias classes, (N,), or None, which leaves every metric of groups NaN; a sample of -1 is in no group.
        facts: of the data set.
        inferred: the class that a biased network gives each sample, (N,), or None, which leaves out the metrics of
            inferred groups.
        errors: add the standard errors of the metrics that have one, as `NAME_standard_error`; the smallest of many
            cells has none (`study.metrics.intervals.is_minimum_over_many_groups`).
    """
    counts = PredictionCounts.from_predictions(prediction, target, bias, facts, scores)
    outcome = ScoredPredictions(counts, scores, target)
    by_groups = {False: outcome}
    if inferred is not None:
        of_inferred = replace(facts, bias_classes=facts.classes, aligned=tuple(range(facts.classes)))
        counts = PredictionCounts.from_predictions(prediction, target, inferred, of_inferred, scores)
        by_groups[True] = replace(outcome, counts=counts)
    names = available_metrics(facts, inferred=inferred is not None)
    names = [name for name in names if scores is not None or not METRICS[name].needs_scores]
    values = {name: METRIC_FUNCTIONS[name](by_groups[METRICS[name].needs_inferred_groups]) for name in names}
    ruling = [name for name in names if errors and name in STANDARD_ERROR_FUNCTIONS]
    ruling = [name for name in ruling if not is_minimum_over_many_groups(name, facts)]
    return values | {
        f"{name}_standard_error": STANDARD_ERROR_FUNCTIONS[name](by_groups[METRICS[name].needs_inferred_groups].counts)
        for name in ruling
    }
