"""Networks by name: each is one module with a dataclass `Options` and `build(options, facts)`.

`build` gives an `Encoder`; `network` puts the projection head of the same section on it.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from study import catalogue
from study.data.dataset import Facts
from study.knobs import Knob, knobs
from study.models.encoder import Encoder
from study.models.head import HeadOptions, Network

HEAD = {field.name for field in fields(HeadOptions)}

__all__ = ["Encoder", "Network", "build", "model_knobs", "names", "network"]


def names() -> list[str]:
    """Every network that `model.name` may name."""
    return list(catalogue.modules("study.models", "Options"))


def model_knobs(name: str) -> list[Knob]:
    """The keys of a `model` section with this name: the encoder's own and those of the head."""
    return [*knobs(catalogue.modules("study.models", "Options")[name].Options), *knobs(HeadOptions)]


def build(model: Mapping[str, Any], facts: Facts) -> Encoder:
    """The encoder of a `model` section for a data set, freshly initialised from torch's generator."""
    module = catalogue.modules("study.models", "Options")[model["name"]]
    options = module.Options(**{key: value for key, value in model.items() if key not in {"name", *HEAD}})
    encoder: Encoder = module.build(options, facts)
    return encoder


def network(model: Mapping[str, Any], facts: Facts) -> Network:
    """The encoder of a `model` section with its projection head."""
    return Network(build(model, facts), HeadOptions(**{key: model[key] for key in HEAD if key in model}))
