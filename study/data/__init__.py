"""Data sets by name: each is one module with a dataclass `Options`, `describe(options)` and `load(options)`.

`describe` says what the data set has without reading it; `load` gives it as arrays.
"""

from collections.abc import Mapping
from typing import Any

from study import catalogue
from study.data.dataset import Dataset, Facts, Split
from study.knobs import Knob, knobs

__all__ = ["Dataset", "Facts", "Split", "data_knobs", "describe", "load", "names"]


def names() -> list[str]:
    """Every data set that `data.name` may name."""
    return list(catalogue.modules("study.data", "Options"))


def data_knobs(name: str) -> list[Knob]:
    """The keys of a `data` section with this name, besides it."""
    return list(knobs(catalogue.modules("study.data", "Options")[name].Options))


def describe(data: Mapping[str, Any]) -> Facts:
    """What the data set of a `data` section has."""
    module, options = _find(data)
    return module.describe(options)


def load(data: Mapping[str, Any]) -> Dataset:
    """The data set of a `data` section, as arrays in memory."""
    module, options = _find(data)
    return module.load(options)


def _find(data: Mapping[str, Any]) -> tuple[Any, Any]:
    module = catalogue.modules("study.data", "Options")[data["name"]]
    return module, module.Options(**{key: value for key, value in data.items() if key != "name"})
