"""Count outputs and sum losses in each (class, bias class) cell: all that most metrics need to know."""

from dataclasses import dataclass
from functools import cache, cached_property

import torch
from torch import Tensor

from study.data.dataset import Facts


def log_losses(scores: Tensor, target: Tensor) -> Tensor:
    """Compute -log p of each sample's class from its scores (N, Y), float64 (N,); without a class, that of class 0."""
    return -scores.double().log_softmax(1).gather(1, target.clamp(min=0)[:, None])[:, 0]


SHRINKAGE = 10.0
"""k: for a cell, the mean of cells like it counts as much as so many samples of its own."""


@dataclass(frozen=True)
class Cells:
    """Cells of a split, with what their samples score: 1 for a right and 0 for a wrong prediction, or a loss.

    The mean of a small cell is shrunk towards that of cells like it by empirical Bayes (Morris, JASA 1983): accuracies
    of such cells are taken as drawn from a beta distribution around their common mean, so that a cell's right
    predictions are beta-binomial; mean losses as normal around it. The kinds of cells are the conflicting and the
    aligned ones; where no bias class has a class of its own, the cells of one class are a kind, or all cells are, as
    `Facts` says.

    Attributes:
        sums: over the samples of each cell, float64 (Y, S): number of right predictions, or sum of losses.
        samples: number of samples of each cell, float64 (Y, S).
        alike: 1 for the cells of each kind, else 0, float64 (kinds, Y, S).
        squares: sums of the squares of losses, float64 (Y, S); None: for right predictions.
    """

    sums: Tensor
    samples: Tensor
    alike: Tensor
    squares: Tensor | None = None

    @cached_property
    def shrunk(self) -> Tensor:
        """(sum + k prior) / (samples + k) of each cell, (Y, S): an empty one has its prior."""
        return (self.sums + SHRINKAGE * self._spread(self._prior)) / (self.samples + SHRINKAGE)

    @cached_property
    def cell_variance(self) -> Tensor:
        """Variance of the `shrunk` value of each cell, (Y, S): of the cell's own value, and of its prior."""
        of_prior = SHRINKAGE / (self.samples + SHRINKAGE)
        return self._own_variance + of_prior.square() * self._spread(self._prior_variance)

    @cached_property
    def mean_variance(self) -> Tensor:
        """Variance of the mean of `shrunk` over all cells, a scalar: cells of one kind share their prior's."""
        of_prior = SHRINKAGE / (self.samples + SHRINKAGE)
        of_priors = ((self.alike * of_prior).sum((1, 2)).square() * self._prior_variance).sum()
        return (self._own_variance.sum() + of_priors) / self.samples.numel() ** 2

    @cached_property
    def _weights(self) -> Tensor:
        """Sum over the cells of each kind of samples / (samples + k), (kinds,)."""
        return (self.alike * (self.samples / (self.samples + SHRINKAGE))).sum((1, 2))

    @cached_property
    def _prior(self) -> Tensor:
        """Mean of the cells of each kind, (kinds,); where all of them are empty, that of all samples.

        A cell weighs samples / (samples + k), inversely to the variance that it has around the common mean: among tiny
        cells this is the mean of all their samples, among large ones the mean over cells.
        """
        sums = (self.alike * (self.sums / (self.samples + SHRINKAGE))).sum((1, 2))
        has = self._weights > 0  # a gradient through 0 / 0 would be nan for all
        return torch.where(has, sums / torch.where(has, self._weights, 1.0), self.sums.sum() / self.samples.sum())

    @cached_property
    def _cautious_prior(self) -> Tensor:
        """The prior as if there were one more sample, half right, so that 0 of 2 right does not make 0 certain."""
        samples = (self.alike * self.samples).sum((1, 2))
        return (samples * self._prior + 0.5) / (samples + 1)

    @cached_property
    def sample_variance(self) -> Tensor:
        """Variance of a sample's loss around the mean of its kind, (kinds,).

        As if one sample more were off by that mean, so that two equal losses do not make equality certain.
        """
        assert self.squares is not None
        samples, sums, squares = ((self.alike * of).sum((1, 2)) for of in (self.samples, self.sums, self.squares))
        off = squares - 2 * self._prior * sums + samples * self._prior.square()
        return (off + self._prior.square()) / samples.clamp(min=1)

    @cached_property
    def _own_variance(self) -> Tensor:
        """Variance of each cell's value around its shrunk one if the prior were known, (Y, S)."""
        if self.squares is not None:
            return self._spread(self.sample_variance) / (self.samples + SHRINKAGE)
        value = (self.sums + SHRINKAGE * self._spread(self._cautious_prior)) / (self.samples + SHRINKAGE)
        return value * (1 - value) / (self.samples + SHRINKAGE + 1)

    @cached_property
    def _prior_variance(self) -> Tensor:
        """Variance of each kind's mean under the model, (kinds,); without samples, that of a single one."""
        if self.squares is not None:
            return self.sample_variance / (SHRINKAGE * self._weights).clamp(min=1)
        prior = self._cautious_prior
        return prior * (1 - prior) / ((SHRINKAGE + 1) * self._weights).clamp(min=1)

    def _spread(self, of_kinds: Tensor) -> Tensor:
        """Give each cell the value of its kind, (kinds,) to (Y, S)."""
        return (of_kinds[:, None, None] * self.alike).sum(0)


@cache  # no copy to the device at each evaluation, which would wait for it
def kinds(facts: Facts, device: torch.device) -> Tensor:
    """Return the kinds of a data set's cells as `Cells.alike` has them."""
    classes, groups = facts.classes, facts.bias_classes or 0
    if facts.aligned is not None:
        own = (torch.tensor(facts.aligned[:groups]) == torch.arange(classes)[:, None]).double()
        found = torch.stack([1 - own, own])
    elif facts.alike == "class":
        found = torch.eye(classes, dtype=torch.float64)[..., None].expand(classes, classes, groups)
    else:
        found = torch.ones(1, classes, groups, dtype=torch.float64)
    return found.to(device)


@dataclass(frozen=True)
class Counts:
    """Samples of a split, counted once, on their device and without a sync.

    Attributes:
        table: samples, float64 (classes Y, bias classes S + 1, outputs Y). The last bias column holds the samples
            whose bias label is unknown: they count for every metric that needs no bias label.
        alike: the kinds of cells, see `Cells`.
        lost: log losses of the samples of each class and bias column, and their squares, summed, float64 (2, Y,
            S + 1); None without scores.
    """

    table: Tensor
    alike: Tensor
    lost: Tensor | None = None

    @classmethod
    def of(
        cls, prediction: Tensor, target: Tensor, bias: Tensor | None, facts: Facts, scores: Tensor | None = None
    ) -> "Counts":
        """Count predictions (N,). A target of -1 leaves the sample out; a bias label of -1 is unknown.

        Args:
            scores: logits, (N, Y), for the log losses, or None.
        """
        classes, columns = facts.classes, (facts.bias_classes or 0) + 1
        column = torch.full_like(target, -1) if bias is None or not facts.bias_classes else bias
        column = torch.where(column < 0, columns - 1, column)
        known, group = target >= 0, target.clamp(min=0) * columns + column
        # index_add, not bincount, which asks the device for the largest index; on integers it is deterministic.
        nothing = torch.zeros(classes * columns * classes, dtype=torch.int64, device=target.device)
        table = nothing.index_add(0, group * classes + prediction, known.long()).view(classes, columns, classes)
        lost = None
        if scores is not None:
            log_loss = log_losses(scores, target)
            of_samples = torch.stack([log_loss, log_loss.square()]).where(known, 0.0)
            none = of_samples.new_zeros(2, classes * columns)
            lost = none.index_add(1, group, of_samples).view(2, classes, columns)
        return cls(table.double(), kinds(facts, target.device), lost)

    @cached_property
    def by_group(self) -> Tensor:
        """Samples with a bias label, (Y, S, outputs)."""
        return self.table[:, :-1]

    @cached_property
    def group_accuracy(self) -> Tensor:
        """Accuracy of each (class, bias class) cell, (Y, S), NaN for empty ones."""
        return self.by_group.diagonal(dim1=0, dim2=2).T / self.by_group.sum(2)

    @cached_property
    def cells(self) -> Cells:
        """(class, bias class) cells of right predictions."""
        return Cells(self.by_group.diagonal(dim1=0, dim2=2).T, self.by_group.sum(2), self.alike)

    @cached_property
    def losses(self) -> Cells:
        """(class, bias class) cells of log losses; only for counts with scores."""
        assert self.lost is not None
        sums, squares = self.lost[..., :-1]
        return Cells(sums, self.by_group.sum(2), self.alike, squares)

    @cached_property
    def losses_of_classes(self) -> Cells:
        """Log losses of all samples by class, as cells of one bias class, (Y, 1), each of its own kind."""
        assert self.lost is not None
        sums, squares = self.lost.sum(2, keepdim=True)
        kinds = torch.eye(len(sums), dtype=sums.dtype, device=sums.device)[..., None]
        return Cells(sums, self.by_class.sum(1, keepdim=True), kinds, squares)

    @cached_property
    def by_class(self) -> Tensor:
        """All samples, (Y, outputs)."""
        return self.table.sum(1)

    @cached_property
    def class_accuracy(self) -> Tensor:
        """Accuracy of each class, its recall, (Y,), NaN for empty ones."""
        return self.by_class.diagonal() / self.by_class.sum(1)

    @cached_property
    def aligned(self) -> Tensor:
        """1 where the bias class is one of the class's own, else 0, (Y, S); only for data where that is known."""
        return self.alike[1]

    def accuracy(self, cells: Tensor) -> Tensor:
        """Compute the accuracy in the cells where (Y, S) holds 1, NaN if they are empty."""
        return (self.cells.sums * cells).sum() / (self.cells.samples * cells).sum()


def smallest(values: Tensor) -> Tensor:
    """Return the smallest value that is not NaN; NaN where there is none."""
    least = values.nan_to_num(nan=torch.inf).amin()
    return torch.where(least.isinf(), torch.nan, least)


def gap(values: Tensor) -> Tensor:
    """Return the largest difference along the first dimension without NaN; NaN where fewer than two values are left."""
    high, low = values.nan_to_num(nan=-torch.inf).amax(0), values.nan_to_num(nan=torch.inf).amin(0)
    return torch.where((~values.isnan()).sum(0) > 1, high - low, torch.nan)
