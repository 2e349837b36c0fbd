"""Networks by name: each is one module with a dataclass `Options` and `build(options, facts)`.

`build` gives an `Encoder`.
"""

from collections.abc import Mapping
from typing import Any

from study import catalogue
from study.data.dataset import Facts
from study.models.encoder import Encoder

__all__ = ["Encoder", "build", "names"]


def names() -> list[str]:
    """Every network that `model.name` may name."""
    return list(catalogue.modules("study.models", "Options"))


def build(model: Mapping[str, Any], facts: Facts) -> Encoder:
    """The encoder of a `model` section for a data set, freshly initialised from torch's generator."""
    module = catalogue.modules("study.models", "Options")[model["name"]]
    options = module.Options(**{key: value for key, value in model.items() if key != "name"})
    encoder: Encoder = module.build(options, facts)
    return encoder
