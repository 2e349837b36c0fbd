"""Thresholds of classes: a number that is added to each class's score, fitted to the validation split.

As `train.thresholds` says. Other than those of `study.training.postprocess` they ask for nobody's group, draw nothing,
and are a part of the model: whatever its scores are asked for has them.
"""

import torch
from torch import Tensor, nn

from study.data import holdout
from study.data.dataset import Facts
from study.training.counts import Counts

RIDGE = 1e-3
"""Weight of the mean square of the offsets: with it that of a class without samples is 0, not endless."""

STEPS, SEED = 100, 0


class ClassOffsets(nn.Module):
    """What is added to the scores of each class, (classes,); 0 before it is fitted."""

    values: Tensor

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.register_buffer("values", torch.zeros(classes))

    def forward(self, scores: Tensor) -> Tensor:
        """Scores (N, classes) with the offsets."""
        return scores + self.values

    def fit(self, scores: Tensor, target: Tensor, bias: Tensor | None, facts: Facts) -> Tensor:
        """Take the offsets that fit all of a split.

        Args:
            scores: as the networks give them, (N, classes).
            target, bias: of the samples, (N,), -1 where unknown; see `Counts.of`.

        Returns:
            The scores to judge by, (N, classes): those of each half with offsets that were fitted to the other.
        """
        plain, labels, groups = scores.detach().double().cpu(), target.cpu(), None if bias is None else bias.cpu()
        cells = labels if groups is None else labels * (int(groups.max()) + 2) + groups
        added = torch.empty_like(plain)
        halves = [torch.from_numpy(half) for half in holdout.stratified(cells.numpy(), 0.5, SEED)]
        for own, other in (halves, halves[::-1]):
            of_other = None if groups is None else groups[other]
            added[own] = fitted(plain[other], labels[other], of_other, facts)
        self.values.copy_(fitted(plain, labels, groups, facts))
        return scores + added.to(scores)


def fitted(scores: Tensor, target: Tensor, bias: Tensor | None, facts: Facts) -> Tensor:
    """The offsets (classes,) with which the log loss of all cells of class and bias alike is least, small cells shrunk
    (see `Cells`); without bias labels that of all classes alike. It is convex; 0 without a sample that has a class.

    Fitted to the share of right predictions they were worse on held-back rows than none (`search_values.py`).
    """
    offsets = torch.zeros(scores.shape[1], dtype=torch.float64, requires_grad=True)
    if not (target >= 0).any():
        return offsets.detach()
    optimizer = torch.optim.LBFGS([offsets], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        counts = Counts.of(scores.argmax(1), target, bias, facts, scores + offsets)
        cells = counts.losses if facts.bias_classes and bias is not None else counts.losses_of_classes
        value = cells.shrunk.mean() + RIDGE * offsets.square().mean()
        value.backward()
        return value

    with torch.enable_grad():
        optimizer.step(loss)
    return offsets.detach()
