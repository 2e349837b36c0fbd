"""Pairs of a batch's rows: their cosines, which rows belong together, and the cell of each pair."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from study.losses.lazy_torch import functional, torch
from study.losses.loss_catalogue import compute_in_full_precision

if TYPE_CHECKING:
    from torch import Tensor


@compute_in_full_precision
def gram_matrix(views: Tensor) -> Tensor:
    """Compute the dot products of all rows, shape (V*B, V*B), rows view-major; the gradient takes one product, not two.

    Args:
        views: embeddings, shape (V, B, D).
    """
    from study.losses.own_gradients import GramMatrix

    return GramMatrix.apply(views.flatten(0, 1))


def cosine_matrix(views: Tensor, similarity: Tensor | None) -> Tensor:
    """Return the caller's similarity matrix, or the one of `views` if it gave none."""
    return gram_matrix(views) if similarity is None else similarity


def log_sum_exp(similarity: Tensor, scale: float, *, drop: Tensor | None = None, views: int = 1) -> Tensor:
    """Compute the log of the sum of exp(scale * similarity) over a part of each row; -inf, no gradient, if empty.

    Args:
        similarity: shape (n, n).
        scale: one over the temperature.
        drop: 1 for what to leave out, 0 for the rest, shape (n, n). None: leave out the diagonal.
        views: with `drop` None, leave out the diagonal of each of the views x views blocks (all rows of one sample).
    """
    from study.losses.own_gradients import RowLogSumExp

    return RowLogSumExp.apply(similarity, scale, drop, views)


def other_view_similarity(views: Tensor) -> Tensor:
    """Compute the dot product of each row with the same sample's other view, shape (2*B,).

    Raises:
        ValueError: there are not two views.
    """
    if len(views) != 2:
        raise ValueError(f"this loss pairs two views of each sample, got {len(views)}")
    return (views[0] * views[1]).sum(-1).repeat(2)


def count_other_samples(views: Tensor) -> int:
    """Return how many samples besides its own each row has, B - 1.

    Raises:
        ValueError: there are none.
    """
    if views.shape[1] < 2:
        raise ValueError(f"this loss compares different samples: it needs two or more, got {views.shape[1]}")
    return views.shape[1] - 1


def softplus(x: Tensor) -> Tensor:
    """Compute log(1 + e^x), exact (PyTorch's own is the identity above 20), without an exponential in its gradient."""
    return -functional.logsigmoid(-x)


def log_add_exp(x: Tensor, y: Tensor) -> Tensor:
    """Compute log(e^x + e^y) for y above -inf, with finite derivatives even where x is -inf (PyTorch's own are nan)."""
    return y + softplus(x - y)


def add_guard_to_log_sum(log_sum: Tensor, similarity: Tensor, scale: float, guard: float) -> Tensor:
    """Add `guard` times the row's largest exponential, a constant, to a sum in its logarithm, as released code does."""
    if guard == 0:
        return log_sum
    largest = similarity.detach().amax(-1) * scale
    return log_add_exp(log_sum, largest + math.log(guard))


def rescale_by_temperature(loss: Tensor, temperature: float, base_temperature: float | None) -> Tensor:
    """Multiply the loss by temperature / base_temperature, as in SupCon's code; None leaves it as it is."""
    return loss if base_temperature is None else loss * (temperature / base_temperature)


# Nothing below waits for the device: no class count is read back, every shape follows from the batch.


def labels_or_own_class(views: Tensor, target: Tensor | None) -> Tensor:
    """Return the labels, shape (B,); without a target each sample is a class of its own."""
    return torch.arange(views.shape[1], device=views.device) if target is None else target


def index_label_groups(*labels: Tensor) -> Tensor:
    """Return an index below B for each sample, shape (B,), equal where all labels are equal.

    Raises:
        ValueError: a label has another shape.
    """
    for label in labels:
        _check_label_shape(label)
    index = torch.searchsorted(labels[0].sort().values, labels[0])
    for label in labels[1:]:
        index = index_label_groups(index * len(label) + index_label_groups(label))
    return index


def same_label_mask(label: Tensor, views: Tensor) -> Tensor:
    """Return 1 where two rows of `views` (V, B, D) share their sample's label, else 0, shape (V*B, V*B), in its dtype.

    Masks are numbers, not booleans: comparing into floats and multiplying is several times faster than `where` on a
    CPU, and no slower elsewhere. A CPU compares floats six times as fast as whole numbers, and a group index is exact
    as a float where a label need not be; elsewhere to find the index takes a dozen launches, to compare labels one.
    """
    value = index_label_groups(label).to(views.dtype) if label.is_cpu else _check_label_shape(label)
    return equality_mask(value if len(views) == 1 else value.repeat(len(views)), views.dtype)


def equality_mask(value: Tensor, dtype: torch.dtype) -> Tensor:
    """Return 1 where two values (n,) are equal, else 0, shape (n, n)."""
    mask = value.new_empty(len(value), len(value), dtype=dtype)
    return torch.eq(value[:, None], value[None, :], out=mask)


def copy_without_diagonal(mask: Tensor) -> Tensor:
    """Copy the (n, n) mask with its diagonal 0."""
    return clear_diagonal_(mask.clone())


def clear_diagonal_(mask: Tensor) -> Tensor:
    """Set the diagonal of the (n, n) mask to 0, and return it."""
    mask.diagonal().zero_()
    return mask


def count_rows_in_group(index: Tensor, views: Tensor) -> Tensor:
    """Count the rows of `views` (V, B, D) in each row's group, shape (V*B,), in its dtype."""
    size = views.new_zeros(len(index)).index_add(0, index, views.new_full((len(index),), len(views)))
    return size.index_select(0, index).repeat(len(views))


def sum_over_sample_group(index: Tensor, values: Tensor) -> Tensor:
    """Sum (B, D) values over each sample's group, shape (B, D)."""
    return torch.zeros_like(values).index_add(0, index, values).index_select(0, index)


def _check_label_shape(label: Tensor) -> Tensor:
    if label.ndim != 1:
        raise ValueError(f"classes have the shape (B,), got {tuple(label.shape)}")
    return label
