"""Classifiers of frozen features, by name: what a trained encoder is judged by.

Each is one module with a dataclass `Options` and a function

    fit(features, target, classes, seed, options) -> Classifier

features: float (N, F), as the encoder gives them; target: int64 (N,), samples of -1 are left out; the result maps
features (M, F) to scores (M, classes), the highest for the predicted class. Both are on the features' device.
`ridge` beside them predicts a continuous attribute and is not a classifier.
"""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from study import catalogue
from study.errors import UserError
from study.knobs import Knob, knobs

Classifier = Callable[[Tensor], Tensor]

__all__ = ["Classifier", "fit", "names", "probe_knobs"]


def names() -> list[str]:
    """Every classifier there is."""
    return list(catalogue.modules(__name__, "Options"))


def probe_knobs(name: str) -> list[Knob]:
    """The options of the classifier of this name."""
    return list(knobs(catalogue.modules(__name__, "Options")[name].Options))


def fit(
    name: str,
    features: Tensor,
    target: Tensor,
    classes: int,
    seed: int,
    options: Mapping[str, Any] | None = None,
) -> Classifier:
    """The classifier of this name, fitted to features (N, F) and classes (N,); options left out have their defaults.

    Raises:
        UserError: no sample has a class.
    """
    module = catalogue.modules(__name__, "Options")[name]
    classifier: Classifier = module.fit(features, target, classes, seed, module.Options(**(options or {})))
    return classifier


def labelled(features: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Features (n, F), float32 without a gradient, and classes (n,) of the samples whose class is known.

    Raises:
        UserError: there is none.
    """
    known = target >= 0
    if not known.any():
        raise UserError(
            f"none of {len(target)} samples has a class, so that no classifier can be fitted to their features: "
            "name a target, or a split that has one"
        )
    return features.detach()[known].float(), target[known]
