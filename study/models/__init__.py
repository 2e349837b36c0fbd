"""Networks by name: each is a row of `study.models.networks`, or a module of the same form.

It has a dataclass `Options` and two functions of `(options, facts)`: `why_unsuited` says why a data set does not suit
the network, or returns None; `build` builds an `Encoder`. Here, `build_network` adds the projection head of the
same section. Other distributions can add networks: see `study.catalogue`.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from study.catalogue import Catalogue, find_modules, lazy_getattr
from study.data.dataset import Facts
from study.errors import UserError
from study.knobs import Knob, read_knobs, to_options
from study.models.network_keys import HeadOptions, n_columns_before_features
from study.models.networks import NETWORKS

if TYPE_CHECKING:
    from study.models.encoder import Encoder, Network

__all__ = ["Encoder", "Network"]

__getattr__ = lazy_getattr({"Encoder": "study.models.encoder", "Network": "study.models.encoder"})


MODULES_WITH_TORCH = ("backbone_network", "efficientnet", "encoder", "frozen_networks", "small_networks")
"""Modules of this package that need PyTorch: they hold what is built, the others what a study file can say of it."""


def _builtin_networks() -> Mapping[str, Any]:
    return {**find_modules("study.models", "Options", MODULES_WITH_TORCH), **NETWORKS}


CATALOGUE = Catalogue("study.models", ("Options", "why_unsuited", "build"), "study.models", _builtin_networks)


def model_knobs(model: Mapping[str, Any]) -> dict[str, Knob]:
    """Return the keys of a `model` section besides `name`: the encoder's, and those of its head that take effect."""
    if model["name"] == CATALOGUE.name_for_own_function:
        return {}
    head = model.get("head", "none")
    without = {"none": {"head_hidden", "head_features", "head_norm"}, "linear": {"head_hidden"}}.get(str(head), set())
    without |= set() if model.get("frozen") else {"joined", "adapter", "adapter_width", "trained_stages"}
    without |= {"lr_factor"} if model.get("frozen") and not has_trained_stages(model) else set()
    without |= set() if model.get("adapter") else {"adapter_width"}
    own = read_knobs(CATALOGUE.find_module(model["name"]).Options)
    declared = {knob.key: knob for knob in (*own, *read_knobs(HeadOptions)) if knob.key not in without}
    if "stem" in declared and model.get("weights") is not None:
        declared["stem"] = replace(declared["stem"], default="imagenet")  # that of published weights
    return declared


def why_network_unsuited(model: Mapping[str, Any], facts: Facts) -> str | None:
    """Say why a data set does not suit the network of a `model` section, ready to show; None if it does."""
    problem = _why_unsuited_to_data(model, facts)
    if problem is None:
        return None
    # no code of others for a message
    others = [name for name in _builtin_networks() if _why_unsuited_to_data({"name": name}, facts) is None]
    if model["name"] in others:
        return f"{model['name']} {problem}"
    return f"{model['name']} {problem}. Networks for this data: {', '.join(others) or 'none'}"


def build_encoder_without_head(model: Mapping[str, Any], facts: Facts, loads_weights: bool = True) -> "Encoder":
    """Build the encoder of a `model` section for a data set, freshly initialised from torch's generator.

    Where the network is frozen it is what is trained on its rows of features (see `facts_of_network_inputs`).

    Args:
        loads_weights: load the weights that the section names, if it names any; False: the caller loads others.

    Raises:
        UserError: the network is not one for this data; or its weights are not there, or do not fit.
    """
    is_frozen = bool(model.get("frozen"))
    if not (is_frozen and facts.is_table) and (problem := why_network_unsuited(model, facts)) is not None:
        raise UserError(f"model.name: {problem}")
    if is_frozen:
        return _build_layers_on_frozen(model, facts_of_network_inputs(model, facts), loads_weights)
    module, own = _module_and_options(model)
    encoder: Encoder = module.build(own, facts)
    if loads_weights and model.get("weights") is not None:
        from study.models import initial_weights

        initial_weights.load_weights_into(encoder, model)  # networks that have this key are backbones
    return encoder


def has_trained_stages(model: Mapping[str, Any]) -> bool:
    """Tell whether trials train the last stages of the frozen network of a `model` section."""
    return bool(model.get("trained_stages", "none") != "none")


def facts_of_network_inputs(model: Mapping[str, Any], facts: Facts) -> Facts:
    """Return the facts of the data as the trained part sees them: rows of features where the network is frozen."""
    if not model.get("frozen") or facts.is_table:
        return facts
    from study.models import frozen_networks

    section = frozen_networks.underlying_network_section(model) | {"weights": None}
    return replace(facts, shape=(_feature_row_width(tuple(sorted(section.items())), facts.shape),), mean=0.0)


@cache
def _feature_row_width(section: tuple[tuple[str, Any], ...], shape: tuple[int, ...]) -> int:
    """Return the columns of a row of a network's features, including those before the last layer's."""
    import torch

    from study.models.backbone_network import Backbone, build_on_meta_device

    model = dict(section)
    network = build_on_meta_device(partial(build_encoder_without_head, model, Facts(2, None, shape)))
    if not has_trained_stages(model):
        return n_columns_before_features(model) + network.features
    assert isinstance(network, Backbone)  # no other network has the key
    return network.eval().feature_rows(torch.empty(1, *shape, device="meta")).shape[1]


DEFAULT_IMAGE_SHAPE = (3, 32, 32)
"""Shape of an image for which a network is built whose form does not depend on it."""


def facts_of_pooled_features(model: Mapping[str, Any], facts: Facts) -> Facts:
    """Return the facts of the last columns of a frozen network's rows: the maps of trained stages come first."""
    if not model.get("frozen") or not has_trained_stages(model):
        return facts
    without = facts_of_network_inputs({**model, "trained_stages": "none"}, Facts(2, None, DEFAULT_IMAGE_SHAPE))
    return replace(facts, shape=without.shape)


def _build_layers_on_frozen(model: Mapping[str, Any], facts: Facts, loads_weights: bool) -> "Encoder":
    """Build what is trained on a frozen network's features."""
    import torch

    from study.models.backbone_network import Backbone
    from study.models.frozen_networks import build_layers_on_frozen_network, underlying_network_section

    if not has_trained_stages(model):
        return build_layers_on_frozen_network(model, facts.shape[0] - n_columns_before_features(model), None)
    with torch.random.fork_rng(devices=[]):  # what is trained begins as it does without stages
        trunk = build_encoder_without_head(
            underlying_network_section(model), replace(facts, shape=DEFAULT_IMAGE_SHAPE), loads_weights
        )
    assert isinstance(trunk, Backbone)  # no other network has the key
    return build_layers_on_frozen_network(model, trunk.features, trunk)


def describe_weights(model: Mapping[str, Any]) -> dict[str, str] | None:
    """Return which weights a `model` section begins from: `name`, `file`, `sha256`; None: random ones.

    Raises:
        UserError: the file is not there (says how to get it), cannot be read, or is not the one that is published.
    """
    if model.get("weights") is None:
        return None
    from study.models import initial_weights

    return initial_weights.describe_weights_file(model)


def build_network(model: Mapping[str, Any], facts: Facts, loads_weights: bool = True) -> "Network":
    """Build the network of a `model` section with its projection head; else as `build_encoder_without_head`."""
    from study.models.encoder import Network

    return Network(build_encoder_without_head(model, facts, loads_weights), to_options(HeadOptions, model))


def _module_and_options(model: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the module of a `model` section and its options, those of the head left out."""
    module = CATALOGUE.find_module(model["name"])
    return module, to_options(module.Options, model)


def _why_unsuited_to_data(model: Mapping[str, Any], facts: Facts) -> str | None:
    if model.get("frozen") and model.get("weights") is None:
        return "cannot be frozen without model.weights: it would know nothing"
    module, own = _module_and_options(model)
    problem: str | None = module.why_unsuited(own, facts)
    return problem
