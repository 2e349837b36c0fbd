"""Every contrastive loss as a method: alone, or with a regulariser, a cross entropy, an adversary, or several."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from study.data.dataset import Facts
from study.knobs import Knob, Range, SearchRange, Section, read_knobs, value_or_default
from study.losses.loss_catalogue import losses_by_name, needs_two_views, parameter_names, required_tensor_names
from study.methods import debiasing
from study.methods.method_needs import MethodNeeds
from study.methods.sample_weights import balance_knobs

if TYPE_CHECKING:
    from study.methods.base_method import Method, NetworkFactory

BATCH_TENSOR_NAMES = {"target", "bias", "condition", "bias_features"}
"""Tensors that a batch can give to a loss."""

LOSSES_WITH_CLUSTERS = frozenset({"weakly_supervised_info_nce", "fair_info_nce"})
"""Losses whose `bias` is a cluster of the continuous attribute (CCL-K's baselines)."""

LOSSES_CONDITIONED_ON_FEATURES = frozenset({"hard_negative_cclk"})
"""Losses that condition on the representation itself (CCL-K section 3.4)."""

LOSSES_OF_TWO_ENCODERS = frozenset({"biased_triplet"})
"""Losses that only a method with two encoders uses."""

ViewCount = Annotated[int, Range(low=1, high=16)]


@dataclass(frozen=True)
class ContrastiveOptions:
    """Keys of a contrastive method besides those of its loss and of what acts against the bias.

    Attributes:
        positives: M of DCL: further views of each sample in its positive term.
        views: views of each sample in a batch.
        use_target: false: the loss without labels, on two views (FSCL-dagger, Eq. 26).
        clusters: k-means clusters of the continuous attribute, for losses that need classes.
        cross_entropy: cross entropy that is added, on a linear classifier of the features.
        ce_weight: weight of the added cross entropy.
    """

    positives: ViewCount = 1
    views: ViewCount = 1
    use_target: bool = True
    clusters: Annotated[int, Range(low=2), SearchRange(3, 20, paper=(10,))] = 10
    cross_entropy: Literal["none", "plain", "bias_balanced"] = "none"
    ce_weight: Annotated[float, Range(low=0.0)] = 1.0


def knobs(method: Section) -> Iterator[Knob]:
    """Yield the knobs of a `method` section that names a contrastive loss."""
    name, own = str(method["name"]), {knob.key: knob for knob in read_knobs(ContrastiveOptions)}
    yield from read_knobs(losses_by_name()[name])
    if "extra_positives" in parameter_names(name):
        yield own["positives"]
    if not needs_two_views(name):
        yield own["views"]
        if "target" in parameter_names(name) - required_tensor_names(name):
            yield own["use_target"]
    if name in LOSSES_WITH_CLUSTERS:
        yield own["clusters"]
    yield from debiasing.regulariser_knobs(method)
    yield own["cross_entropy"]
    if method.get("cross_entropy", "none") != "none":
        yield own["ce_weight"]
    yield from debiasing.adversary_knobs(method, has_stage=True)
    yield from balance_knobs(method)
    if using := _keys_that_ask_for_bias(method):
        needs_bias = "bias" in required_tensor_names(name)
        # whether all terms that use the bias can use the features of a bias-capturing model
        takes_features = set(using) <= {"regulariser", "name"} and method.get("regulariser") != "end" and not needs_bias
        yield from debiasing.bias_source_knobs(method, takes_features, takes_unknown=needs_bias)


def needs(method: Section) -> MethodNeeds:
    """Return what data such a method needs."""
    name, from_model = str(method["name"]), method.get("bias_source") == "model"
    using = _keys_that_ask_for_bias(method)
    keys_for_bias = [key for key in using if key not in ("regulariser", "name") or not from_model]
    takes_condition = "condition" in parameter_names(name) and name not in LOSSES_CONDITIONED_ON_FEATURES
    uses_target = method.get("use_target", True)
    pairs = "name" if needs_two_views(name) else None if uses_target else "use_target"
    asking = ["name"] if "target" in parameter_names(name) and uses_target else []
    asking += [key for key in ("regulariser", "cross_entropy") if method.get(key, "none") != "none"]
    asking += ["adversary"] if method.get("adversary") == "classifier" else []
    stage_epochs = debiasing.classifier_stage_epochs(method)
    return MethodNeeds(
        labels_key=next(iter(asking), None),
        bias_key=keys_for_bias[0] if keys_for_bias else None,
        condition_key="name" if takes_condition or name in LOSSES_WITH_CLUSTERS else None,
        views_key=pairs or ("views" if value_or_default(method, "views", 1) > 1 else None),
        varying_key="unknown_bias" if method.get("unknown_bias") == "sup_con" else None,
        receptive_field=debiasing.bias_model_receptive_field(method),
        min_epochs=("classifier_epochs", stage_epochs + 1) if stage_epochs else None,
        total_epochs_key="classifier_epochs" if stage_epochs else None,
    )


def _keys_that_ask_for_bias(method: Section) -> list[str]:
    """List the keys whose value asks for the bias, that of the loss last."""
    asked = {
        "regulariser": method.get("regulariser", debiasing.NO_REGULARISER) != debiasing.NO_REGULARISER,
        "adversary": method.get("adversary", "none") != "none",
        "cross_entropy": method.get("cross_entropy") == "bias_balanced",
        "name": method["name"] not in LOSSES_WITH_CLUSTERS
        and required_tensor_names(str(method["name"])) & {"bias", "bias_features"},
    }
    return [key for key, asks in asked.items() if asks]


__all__ = ["NAMES", "build", "knobs", "needs"]

NAMES = [
    name
    for name, loss in losses_by_name().items()
    if loss.__module__.startswith("study.losses.")
    and required_tensor_names(name) <= BATCH_TENSOR_NAMES
    and name not in LOSSES_OF_TWO_ENCODERS
]
"""Losses that this module makes methods of. A loss of another distribution is named by its own module, which may import
`knobs`, `needs` and `build` from here.
"""


def build(method: Section, facts: Facts, new_network: "NetworkFactory") -> "Method":
    """Build the method of a complete, checked `method` section."""
    from study.methods.contrastive_method import ContrastiveMethod

    return ContrastiveMethod(method, facts, new_network(), method["name"] in LOSSES_CONDITIONED_ON_FEATURES)
