"""The standard error of each accuracy and log loss: how far its value may be off because the split is a sample.

Right predictions are taken as binomial, with half a right and half a wrong one added to each cell: 0 of 2 right does
not say for certain that the accuracy is 0. Losses have the variance of all samples of cells that are alike. Groups are
taken as they are, inferred ones too.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from study.training.counts import Cells, Counts


def pooled(right: Tensor, samples: Tensor) -> Tensor:
    """Of the share of right predictions among some samples: a binomial's; any shape, nan without samples."""
    share = (right + 0.5) / (samples + 1)
    return torch.where(samples > 0, (share * (1 - share) / samples).sqrt(), torch.nan)


def of_mean(errors: Tensor) -> Tensor:
    """Of the mean of several shares with these errors, nan for those that are left out: a scalar."""
    return errors.square().nansum().sqrt() / (~errors.isnan()).sum()


def of_smallest(values: Tensor, errors: Tensor) -> Tensor:
    """The error of the smallest of these values, the largest of several such, nan left out: a scalar."""
    known = values.nan_to_num(nan=torch.inf)
    return torch.where(known == known.amin(), errors, -torch.inf).amax()


def accuracy(counts: Counts) -> Tensor:
    """Of the accuracy on all samples."""
    return pooled(counts.by_class.diagonal().sum(), counts.by_class.sum())


def balanced_accuracy(counts: Counts) -> Tensor:
    """Of the mean over classes."""
    return of_mean(pooled(counts.by_class.diagonal(), counts.by_class.sum(1)))


def worst_class_accuracy(counts: Counts) -> Tensor:
    """Of the accuracy of the class that has the smallest."""
    return of_smallest(counts.class_accuracy, pooled(counts.by_class.diagonal(), counts.by_class.sum(1)))


def unbiased_accuracy(counts: Counts) -> Tensor:
    """Of the mean over cells that are not empty."""
    return of_mean(pooled(counts.cells.sums, counts.cells.samples))


def aligned_accuracy(counts: Counts) -> Tensor:
    """Of the accuracy on the samples whose group is their class."""
    cells, which = counts.cells, counts.aligned
    return pooled((cells.sums * which).sum(), (cells.samples * which).sum())


def conflicting_accuracy(counts: Counts) -> Tensor:
    """Of the accuracy on the samples whose group is not their class."""
    cells, which = counts.cells, 1 - counts.aligned
    return pooled((cells.sums * which).sum(), (cells.samples * which).sum())


def conflicting_accuracy_if_any(counts: Counts) -> Tensor:
    """The same, or that of the accuracy on all samples."""
    value = conflicting_accuracy(counts)
    return torch.where(value.isnan(), accuracy(counts), value)


def worst_group_accuracy(counts: Counts) -> Tensor:
    """Of the accuracy of the cell that has the smallest."""
    return of_smallest(counts.group_accuracy, pooled(counts.cells.sums, counts.cells.samples))


def shrunk_unbiased_accuracy(counts: Counts) -> Tensor:
    """Of the mean of all shrunk cells: the square root of its posterior variance, the priors' own included (Morris)."""
    return counts.cells.mean_variance.sqrt()


def shrunk_worst_group_accuracy(counts: Counts) -> Tensor:
    """Of the smallest shrunk cell: likewise."""
    return of_smallest(counts.cells.shrunk, counts.cells.cell_variance.sqrt())


def _of_mean_loss(cells: Cells, weight: Tensor) -> Tensor:
    """Of the weighted mean of the cells' mean losses, weights (Y, S), 0 for those that are left out: a scalar."""
    of_samples = (cells.sample_variance[:, None, None] * cells.alike).sum(0)
    variance = (weight.square() * of_samples / cells.samples.clamp(min=1)).sum()
    return variance.sqrt() / weight.sum()


def log_loss(counts: Counts) -> Tensor:
    """Of the mean log loss of all samples."""
    return _of_mean_loss(counts.losses_of_classes, counts.losses_of_classes.samples)


def balanced_log_loss(counts: Counts) -> Tensor:
    """Of the mean over classes."""
    cells = counts.losses_of_classes
    return _of_mean_loss(cells, (cells.samples > 0).double())


def unbiased_log_loss(counts: Counts) -> Tensor:
    """Of the mean over cells that are not empty."""
    return _of_mean_loss(counts.losses, (counts.losses.samples > 0).double())


def shrunk_unbiased_log_loss(counts: Counts) -> Tensor:
    """Of the mean of all shrunk cells: likewise."""
    return counts.losses.mean_variance.sqrt()


ERRORS: Mapping[str, Callable[[Counts], Tensor]] = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "worst_class_accuracy": worst_class_accuracy,
    "aligned_accuracy": aligned_accuracy,
    "conflicting_accuracy": conflicting_accuracy,
    "unbiased_accuracy": unbiased_accuracy,
    "worst_group_accuracy": worst_group_accuracy,
    "shrunk_unbiased_accuracy": shrunk_unbiased_accuracy,
    "shrunk_worst_group_accuracy": shrunk_worst_group_accuracy,
    "inferred_unbiased_accuracy": shrunk_unbiased_accuracy,
    "inferred_conflicting_accuracy": conflicting_accuracy_if_any,
    "inferred_worst_group_accuracy": shrunk_worst_group_accuracy,
    "log_loss": log_loss,
    "balanced_log_loss": balanced_log_loss,
    "unbiased_log_loss": unbiased_log_loss,
    "shrunk_unbiased_log_loss": shrunk_unbiased_log_loss,
    "inferred_unbiased_log_loss": shrunk_unbiased_log_loss,
}
"""By the metric's name; those of inferred groups from counts by these groups."""
