"""Methods by name: what a study file's `method` section trains.

Each kind is one module with `NAMES`, `knobs(method)`, `needs(method)` and `build(method, facts, new_network)`, or a row
of `study.methods.other_methods`. The keys of a method are those of the knobs that its kind yields for its section, and
no others: a key that has no effect is an error. Other distributions can add methods, an entry point for each name: see
`study.catalogue`.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from study.catalogue import Catalogue, find_modules, lazy_getattr
from study.data.dataset import Facts
from study.knobs import Knob, Section
from study.methods.method_needs import UNKNOWN_LABEL, MethodNeeds
from study.methods.other_methods import METHODS
from study.methods.own_function import OWN_FUNCTION_NAME

if TYPE_CHECKING:
    from study.methods.base_method import Batch, BatchLabels, Method, NetworkFactory

__all__ = ["OWN_FUNCTION_NAME", "UNKNOWN_LABEL", "Batch", "BatchLabels", "Method", "MethodNeeds"]
"""Names that this package passes on from its modules."""

__getattr__ = lazy_getattr(
    dict.fromkeys(("Batch", "BatchLabels", "Method", "NetworkFactory"), "study.methods.base_method")
)


MODULES_WITH_TORCH = ("base_method", "classifier_methods", "contrastive_method", "fitted_classifier", "two_networks")
"""Modules of this package that need PyTorch: they hold what is built, the others what a study file can say of it."""


@cache
def _builtin_methods() -> dict[str, Any]:
    kinds = find_modules("study.methods", "NAMES", MODULES_WITH_TORCH).values()
    return dict(sorted({**{name: module for module in kinds for name in module.NAMES}, **METHODS}.items()))


CATALOGUE = Catalogue("study.methods", ("NAMES", "knobs", "needs", "build"), "study.methods", _builtin_methods)


def method_names() -> list[str]:
    """List everything that `method.name` may name."""
    return CATALOGUE.listed_names()


def method_knobs(method: Section) -> dict[str, Knob]:
    """Return the keys of a `method` section besides `name`; which there are may depend on the values of others."""
    return {knob.key: knob for knob in CATALOGUE.find_module(str(method["name"])).knobs(method)}


def describe_method(name: str) -> str:
    """Describe a method in a line: from the docstring of the loss of its name, else of its module."""
    from study.losses.loss_catalogue import classification_losses_by_name, losses_by_name

    CATALOGUE.find_module(name)  # a loss of another distribution is known once its method is loaded
    function = {**losses_by_name(), **classification_losses_by_name()}.get(name)
    return CATALOGUE.description(name) if function is None else (function.__doc__ or "").partition("\n")[0].rstrip(".")


def method_needs(method: Section) -> MethodNeeds:
    """Return what the method of a complete section needs of the data."""
    requirements: MethodNeeds = CATALOGUE.find_module(str(method["name"])).needs(method)
    return replace(requirements, bias_key=None) if method.get("bias_source") == "early_layers" else requirements


def unmet_needs(method: Section, facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield the keys of a `method` section that ask for what a data set does not have, and what that is."""
    needs = method_needs(method)
    yield from needs.unmet_by(facts.facts_of_split("train"))
    if facts.some_bias and needs.bias_key and method.get("bias_source") != "some_labels":
        yield needs.bias_key, "needs the bias of every sample (bias_source: some_labels does with some)"
    if method.get("cell_weights") and facts.bias_classes is None and method.get("bias_source") != "early_layers":
        yield "cell_weights", "needs bias labels"


def build_method(method: Section, facts: Facts, new_network: "NetworkFactory") -> "Method":
    """Build the method of a complete, checked section, freshly initialised from torch's generator."""
    return CATALOGUE.find_module(str(method["name"])).build(method, facts, new_network)
