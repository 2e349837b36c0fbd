"""Which rows belong together, without a sync: no class count is read back, every shape follows from the batch."""

from typing import Any

import torch
from torch import Tensor

from study.losses.batched import BatchedFunction


def sample_labels(views: Tensor, target: Tensor | None) -> Tensor:
    """The labels, shape (B,); without a target each sample is a class of its own, its views the only positives."""
    return torch.arange(views.shape[1], device=views.device) if target is None else target


def group(*labels: Tensor) -> Tensor:
    """An index below B for each sample, shape (B,), equal where all labels are. ValueError: another shape."""
    for label in labels:
        _checked(label)
    index = torch.searchsorted(labels[0].sort().values, labels[0])
    for label in labels[1:]:
        index = group(index * len(label) + group(label))
    return index


def same(label: Tensor, views: Tensor) -> Tensor:
    """1 where two rows of `views` (V, B, D) share their sample's label, else 0, shape (V*B, V*B), in its dtype.

    Masks are numbers, not booleans: comparing into floats and multiplying is several times faster than `where` on a
    CPU, and no slower elsewhere. A CPU compares floats six times as fast as whole numbers, and a group index is exact
    as a float where a label need not be; elsewhere to find the index takes a dozen launches, to compare labels one.
    """
    value = as_float(label, views.dtype) if label.is_cpu else _checked(label)
    return equal(value if len(views) == 1 else value.repeat(len(views)), views.dtype)


def as_float(label: Tensor, dtype: torch.dtype) -> Tensor:
    """A number for each sample, equal where labels are, shape (B,)."""
    return group(label).to(dtype)


def equal(value: Tensor, dtype: torch.dtype) -> Tensor:
    """1 where two values (n,) are equal, else 0, shape (n, n)."""
    mask: Tensor = _Same.apply(value, dtype)
    return mask


def without_self(mask: Tensor) -> Tensor:
    """A copy of the (n, n) mask with its diagonal 0."""
    return without_self_(mask.clone())


def without_self_(mask: Tensor) -> Tensor:
    """The (n, n) mask itself, with its diagonal set to 0."""
    mask.diagonal().zero_()
    return mask


def group_size(index: Tensor, views: Tensor) -> Tensor:
    """Rows of `views` (V, B, D) in each row's group, shape (V*B,), in its dtype."""
    size = views.new_zeros(len(index)).index_add(0, index, views.new_full((len(index),), len(views)))
    return size.index_select(0, index).repeat(len(views))


def group_sum(index: Tensor, values: Tensor) -> Tensor:
    """Sum over each sample's group of (B, D) values, shape (B, D)."""
    return torch.zeros_like(values).index_add(0, index, values).index_select(0, index)


def _checked(label: Tensor) -> Tensor:
    if label.ndim != 1:
        raise ValueError(f"classes have the shape (B,), got {tuple(label.shape)}")
    return label


class _Same(BatchedFunction):
    """Without a gradient: what it does is to write the comparison into floats, also under `torch.vmap`."""

    @staticmethod
    def forward(value: Tensor, dtype: torch.dtype) -> Tensor:
        mask = value.new_empty(*value.shape, value.shape[-1], dtype=dtype)
        return torch.eq(value[..., :, None], value[..., None, :], out=mask)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, torch.dtype], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)
