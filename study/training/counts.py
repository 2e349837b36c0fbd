"""How often each output was given in each (class, bias class) cell: all that most metrics need to know."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from study.data.dataset import Facts
from study.training.cells import Cells


@dataclass(frozen=True)
class Counts:
    """The samples of a split, counted once, on their device and without a sync.

    Attributes:
        table: samples, float64 (classes Y, bias classes S + 1, outputs Y). The last bias column holds the samples
            whose bias label is unknown: they count for every metric that needs no bias label.
    """

    table: Tensor

    @classmethod
    def of(cls, prediction: Tensor, target: Tensor, bias: Tensor | None, facts: Facts) -> "Counts":
        """Count predictions (N,). A target of -1 leaves the sample out; a bias label of -1 is unknown."""
        classes, columns = facts.classes, (facts.bias_classes or 0) + 1
        column = torch.full_like(target, -1) if bias is None or not facts.bias_classes else bias
        column = torch.where(column < 0, columns - 1, column)
        cell = (target.clamp(min=0) * columns + column) * classes + prediction
        # index_add, not bincount, which asks the device for the largest index; on integers it is deterministic. Not in
        # place: under torch.vmap the cells are of many rows
        nothing = torch.zeros(classes * columns * classes, dtype=torch.int64, device=target.device)
        table = nothing.index_add(0, cell, (target >= 0).long())
        return cls(table.view(classes, columns, classes).double())

    @cached_property
    def by_group(self) -> Tensor:
        """The samples with a bias label, (Y, S, outputs)."""
        return self.table[:, :-1]

    @cached_property
    def group_accuracy(self) -> Tensor:
        """Accuracy of each (class, bias class) cell, (Y, S), nan for empty ones."""
        return self.by_group.diagonal(dim1=0, dim2=2).T / self.by_group.sum(2)

    @cached_property
    def cells(self) -> Cells:
        """The (class, bias class) cells, small ones drawn to those like them."""
        return Cells(self.by_group.diagonal(dim1=0, dim2=2).T, self.by_group.sum(2))

    @cached_property
    def by_class(self) -> Tensor:
        """All samples, (Y, outputs)."""
        return self.table.sum(1)

    @cached_property
    def class_accuracy(self) -> Tensor:
        """Accuracy of each class, its recall, (Y,), nan for empty ones."""
        return self.by_class.diagonal() / self.by_class.sum(1)

    @cached_property
    def output_rate(self) -> Tensor:
        """P(output | bias class), (S, outputs), nan for empty bias classes."""
        by_bias = self.by_group.sum(0)
        return by_bias / by_bias.sum(1, keepdim=True)

    @cached_property
    def bias_accuracy(self) -> Tensor:
        """Accuracy in each bias class, (S,), nan for empty ones."""
        return self.cells.right.sum(0) / self.cells.samples.sum(0)

    @cached_property
    def aligned(self) -> Tensor:
        """1 where the bias class is the class, else 0, (Y, S)."""
        return torch.eye(*self.by_group.shape[:2], dtype=self.table.dtype, device=self.table.device)

    def accuracy(self, cells: Tensor) -> Tensor:
        """Share of right predictions in the cells of which (Y, S) holds 1, nan where they are empty."""
        return (self.cells.right * cells).sum() / (self.cells.samples * cells).sum()


def smallest(values: Tensor) -> Tensor:
    """The smallest value that is not nan; nan where there is none."""
    least = values.nan_to_num(nan=torch.inf).amin()
    return torch.where(least.isinf(), torch.nan, least)


def gap(values: Tensor) -> Tensor:
    """Largest difference along the first dimension, nan left out; nan where fewer than two values are left."""
    high, low = values.nan_to_num(nan=-torch.inf).amax(0), values.nan_to_num(nan=torch.inf).amin(0)
    return torch.where((~values.isnan()).sum(0) > 1, high - low, torch.nan)
