"""Infer bias from early layers of a frozen network: the class that a sample's bias goes with, without bias labels.

Early layers tell a frame, a texture or a tint from others, but not an object. So a linear classifier of their
features, trained on the classes, learns the bias where the training split has a strong one of that kind, see
`tests/benchmarks/results/photographs.md`. It does not find a bias that early layers cannot see, such as a place.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from study import models
from study.data.dataset import Dataset
from study.knobs import Section
from study.models.network_keys import early_layers_width
from study.training import probes

CROSS_PREDICTION_PARTS = 3
"""Parts of the training split: each is predicted by a classifier that was trained on the others."""

L2_OF_EARLY_LAYERS, L2_OF_ALL_LAYERS = 0.02, 0.5
"""Penalties of the classifiers of standardised features: of early layers; of all layers, over the number of classes."""

MIN_KAPPA_RATIO_TO_ALL_LAYERS = 0.75
"""Early layers count as seeing a bias from this share on of what all layers tell of the classes beyond chance: an
object is told far better by all layers. On folders of photographs with a frame, a texture or a tint it was 0.89 to 1,
on those without a bias or with a mark in a corner 0.52 to 0.65. Of aeroplanes and frogs alone it was 0.9: a bias that
is not there cost 0.4 points of accuracy (`tests/benchmarks/results/photographs.md`)."""

MAX_CLASSIFIER_SAMPLES = 20000
"""Samples that a classifier is trained on: more change 40 or 256 weights a class by little."""


def infer_bias_classes(model: Section, dataset: Dataset, split: str, device: torch.device) -> Tensor:
    """Return the class that early layers give each sample of a split, (N,); 0 for all where these layers see no bias.

    They see none where they tell the classes of the training split far worse than all layers do
    (`MIN_KAPPA_RATIO_TO_ALL_LAYERS`).

    Args:
        model: the section of the frozen network.
        dataset: rows of its features.
    """
    columns, train = early_layers_width(model), dataset.splits["train"]
    width = models.facts_of_pooled_features(model, dataset.facts).shape[0]
    inputs = train.sample_inputs[:, -width:]
    rows, target = _float_tensor(inputs[:, :columns], device), torch.from_numpy(train.target).to(device)
    centre, scale = rows.mean(0), rows.std(0).clamp(min=1e-6)
    number = dataset.facts.classes

    def early(chosen: Tensor) -> probes.ProbeClassifier:
        return probes.fit_lbfgs_probe((rows[chosen] - centre) / scale, target[chosen], number, 0, l2=L2_OF_EARLY_LAYERS)

    found = _cross_predict_classes(early, (rows - centre) / scale, target)
    of_all = _cross_predict_classes(*_ridge_of_all_layers(inputs, target, number), target)
    if _cohens_kappa(found, target) <= MIN_KAPPA_RATIO_TO_ALL_LAYERS * max(0.0, _cohens_kappa(of_all, target)):
        return torch.zeros(len(dataset.splits[split]), dtype=torch.long, device=device)
    if split == "train":
        return found
    queries = _float_tensor(dataset.splits[split].sample_inputs[:, -width:][:, :columns], device)
    return early(_limit_samples(torch.arange(len(rows), device=device)))((queries - centre) / scale).argmax(1)


def _cohens_kappa(found: Tensor, target: Tensor) -> float:
    """Return Cohen's kappa for classes found as often as there are: 0 by chance, 1 without an error."""
    by_chance = (torch.bincount(target) / len(target)).square().sum()
    return float(1 - (found != target).float().mean() / (1 - by_chance).clamp(min=1e-6))


def _ridge_of_all_layers(
    inputs: NDArray[np.generic], target: Tensor, number: int
) -> tuple[Callable[[Tensor], probes.ProbeClassifier], Tensor]:
    """Return a function that fits a ridge regression of classes to all features of some samples, and the features."""
    rows = _float_tensor(inputs, target.device)
    rows = (rows - rows.mean(0)) / rows.std(0).clamp(min=1e-6)
    wanted = one_hot(target, number).float()
    return lambda chosen: probes.fit_ridge_probe(rows[chosen], wanted[chosen], l2=L2_OF_ALL_LAYERS / number), rows


def _cross_predict_classes(fitted: Callable[[Tensor], probes.ProbeClassifier], rows: Tensor, target: Tensor) -> Tensor:
    """Predict the class of each sample, (N,), by a classifier that was fitted to the samples of the other parts."""
    part, found = torch.arange(len(rows), device=rows.device) % CROSS_PREDICTION_PARTS, torch.zeros_like(target)
    for number in range(min(CROSS_PREDICTION_PARTS, len(rows))):
        mine, others = part == number, (part != number).nonzero()[:, 0]
        if len(others):
            found[mine] = fitted(_limit_samples(others))(rows[mine]).argmax(1)
    return found


def _limit_samples(chosen: Tensor) -> Tensor:
    return chosen[:: -(-len(chosen) // MAX_CLASSIFIER_SAMPLES)]


def _float_tensor(rows: NDArray[np.generic], device: torch.device) -> Tensor:
    return torch.from_numpy(rows.astype("float32")).to(device)
