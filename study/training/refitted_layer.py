"""A last layer that is fitted anew to the features of the training samples, cells of class and bias weighing alike.

A network that learned a bias may still have features of the class, which its own last layer uses too little (Kirichenko
et al. 2023, "Last layer re-training is sufficient for robustness to spurious correlations"). They fit to a part of the
samples with as many of each cell; here all are used, and weighed.
"""

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, normalize

from study.methods import Labels
from study.methods.balance import weighed
from study.training.probes import lbfgs

STRENGTH = 100.0
"""Inverse of the penalty, as `C` of scikit-learn; of 1 and 100 the better on features of length 1."""

STEPS = 200


class RefittedLayer(nn.Module):
    """Logistic regression of normalised features (N, features): scores (N, classes); 0 before it is fitted."""

    weight: Tensor
    offset: Tensor

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.zeros(classes, features))
        self.register_buffer("offset", torch.zeros(classes))

    def forward(self, features: Tensor) -> Tensor:
        """Return the scores of features (N, F) of any length."""
        return linear(normalize(features.float(), dim=1), self.weight, self.offset)

    def fit(self, features: Tensor, labels: Labels) -> None:
        """Fit it to features (N, F) of samples with these labels; those without a class are left out."""
        is_known = labels.bias is not None
        plain = replace(labels, weight=None)
        weight = weighed(plain, {"cell_weights": float(is_known), "class_weights": float(not is_known)}).weight
        count, classes = int((labels.target >= 0).sum()), len(self.offset)
        l2 = 1 / (2 * STRENGTH * max(1, count))
        fitted = lbfgs(normalize(features.float(), dim=1), labels.target, classes, 0, l2, STEPS, weight)
        self.weight.copy_(fitted.weight)
        self.offset.copy_(fitted.offset)
