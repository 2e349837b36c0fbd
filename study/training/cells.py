"""The accuracy of each (class, group) cell of a split, that of a small cell drawn to what cells like it have.

Empirical Bayes for shares (Morris, JASA 1983): the accuracies of cells that are alike are taken as drawn from a beta
distribution around their common mean, so that a cell's right predictions are beta-binomial. Cells are alike where
the group is not the class (conflicting), and where it is (aligned); all are where classes and groups do not correspond.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

SHRINKAGE = 10.0
"""k: as many samples of its likes count for a cell as if they were its own."""


@dataclass(frozen=True)
class Cells:
    """The cells of a split.

    Attributes:
        right: right predictions of each, float64 (Y, S).
        samples: samples of each, float64 (Y, S).
    """

    right: Tensor
    samples: Tensor

    @cached_property
    def shrunk(self) -> Tensor:
        """(right + k prior) / (samples + k) of each cell, (Y, S): an empty one has its prior."""
        return (self.right + SHRINKAGE * self._spread(self._prior)) / (self.samples + SHRINKAGE)

    @cached_property
    def cell_variance(self) -> Tensor:
        """Variance of what `shrunk` says of each cell, (Y, S): of the cell's own accuracy, and of its prior."""
        return self._own_variance + self._prior_share.square() * self._spread(self._prior_variance)

    @cached_property
    def mean_variance(self) -> Tensor:
        """Variance of the mean of `shrunk` over all cells, a scalar: cells that are alike share their prior's."""
        of_priors = ((self._alike * self._prior_share).sum((1, 2)).square() * self._prior_variance).sum()
        return (self._own_variance.sum() + of_priors) / self.samples.numel() ** 2

    @cached_property
    def _alike(self) -> Tensor:
        """Which cells are alike: 1 for the cells of each kind, else 0, (kinds, Y, S)."""
        classes, groups = self.samples.shape
        if classes != groups:
            return torch.ones_like(self.samples)[None]
        aligned = torch.eye(classes, dtype=self.samples.dtype, device=self.samples.device)
        return torch.stack([1 - aligned, aligned])

    @cached_property
    def _prior_share(self) -> Tensor:
        """How much of each cell's accuracy is its prior, (Y, S)."""
        return SHRINKAGE / (self.samples + SHRINKAGE)

    @cached_property
    def _weights(self) -> Tensor:
        """Sum over the cells of each kind of samples / (samples + k), (kinds,)."""
        return (self._alike * (self.samples / (self.samples + SHRINKAGE))).sum((1, 2))

    @cached_property
    def _prior(self) -> Tensor:
        """Mean accuracy of the cells of each kind, (kinds,); where all of them are empty, that of all samples.

        A cell weighs samples / (samples + k), inversely to the variance that it has around the common mean: among tiny
        cells this is the accuracy of all their samples, among large ones the mean over cells.
        """
        right = (self._alike * (self.right / (self.samples + SHRINKAGE))).sum((1, 2))
        return torch.where(self._weights > 0, right / self._weights, self.right.sum() / self.samples.sum())

    @cached_property
    def _cautious_prior(self) -> Tensor:
        """The prior as if one sample more were half right, so that none of two right does not say for certain none."""
        samples = (self._alike * self.samples).sum((1, 2))
        return (samples * self._prior + 0.5) / (samples + 1)

    @cached_property
    def _own_variance(self) -> Tensor:
        """Variance of each cell's accuracy around its own shrunk value if the prior were known, (Y, S)."""
        value = (self.right + SHRINKAGE * self._spread(self._cautious_prior)) / (self.samples + SHRINKAGE)
        return value * (1 - value) / (self.samples + SHRINKAGE + 1)

    @cached_property
    def _prior_variance(self) -> Tensor:
        """Variance of each kind's mean under the model, (kinds,); without any sample that of a single one."""
        prior = self._cautious_prior
        return prior * (1 - prior) / ((SHRINKAGE + 1) * self._weights).clamp(min=1)

    def _spread(self, of_kinds: Tensor) -> Tensor:
        """Each cell's value of its kind's, (kinds,) to (Y, S)."""
        return (of_kinds[:, None, None] * self._alike).sum(0)
