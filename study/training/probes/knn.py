"""knn: the nearest training samples by cosine vote, the nearer the more (DCL and HCL's evaluation)."""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor
from torch.nn.functional import normalize
from typing_extensions import Doc

from study.knobs import Range
from study.training.probes import Classifier, labelled

CHUNK = 2**24
"""Similarities held at a time: 64 MiB."""


@dataclass(frozen=True)
class Options:
    """Options of this classifier."""

    neighbours: Annotated[int, Range(low=1), Doc("training samples that vote, at most all there are")] = 200
    temperature: Annotated[float, Range(above=0.0), Doc("temperature of their votes e^(cosine / temperature)")] = 0.5


def fit(features: Tensor, target: Tensor, classes: int, seed: int, options: Options = Options()) -> Classifier:
    """Remember the samples; `seed` is not needed. Scores are each class's share of the votes, and sum to one."""
    del seed
    rows, labels = labelled(features, target)
    bank = normalize(rows, dim=1).T.contiguous()
    neighbours = min(options.neighbours, len(labels))

    @torch.no_grad()
    def votes(queries: Tensor) -> Tensor:
        cosine, nearest = (normalize(queries.float(), dim=1) @ bank).topk(neighbours, dim=1)
        # less the largest: no temperature makes a vote infinite; in float64: the order of the sum does not matter
        weight = ((cosine - cosine[:, :1]).double() / options.temperature).exp()
        counted = weight.new_zeros(len(queries), classes).scatter_add_(1, labels[nearest], weight)
        return (counted / weight.sum(1, keepdim=True)).float()

    return lambda features: torch.cat([votes(chunk) for chunk in features.split(max(1, CHUNK // len(labels)))])
