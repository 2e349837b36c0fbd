"""Cross entropy on the classes, with a regulariser on the features or an adversary where wanted."""

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING

from study.data.dataset import Facts
from study.knobs import Knob, Section, read_knobs
from study.losses.loss_catalogue import classification_losses_by_name
from study.methods.debiasing import (
    NO_REGULARISER,
    adversary_knobs,
    bias_model_receptive_field,
    bias_source_knobs,
    regulariser_knobs,
)
from study.methods.method_needs import BALANCED_CROSS_ENTROPY, PLAIN_CROSS_ENTROPY, MethodNeeds
from study.methods.sample_weights import balance_knobs

if TYPE_CHECKING:
    from study.methods.base_method import Method, NetworkFactory

NAMES = [
    PLAIN_CROSS_ENTROPY,
    *(name for name, loss in classification_losses_by_name().items() if loss.__module__.startswith("study.losses.")),
]


def knobs(method: Section) -> Iterator[Knob]:
    """Yield the knobs of a `method` section that names a cross entropy."""
    loss = None if method["name"] == PLAIN_CROSS_ENTROPY else classification_losses_by_name()[str(method["name"])]
    if loss is not None:
        yield from read_knobs(loss)
    if loss is None or "weight" in inspect.signature(loss).parameters:
        yield from balance_knobs(method)
    yield from regulariser_knobs(method)
    yield from adversary_knobs(method, has_stage=False)
    if needs(method).bias_key or method.get("bias_source") == "model":
        adversary = method.get("adversary", "none") != "none"
        is_balanced, has_fair_kl = method["name"] == BALANCED_CROSS_ENTROPY, method.get("regulariser") == "fair_kl"
        takes_features = has_fair_kl and not is_balanced and not adversary
        yield from bias_source_knobs(method, takes_features, takes_unknown=False)


def needs(method: Section) -> MethodNeeds:
    """Return what data such a method needs."""
    if method["name"] == BALANCED_CROSS_ENTROPY:
        return MethodNeeds(labels_key="name", bias_key="name", varying_key=None)
    if method.get("regulariser", NO_REGULARISER) != NO_REGULARISER and method.get("bias_source") != "model":
        return MethodNeeds(labels_key="name", bias_key="regulariser", varying_key=None)
    adversary = "adversary" if method.get("adversary", "none") != "none" else None
    return MethodNeeds(
        labels_key="name", bias_key=adversary, varying_key=None, receptive_field=bias_model_receptive_field(method)
    )


def build(method: Section, facts: Facts, new_network: "NetworkFactory") -> "Method":
    """Build the method of a complete, checked `method` section."""
    from study.methods.classifier_methods import ClassifierMethod

    return ClassifierMethod(method, facts, new_network())
