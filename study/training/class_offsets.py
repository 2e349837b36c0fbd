"""Offsets of classes: a number that is added to each class's score, fitted to the validation split.

`train.thresholds` asks for them. Unlike those of `study.training.postprocess` they need no group labels, draw nothing,
and are a part of the model: its scores always include them.
"""

import torch
from torch import Tensor, nn

from study.data import holdout
from study.data.dataset import Facts
from study.training.counts import Counts

RIDGE = 1e-3
"""Weight of the mean square of the offsets: with it that of a class without samples is 0, not infinite."""

STEPS, SEED = 100, 0


class ClassOffsets(nn.Module):
    """Offsets added to the scores of the classes, (classes,); 0 before they are fitted."""

    values: Tensor

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.register_buffer("values", torch.zeros(classes))

    def forward(self, scores: Tensor) -> Tensor:
        """Add the offsets to scores (N, classes)."""
        return scores + self.values

    def fit(self, scores: Tensor, target: Tensor, bias: Tensor | None, facts: Facts) -> Tensor:
        """Fit the offsets to all of a split, and keep them.

        Args:
            scores: of the networks, (N, classes).
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
    """Fit the offsets (classes,) that minimise the mean log loss over all cells of class and bias class.

    Small cells are shrunk (see `Cells`); without bias labels, classes take the place of cells. The problem is convex;
    the offsets are 0 if no sample has a class. Offsets fitted to accuracy were worse on held-out rows than none
    (`search_values.py`).
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
