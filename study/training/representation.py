"""Measures of the features themselves: compactness and separation of groups, similarities.

Every function takes unit features (N, F) and labels (N,); a sample of which a label used is -1 is left out. Means of
cosines over pairs of groups come from sums of features, since the mean of products is the product of the sums; what
has no such form goes over all pairs in chunks, which costs N * N * F operations and little memory.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from study.data.dataset import Facts

CHUNK = 2**22
"""Similarities held at a time."""


def group_similarity(features: Tensor, target: Tensor, bias: Tensor, facts: Facts) -> Tensor:
    """Intra-group similarity of each (class, bias class) group (FSCL paper 4.7, Fig. 2), float64 (classes * S,).

    The mean cosine of two different samples of the group: its compactness. nan for groups of fewer than two.
    """
    return _within(*_group_sums(features, target, bias, facts))


def class_similarity(features: Tensor, target: Tensor, bias: Tensor, facts: Facts) -> Tensor:
    """Inter-class similarity of each (class, bias class) group (FSCL paper 4.7, Fig. 2), float64 (classes * S,).

    The mean cosine of a sample of the group and one of another class: the lower, the better separated. nan where there
    is no such pair.
    """
    sums, sizes = _group_sums(features, target, bias, facts)
    by_class = sums.view(facts.classes, -1, sums.shape[1]).sum(1)
    size = sizes.view(facts.classes, -1).sum(1)
    columns = len(sums) // facts.classes
    others = (by_class.sum(0) - by_class).repeat_interleave(columns, 0)
    return (sums * others).sum(1) / (sizes * (size.sum() - size).repeat_interleave(columns))


def spread(similarity: Tensor) -> Tensor:
    """Standard deviation over the groups of their similarities, scaled to sum to one (FSCL paper Fig. 2).

    Of the population: there are no further groups. nan groups do not count. Where similarities have both signs their
    sum may be near 0, and the spread says nothing.
    """
    share = similarity / similarity.nansum()
    return (share - share.nanmean()).square().nanmean().sqrt()


def similarity_histogram(features: Tensor, target: Tensor, bias: Tensor, bins: int = 50) -> Tensor:
    """Return how the cosines of pairs of samples are distributed (FairKL paper C.2, Fig. 5), counts, int64 (2, 2,
    bins).

    Indices: 0 positive (of one class), 1 negative; 0 aligned (of one bias class), 1 conflicting; the bin of equal
    width from -1 to 1. Each ordered pair of different samples counts.
    """
    labelled = (target >= 0) & (bias >= 0)
    features, target, bias = features[labelled], target[labelled], bias[labelled]
    counts = torch.zeros(4 * bins, dtype=torch.int64, device=features.device)
    for rows, cosine in _cosines(features):
        kind = 2 * (target[rows, None] != target) + (bias[rows, None] != bias)
        kind.scatter_(1, rows[:, None], 4)  # a sample with itself
        place = ((cosine + 1) * (bins / 2)).long().clamp_(0, bins - 1)
        counts += (kind * bins + place).flatten().bincount(minlength=5 * bins)[: 4 * bins]
    return counts.view(2, 2, bins)


def _cosines(features: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """For every row, in chunks: indices (n,) of the rows and their cosines with all, (n, N)."""
    columns = features.T.contiguous()
    for rows in torch.arange(len(features), device=features.device).split(max(1, CHUNK // max(1, len(features)))):
        yield rows, features[rows] @ columns


def _group_sums(features: Tensor, target: Tensor, bias: Tensor, facts: Facts) -> tuple[Tensor, Tensor]:
    labelled = (target >= 0) & (bias >= 0)
    groups = facts.bias_classes or 1
    return _sums(features[labelled], target[labelled] * groups + bias[labelled], facts.classes * groups)


def _sums(features: Tensor, group: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """Sum of the features (groups, F) and number of the samples (groups,) of each group, float64."""
    sums = torch.zeros(groups, features.shape[1], dtype=torch.float64, device=features.device)
    return sums.index_add_(0, group, features.double()), group.bincount(minlength=groups).double()


def _within(sums: Tensor, sizes: Tensor) -> Tensor:
    """Mean cosine of two different members of each group (groups,)."""
    pairs = sizes * (sizes - 1)
    return torch.where(pairs > 0, (sums.square().sum(1) - sizes) / pairs, torch.nan)
