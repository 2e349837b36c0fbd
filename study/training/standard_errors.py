"""Estimate the standard error of each accuracy and log loss: how far it may be off because the split is a sample.

Right predictions are taken as binomial, with half a right and half a wrong one added to each cell, so that 0 of 2 right
does not make an accuracy of 0 certain. Losses have the variance of all samples of cells that are alike. Groups are
taken as given, inferred ones too.

Where a value is off by more than chance, so that no interval around it holds, it has no error: the smallest of many
cells, which is too low, and a mean over the cells that happen to have samples.
`tests/benchmarks/simulations/cells.py` says how often the intervals of the others hold.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from study.training.cell_statistics import CellStatistics, PredictionCounts


def binomial_error(right: Tensor, samples: Tensor) -> Tensor:
    """Return the binomial error of the share of right predictions; any shape, NaN without samples."""
    share = (right + 0.5) / (samples + 1)
    return torch.where(samples > 0, (share * (1 - share) / samples).sqrt(), torch.nan)


def error_of_mean(errors: Tensor) -> Tensor:
    """Return the error of the mean of several shares with these errors, without NaN: a scalar."""
    return errors.square().nansum().sqrt() / (~errors.isnan()).sum()


def error_of_smallest(values: Tensor, errors: Tensor) -> Tensor:
    """Return the error of the smallest value, the largest error if several are smallest, without NaN: a scalar."""
    known = values.nan_to_num(nan=torch.inf)
    return torch.where(known == known.amin(), errors, -torch.inf).amax()


MAX_SHARE_OF_UNSEEN_CELLS = 0.1
"""Largest share of cells that chance may have left empty where a mean over the others still has an error."""


def nan_if_chance_leaves_cells_empty(error: Tensor, samples: Tensor) -> Tensor:
    """Return an error of a mean over the cells that have samples; NaN where it is chance which ones have.

    Of f1 cells with one sample and f2 with two, about f1^2 / 2 f2 more were never drawn (Chao, Scandinavian Journal of
    Statistics 1984). Cells that are empty beside large ones alone are taken as those that there cannot be.

    Args:
        samples: number of samples of each cell, any shape.
    """
    of_none, of_one, of_two = ((samples == count).sum().double() for count in range(3))
    unseen = torch.minimum(of_none, of_one.square() / (2 * of_two.clamp(min=0.5)))
    return torch.where(unseen > MAX_SHARE_OF_UNSEEN_CELLS * samples.numel(), torch.nan, error)


def accuracy(counts: PredictionCounts) -> Tensor:
    """Estimate the error of the accuracy on all samples."""
    return binomial_error(counts.counts_by_class.diagonal().sum(), counts.counts_by_class.sum())


def balanced_accuracy(counts: PredictionCounts) -> Tensor:
    """Estimate the error of the mean accuracy over classes."""
    return error_of_mean(binomial_error(counts.counts_by_class.diagonal(), counts.counts_by_class.sum(1)))


def worst_class_accuracy(counts: PredictionCounts) -> Tensor:
    """Estimate the error of the smallest accuracy of a class."""
    errors = binomial_error(counts.counts_by_class.diagonal(), counts.counts_by_class.sum(1))
    return error_of_smallest(counts.class_accuracy, errors)


def unbiased_accuracy(counts: PredictionCounts) -> Tensor:
    """Estimate the error of the mean accuracy over cells that are not empty."""
    cells = counts.accuracy_statistics
    return nan_if_chance_leaves_cells_empty(error_of_mean(binomial_error(cells.sums, cells.samples)), cells.samples)


def aligned_accuracy(counts: PredictionCounts) -> Tensor:
    """Estimate the error of the accuracy on aligned samples."""
    cells, which = counts.accuracy_statistics, counts.aligned_mask
    return binomial_error((cells.sums * which).sum(), (cells.samples * which).sum())


def conflicting_accuracy(counts: PredictionCounts) -> Tensor:
    """Estimate the error of the accuracy on conflicting samples."""
    cells, which = counts.accuracy_statistics, 1 - counts.aligned_mask
    return binomial_error((cells.sums * which).sum(), (cells.samples * which).sum())


def conflicting_or_overall_accuracy(counts: PredictionCounts) -> Tensor:
    """Estimate the error of the accuracy on conflicting samples, or on all samples if there are none."""
    value = conflicting_accuracy(counts)
    return torch.where(value.isnan(), accuracy(counts), value)


def worst_group_accuracy(counts: PredictionCounts) -> Tensor:
    """Estimate the error of the smallest accuracy of a cell."""
    cells = counts.accuracy_statistics
    return error_of_smallest(counts.group_accuracy, binomial_error(cells.sums, cells.samples))


def shrunk_unbiased_accuracy(counts: PredictionCounts) -> Tensor:
    """Estimate the error of the mean over shrunk cells: root of its posterior variance, priors' included (Morris)."""
    return counts.accuracy_statistics.variance_of_shrunk_mean.sqrt()


def shrunk_worst_group_accuracy(counts: PredictionCounts) -> Tensor:
    """Estimate the error of the smallest shrunk cell: root of its posterior variance."""
    cells = counts.accuracy_statistics
    return error_of_smallest(cells.shrunk_values, cells.variance_of_shrunk_values.sqrt())


def _error_of_weighted_mean_loss(cells: CellStatistics, weight: Tensor) -> Tensor:
    """Return the error of the weighted mean of the cells' mean losses; weight (Y, S), 0 leaves a cell out: a scalar."""
    of_samples = (cells.loss_variance_by_kind[:, None, None] * cells.kind_of_cell).sum(0)
    variance = (weight.square() * of_samples / cells.samples.clamp(min=1)).sum()
    return variance.sqrt() / weight.sum()


def log_loss(counts: PredictionCounts) -> Tensor:
    """Estimate the error of the mean log loss of all samples."""
    cells = counts.log_loss_statistics_by_class
    return _error_of_weighted_mean_loss(cells, cells.samples)


def balanced_log_loss(counts: PredictionCounts) -> Tensor:
    """Estimate the error of the mean over classes of their log losses."""
    cells = counts.log_loss_statistics_by_class
    return _error_of_weighted_mean_loss(cells, (cells.samples > 0).double())


def unbiased_log_loss(counts: PredictionCounts) -> Tensor:
    """Estimate the error of the mean log loss over cells that are not empty."""
    cells = counts.log_loss_statistics
    error = _error_of_weighted_mean_loss(cells, (cells.samples > 0).double())
    return nan_if_chance_leaves_cells_empty(error, cells.samples)


def shrunk_unbiased_log_loss(counts: PredictionCounts) -> Tensor:
    """Estimate the error of the mean log loss over shrunk cells: root of its posterior variance."""
    return counts.log_loss_statistics.variance_of_shrunk_mean.sqrt()


STANDARD_ERROR_FUNCTIONS: Mapping[str, Callable[[PredictionCounts], Tensor]] = {
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
    "inferred_conflicting_accuracy": conflicting_or_overall_accuracy,
    "inferred_worst_group_accuracy": shrunk_worst_group_accuracy,
    "log_loss": log_loss,
    "balanced_log_loss": balanced_log_loss,
    "unbiased_log_loss": unbiased_log_loss,
    "shrunk_unbiased_log_loss": shrunk_unbiased_log_loss,
    "inferred_unbiased_log_loss": shrunk_unbiased_log_loss,
}
"""Function that estimates each metric's error, by the metric's name; for inferred groups from counts by these."""
