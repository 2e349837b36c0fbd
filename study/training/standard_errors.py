"""The standard error of each accuracy: how far its value may be off because the split is a sample.

Right predictions are taken as binomial, with half a right and half a wrong one added to each cell: 0 of 2 right does
not say for certain that the accuracy is 0. Groups are taken as they are, inferred ones too.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from study.training.counts import Counts


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
    return of_mean(pooled(counts.cells.right, counts.cells.samples))


def aligned_accuracy(counts: Counts) -> Tensor:
    """Of the accuracy on the samples whose group is their class."""
    cells, which = counts.cells, counts.aligned
    return pooled((cells.right * which).sum(), (cells.samples * which).sum())


def conflicting_accuracy(counts: Counts) -> Tensor:
    """Of the accuracy on the samples whose group is not their class."""
    cells, which = counts.cells, 1 - counts.aligned
    return pooled((cells.right * which).sum(), (cells.samples * which).sum())


def conflicting_accuracy_if_any(counts: Counts) -> Tensor:
    """The same, or that of the accuracy on all samples."""
    value = conflicting_accuracy(counts)
    return torch.where(value.isnan(), accuracy(counts), value)


def worst_group_accuracy(counts: Counts) -> Tensor:
    """Of the accuracy of the cell that has the smallest."""
    return of_smallest(counts.group_accuracy, pooled(counts.cells.right, counts.cells.samples))


def shrunk_unbiased_accuracy(counts: Counts) -> Tensor:
    """Of the mean of all shrunk cells: the square root of its posterior variance, the priors' own included (Morris)."""
    return counts.cells.mean_variance.sqrt()


def shrunk_worst_group_accuracy(counts: Counts) -> Tensor:
    """Of the smallest shrunk cell: likewise."""
    return of_smallest(counts.cells.shrunk, counts.cells.cell_variance.sqrt())


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
}
"""By the metric's name; those of inferred groups from counts by these groups."""
