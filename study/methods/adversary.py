"""A classifier of the bias that the encoder is trained against by gradient reversal (FSCL paper 4.5, its [38])."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import Doc

from study.knobs import Knob, Range, Searched, knobs, options
from study.methods.batch import UNKNOWN

ABOUT = (
    "classifier of the bias against which the encoder is trained, by gradient reversal: `representation`: beside the "
    "method's own loss; `classifier`, of a contrastive method: in a stage of its own, the last `classifier_epochs`"
)
"""What the key `adversary` means."""


@dataclass(frozen=True)
class AdversaryOptions:
    """Keys of an adversary."""

    adversary_weight: Annotated[
        float,
        Range(low=0.0),
        Searched(0.01, 0.1, log=True),
        Doc("weight of the reversed gradient"),
    ] = 0.1
    adversary_hidden: Annotated[int, Range(low=1), Doc("units of the adversary's one hidden layer")] = 128


@dataclass(frozen=True)
class Stage:
    """The key of a stage in which a classifier and an adversary train the encoder on."""

    classifier_epochs: Annotated[
        int,
        Range(low=1),
        Doc("number of last epochs that train the encoder with cross entropy and the adversary (FSCL Table 6)"),
    ] = 10


def adversary_knobs(method: Mapping[str, Any], has_stage: bool) -> list[Knob]:
    """The keys about an adversary of a `method` section; `has_stage`: it can have one in a stage of its own."""
    places = ("none", "representation", *(["classifier"] if has_stage else []))
    keys = [Knob("adversary", Literal[places], "none", False, ABOUT)]
    if method.get("adversary", "none") != "none":
        keys += knobs(AdversaryOptions)
    if method.get("adversary") == "classifier":
        keys += knobs(Stage)
    return keys


class Adversary(nn.Module):
    """Predicts the bias from features; what it learns goes reversed into the features.

    Args:
        features: their width.
        bias_classes: how many.
    """

    def __init__(self, features: int, bias_classes: int, settings: AdversaryOptions) -> None:
        super().__init__()
        self.weight, hidden = settings.adversary_weight, settings.adversary_hidden
        self.layers = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, bias_classes))

    def forward(self, features: Tensor, bias: Tensor) -> Tensor:
        """Cross entropy of predicting `bias` (B,) from `features` (B, F), a scalar; `UNKNOWN` ones do not count.

        The gradient into the features is reversed and multiplied by the weight; the adversary's own is not.
        """
        known = (bias != UNKNOWN).sum().clamp(min=1)
        logits = self.layers(reversed_gradient(features, self.weight))
        return functional.cross_entropy(logits, bias, ignore_index=UNKNOWN, reduction="sum") / known


def reversed_gradient(features: Tensor, weight: float) -> Tensor:
    """The features, bit for bit; their gradient times -weight."""
    still = features.detach()
    return still - weight * (features - still)


def stage_epochs(method: Mapping[str, Any]) -> int:
    """Return how many of the last epochs are a classifier stage; 0: there is none."""
    return options(Stage, method).classifier_epochs if method.get("adversary") == "classifier" else 0


def maybe_adversary(method: Mapping[str, Any], features: int, bias_classes: int | None) -> Adversary | None:
    """The adversary that a `method` section asks for, if it does."""
    if method.get("adversary", "none") == "none" or bias_classes is None:
        return None
    with torch.random.fork_rng(devices=[]):  # the encoder starts as it would without an adversary
        return Adversary(features, bias_classes, options(AdversaryOptions, method))
