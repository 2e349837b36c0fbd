"""Count outputs and sum losses in each (class, bias class) cell: all that most metrics need to know."""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from study.data.dataset import Facts


def log_loss_of_samples(scores: Tensor, target: Tensor) -> Tensor:
    """Compute -log p of each sample's class from its scores (N, Y), float64 (N,); without a class, that of class 0."""
    return -scores.double().log_softmax(1).gather(1, target.clamp(min=0)[:, None])[:, 0]


CELL_PRIOR_SAMPLES = 10.0
"""k: for a cell, what is expected of it counts as much as so many samples of its own."""

CLASS_PRIOR_SAMPLES = 1.0
"""For what sets a class apart, that nothing does counts as much as so many samples of the class."""


@dataclass(frozen=True)
class CellStatistics:
    """Cells of a split, with what their samples score: 1 for a right and 0 for a wrong prediction, or a loss.

    The mean of a small cell is shrunk towards what is expected of it, its prior, by a mixed model (Robinson,
    Statistical Science 1991): a cell's mean is that of its kind, a fixed effect, plus what sets its class apart and
    what sets the cell apart, two random effects. So a class of few samples counts as one, though each of its cells has
    next to none. The kinds of cells are the conflicting and the aligned ones; where no bias class has a class of its
    own, the cells of one class are a kind. For the error of an accuracy the cells around a prior are taken as drawn
    from a beta distribution, so that right predictions are beta-binomial.

    Attributes:
        sums: over the samples of each cell, float64 (Y, S): number of right predictions, or sum of losses.
        samples: number of samples of each cell, float64 (Y, S).
        kind_of_cell: 1 for the cells of each kind, else 0, float64 (kinds, Y, S).
        squares: sums of the squares of losses, float64 (Y, S); None: for right predictions.
    """

    sums: Tensor
    samples: Tensor
    kind_of_cell: Tensor
    squares: Tensor | None = None

    @cached_property
    def shrunk_values(self) -> Tensor:
        """(sum + k prior) / (samples + k) of each cell, (Y, S): an empty one has its prior."""
        return (self.sums + CELL_PRIOR_SAMPLES * self._prior_of_cells) / (self.samples + CELL_PRIOR_SAMPLES)

    @cached_property
    def variance_of_shrunk_values(self) -> Tensor:
        """Variance of the shrunk value of each cell, (Y, S): of the cell's own value, and of its prior."""
        effects = self._mixed_model_effects
        inverse, pull = effects.covariance, effects.pull
        of_class = (pull @ inverse * pull).sum(1) + 1 / effects.class_weights
        of_prior = inverse.diagonal()[:, None] - 2 * (pull @ inverse).T + of_class  # (kinds, Y)
        spread = (self.kind_of_cell * of_prior[..., None]).sum(0)
        return self._variance_at_known_prior + self._scale_of_prior.square() * spread

    @cached_property
    def variance_of_shrunk_mean(self) -> Tensor:
        """Variance of the mean of `shrunk_values`, a scalar: cells share the effects of kinds and classes."""
        effects, of_classes = self._mixed_model_effects, self._scale_of_prior.sum(1)
        of_kinds = (self.kind_of_cell * self._scale_of_prior).sum((1, 2)) - of_classes @ effects.pull
        of_priors = of_kinds @ effects.covariance @ of_kinds
        of_priors = of_priors + (of_classes.square() / effects.class_weights).sum()
        return (self._variance_at_known_prior.sum() + of_priors) / self.samples.numel() ** 2

    @cached_property
    def _mixed_model_effects(self) -> "_MixedModelEffects":
        """Solution of the mixed model.

        A cell's mean weighs samples / (samples + k), inversely to the variance that it has around its prior: among tiny
        cells a kind's effect is the mean of all their samples, among large ones the mean over cells. That of a kind
        whose cells are all empty is the mean of all samples, as if there were one of it.
        """
        share = 1 / (self.samples + CELL_PRIOR_SAMPLES)
        weights = (self.kind_of_cell * (self.samples * share)).sum(2)  # (kinds, Y)
        sums = (self.kind_of_cell * (self.sums * share)).sum(2)
        class_weights = weights.sum(0) + CLASS_PRIOR_SAMPLES / CELL_PRIOR_SAMPLES
        pull = (weights / class_weights).T  # of a kind's effect on that of each class, (Y, kinds)
        without = (weights.sum(1) == 0) / CELL_PRIOR_SAMPLES
        matrix = torch.diag(weights.sum(1) + without) - weights @ pull
        overall = self.sums.sum() / self.samples.sum()
        covariance = torch.linalg.inv_ex(matrix).inverse
        of_kinds = covariance @ (sums.sum(1) - sums.sum(0) @ pull + without * overall)
        of_classes = sums.sum(0) / class_weights - pull @ of_kinds
        return _MixedModelEffects(of_kinds, of_classes, covariance, pull, class_weights)

    @cached_property
    def _prior_of_cells(self) -> Tensor:
        """What is expected of each cell, (Y, S): no share below 0 or above 1, and no loss below 0."""
        effects = self._mixed_model_effects
        prior = self._broadcast_kinds_to_cells(effects.kind_effects) + effects.class_effects[:, None]
        return prior.clamp(min=0.0, max=1.0 if self.squares is None else None)

    @cached_property
    def _cautious_prior_of_cells(self) -> Tensor:
        """The prior, (Y, S), as if its kind had one more sample, half right: 0 of 2 right does not make 0 certain."""
        samples = self._broadcast_kinds_to_cells((self.kind_of_cell * self.samples).sum((1, 2)))
        return (samples * self._prior_of_cells + 0.5) / (samples + 1)

    @cached_property
    def loss_variance_by_kind(self) -> Tensor:
        """Variance of a sample's loss around the prior of its cell, (kinds,).

        As if one sample more of each kind were off by the kind's effect, so that two equal losses do not make equality
        certain.
        """
        assert self.squares is not None
        off = self.squares - 2 * self._prior_of_cells * self.sums + self.samples * self._prior_of_cells.square()
        samples, off = ((self.kind_of_cell * of).sum((1, 2)) for of in (self.samples, off))
        return (off + self._mixed_model_effects.kind_effects.square()) / samples.clamp(min=1)

    @cached_property
    def _variance_at_known_prior(self) -> Tensor:
        """Variance of each cell's value around its shrunk one if the prior were known, (Y, S)."""
        if self.squares is not None:
            return self._broadcast_kinds_to_cells(self.loss_variance_by_kind) / (self.samples + CELL_PRIOR_SAMPLES)
        value = (self.sums + CELL_PRIOR_SAMPLES * self._cautious_prior_of_cells) / (self.samples + CELL_PRIOR_SAMPLES)
        return value * (1 - value) / (self.samples + CELL_PRIOR_SAMPLES + 1)

    @cached_property
    def _scale_of_prior(self) -> Tensor:
        """By how much a cell's value is off where its prior is off by its standard deviation in the model, (Y, S)."""
        if self.squares is not None:
            variance = self._broadcast_kinds_to_cells(self.loss_variance_by_kind) / CELL_PRIOR_SAMPLES
        else:
            variance = self._cautious_prior_of_cells * (1 - self._cautious_prior_of_cells) / (CELL_PRIOR_SAMPLES + 1)
        return variance.sqrt() * CELL_PRIOR_SAMPLES / (self.samples + CELL_PRIOR_SAMPLES)

    def _broadcast_kinds_to_cells(self, of_kinds: Tensor) -> Tensor:
        """Give each cell the value of its kind, (kinds,) to (Y, S)."""
        return (of_kinds[:, None, None] * self.kind_of_cell).sum(0)


class _MixedModelEffects(NamedTuple):
    """Effects of kinds and classes on a cell's mean, and how sure they are.

    Attributes:
        kind_effects: the fixed effect of each kind, (kinds,).
        class_effects: the random effect of each class, (Y,).
        covariance: of the errors of the kinds' effects, in variances of a cell around its prior, (kinds, kinds).
        pull: by how much less the effect of a class is where a kind's is 1 more, (Y, kinds).
        class_weights: inverse of the variance of each class's effect where those of the kinds are known, (Y,).
    """

    kind_effects: Tensor
    class_effects: Tensor
    covariance: Tensor
    pull: Tensor
    class_weights: Tensor


@cache  # no copy to the device at each evaluation, which would wait for it
def kinds_of_cells(facts: Facts, device: torch.device) -> Tensor:
    """Return the kinds of a data set's cells as `CellStatistics.kind_of_cell` has them."""
    classes, groups = facts.classes, facts.bias_classes or 0
    if (aligned := facts.aligned_cells) is not None:
        own = torch.tensor(aligned).double()[:, :groups]
        found = torch.stack([1 - own, own])
    else:
        found = torch.eye(classes, dtype=torch.float64)[..., None].expand(classes, classes, groups)
    return found.to(device)


@dataclass(frozen=True)
class PredictionCounts:
    """Samples of a split, counted once, on their device and without a sync.

    Attributes:
        output_counts: samples, float64 (classes Y, bias classes S + 1, outputs Y). The last bias column holds the
            samples whose bias label is unknown: they count for every metric that needs no bias label.
        kind_of_cell: the kinds of cells, see `CellStatistics`.
        loss_sums: log losses of the samples of each class and bias column, and their squares, summed, float64 (2, Y,
            S + 1); None without scores.
    """

    output_counts: Tensor
    kind_of_cell: Tensor
    loss_sums: Tensor | None = None

    @classmethod
    def from_predictions(
        cls, prediction: Tensor, target: Tensor, bias: Tensor | None, facts: Facts, scores: Tensor | None = None
    ) -> "PredictionCounts":
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
            log_loss = log_loss_of_samples(scores, target)
            of_samples = torch.stack([log_loss, log_loss.square()]).where(known, 0.0)
            none = of_samples.new_zeros(2, classes * columns)
            lost = none.index_add(1, group, of_samples).view(2, classes, columns)
        return cls(table.double(), kinds_of_cells(facts, target.device), lost)

    @cached_property
    def counts_by_group(self) -> Tensor:
        """Samples with a bias label, (Y, S, outputs)."""
        return self.output_counts[:, :-1]

    @cached_property
    def group_accuracy(self) -> Tensor:
        """Accuracy of each (class, bias class) cell, (Y, S), NaN for empty ones."""
        return self.counts_by_group.diagonal(dim1=0, dim2=2).T / self.counts_by_group.sum(2)

    @cached_property
    def accuracy_statistics(self) -> CellStatistics:
        """(class, bias class) cells of right predictions."""
        right, samples = self.counts_by_group.diagonal(dim1=0, dim2=2).T, self.counts_by_group.sum(2)
        return CellStatistics(right, samples, self.kind_of_cell)

    @cached_property
    def log_loss_statistics(self) -> CellStatistics:
        """(class, bias class) cells of log losses; only for counts with scores."""
        assert self.loss_sums is not None
        sums, squares = self.loss_sums[..., :-1]
        return CellStatistics(sums, self.counts_by_group.sum(2), self.kind_of_cell, squares)

    @cached_property
    def log_loss_statistics_by_class(self) -> CellStatistics:
        """Log losses of all samples by class, as cells of one bias class, (Y, 1), each of its own kind."""
        assert self.loss_sums is not None
        sums, squares = self.loss_sums.sum(2, keepdim=True)
        kinds = torch.eye(len(sums), dtype=sums.dtype, device=sums.device)[..., None]
        return CellStatistics(sums, self.counts_by_class.sum(1, keepdim=True), kinds, squares)

    @cached_property
    def counts_by_class(self) -> Tensor:
        """All samples, (Y, outputs)."""
        return self.output_counts.sum(1)

    @cached_property
    def class_accuracy(self) -> Tensor:
        """Accuracy of each class, its recall, (Y,), NaN for empty ones."""
        return self.counts_by_class.diagonal() / self.counts_by_class.sum(1)

    @cached_property
    def aligned_mask(self) -> Tensor:
        """1 where the bias class is one of the class's own, else 0, (Y, S); only for data where that is known."""
        return self.kind_of_cell[1]

    def accuracy_in_cells(self, cells: Tensor) -> Tensor:
        """Compute the accuracy in the cells where (Y, S) holds 1, NaN if they are empty."""
        return (self.accuracy_statistics.sums * cells).sum() / (self.accuracy_statistics.samples * cells).sum()


def min_without_nan(values: Tensor) -> Tensor:
    """Return the smallest value that is not NaN; NaN where there is none."""
    least = values.nan_to_num(nan=torch.inf).amin()
    return torch.where(least.isinf(), torch.nan, least)


def range_without_nan(values: Tensor) -> Tensor:
    """Return the largest difference along the first dimension without NaN; NaN where fewer than two values are left."""
    high, low = values.nan_to_num(nan=-torch.inf).amax(0), values.nan_to_num(nan=torch.inf).amin(0)
    return torch.where((~values.isnan()).sum(0) > 1, high - low, torch.nan)
