"""Which rows belong together, without a sync: no class count is read back, every shape follows from the batch."""

import torch
from torch import Tensor


def same(label: Tensor, views: int) -> Tensor:
    """Boolean (V*B, V*B): do two rows share their sample's label? Compared once per pair of samples, then tiled."""
    return (label[:, None] == label[None, :]).repeat(views, views)


def without_self(mask: Tensor) -> Tensor:
    """A copy of the (n, n) mask with its diagonal empty."""
    return mask.clone().fill_diagonal_(0)


def sample_labels(views: Tensor, target: Tensor | None) -> Tensor:
    """The labels, shape (B,); without a target each sample is a class of its own, its views the only positives."""
    return torch.arange(views.shape[1], device=views.device) if target is None else target


def group(*labels: Tensor) -> Tensor:
    """An index below B for each sample, shape (B,), equal where all the labels are equal."""
    index = torch.searchsorted(labels[0].sort().values, labels[0])
    for label in labels[1:]:
        index = group(index * len(label) + group(label))
    return index


def group_size(index: Tensor, views: int) -> Tensor:
    """Rows (views counted) in each row's group, shape (V*B,), int64."""
    size = torch.zeros_like(index).index_add(0, index, torch.ones_like(index)) * views
    return size.index_select(0, index).repeat(views)


def group_sum(index: Tensor, rows: Tensor) -> Tensor:
    """Sum over each sample's group of (B, D) values, shape (B, D)."""
    return torch.zeros_like(rows).index_add(0, index, rows).index_select(0, index)
