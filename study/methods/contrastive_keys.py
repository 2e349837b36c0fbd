"""The keys of a method that is a contrastive loss, and what data it needs."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

from typing_extensions import Doc

from study.knobs import Knob, Range, Searched, knobs
from study.losses.catalogue import losses, needs_two_views
from study.methods.adversary import adversary_knobs, stage_epochs
from study.methods.bias_source import patch, source_knobs
from study.methods.needs import Needs
from study.methods.regularised import NO_REGULARISER, regulariser_knobs

OF_A_BATCH = {"target", "bias", "condition", "bias_features"}
"""The tensors that a batch can give to a loss."""

CLUSTERED = frozenset({"weakly_supervised_info_nce", "fair_info_nce"})
"""Losses whose `bias` is a cluster of the continuous attribute (CCL-K's baselines)."""

REPRESENTATION_AS_CONDITION = frozenset({"hard_negative_cclk"})
"""Losses that condition on the representation itself (CCL-K section 3.4)."""

HALF_A_METHOD = frozenset({"biased_triplet"})
"""Losses that only a method with two encoders uses."""

Count = Annotated[int, Range(low=1, high=16)]


@dataclass(frozen=True)
class Views:
    """The key of a loss that takes any number of views."""

    views: Annotated[Count, Doc("views of each sample in a batch")] = 1


@dataclass(frozen=True)
class MorePositives:
    """The key of a loss that takes further positives."""

    positives: Annotated[
        Count, Doc("M of DCL: further views of each sample for its positive term; 1: the other view alone")
    ] = 1


@dataclass(frozen=True)
class OptionalTarget:
    """The key of a loss that can do without classes."""

    use_target: Annotated[
        bool, Doc("false: the loss without labels, on two views (FSCL-dagger, FSCL paper Eq. 26)")
    ] = True


@dataclass(frozen=True)
class Clusters:
    """The key of a loss in `CLUSTERED`."""

    clusters: Annotated[
        int,
        Range(low=2),
        Searched(3, 20, paper=(10,)),
        Doc("clusters of k-means on the continuous attribute, where a loss needs classes (3 to 20 in CCL-K Table 8)"),
    ] = 10


@dataclass(frozen=True)
class CrossEntropy:
    """The key that adds a cross entropy."""

    cross_entropy: Annotated[
        Literal["none", "plain", "bias_balanced"],
        Doc("cross entropy that is added, on a linear classifier of the features (BiasCon + CE, BiasCon + BiasBal)"),
    ] = "none"


@dataclass(frozen=True)
class CrossEntropyWeight:
    """The key of a method with an added cross entropy."""

    ce_weight: Annotated[float, Range(low=0.0), Doc("weight of the added cross entropy")] = 1.0


@cache
def parameters(name: str) -> frozenset[str]:
    """The names of all that a loss takes."""
    return frozenset(inspect.signature(losses()[name]).parameters)


@cache
def required(name: str) -> frozenset[str]:
    """The tensors that a loss cannot do without, its first argument aside."""
    _, *others = inspect.signature(losses()[name]).parameters.values()
    return frozenset(parameter.name for parameter in others if parameter.default is parameter.empty)


def keys(method: Mapping[str, Any]) -> Iterator[Knob]:
    """The keys of a `method` section that names a contrastive loss."""
    name = method["name"]
    yield from knobs(losses()[name])
    if "extra_positives" in parameters(name):
        yield from knobs(MorePositives)
    if not needs_two_views(name):
        yield from knobs(Views)
        if "target" in parameters(name) - required(name):
            yield from knobs(OptionalTarget)
    if name in CLUSTERED:
        yield from knobs(Clusters)
    yield from regulariser_knobs(method)
    yield from knobs(CrossEntropy)
    if method.get("cross_entropy", "none") != "none":
        yield from knobs(CrossEntropyWeight)
    yield from adversary_knobs(method, has_stage=True)
    if uses_bias(method):
        yield from source_knobs(method, _takes_features(method), takes_unknown="bias" in required(name))


def uses_bias(method: Mapping[str, Any]) -> bool:
    """Whether such a method asks for the bias of the samples, from labels or from a model."""
    return _loss_uses_bias(method["name"]) or bool(_added_that_use_bias(method))


def needs(method: Mapping[str, Any]) -> Needs:
    """What data such a method needs."""
    name, from_model = method["name"], method.get("bias_source") == "model"
    keys_for_bias = [key for key in _added_that_use_bias(method) if key != "regulariser" or not from_model]
    if _loss_uses_bias(name) and not from_model:
        keys_for_bias.append("name")
    conditioned = "condition" in parameters(name)
    pairs = "name" if needs_two_views(name) else None if method.get("use_target", True) else "use_target"
    return Needs(
        labels=_asks_for_labels(method),
        bias=keys_for_bias[0] if keys_for_bias else None,
        condition="name" if name in CLUSTERED or (conditioned and name not in REPRESENTATION_AS_CONDITION) else None,
        views=pairs or ("views" if method.get("views", 1) > 1 else None),
        varies="unknown_bias" if method.get("unknown_bias") == "sup_con" else None,
        patch=patch(method),
        epochs=("classifier_epochs", stage_epochs(method) + 1) if stage_epochs(method) else None,
        total="classifier_epochs" if stage_epochs(method) else None,
    )


def view_count(method: Mapping[str, Any]) -> int:
    """How many views of a sample the loss itself takes, without those that are M's of DCL."""
    least = 2 if needs_two_views(method["name"]) or not method.get("use_target", True) else 1
    return least if needs_two_views(method["name"]) else max(least, int(method.get("views", 1)))


def _asks_for_labels(method: Mapping[str, Any]) -> str | None:
    """The key that makes the method look at classes."""
    by_loss = "target" in parameters(method["name"])
    added = [key for key in ("regulariser", "cross_entropy") if method.get(key, "none") != "none"]
    added += ["adversary"] if method.get("adversary") == "classifier" else []
    return "name" if by_loss and method.get("use_target", True) else next(iter(added), None)


def _loss_uses_bias(name: str) -> bool:
    return name not in CLUSTERED and bool(required(name) & {"bias", "bias_features"})


def _added_that_use_bias(method: Mapping[str, Any]) -> list[str]:
    """The keys whose value asks for the bias besides the loss."""
    asked = {
        "regulariser": method.get("regulariser", NO_REGULARISER) != NO_REGULARISER,
        "adversary": method.get("adversary", "none") != "none",
        "cross_entropy": method.get("cross_entropy") == "bias_balanced",
    }
    return [key for key, asks in asked.items() if asks]


def _takes_features(method: Mapping[str, Any]) -> bool:
    """Whether all of it that uses the bias can use the features of a bias-capturing model."""
    by_loss = "bias" not in required(method["name"])
    added = _added_that_use_bias(method)
    return by_loss and set(added) <= {"regulariser"} and method.get("regulariser") != "end"
