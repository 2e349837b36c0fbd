"""Methods by name: what a study file's `method` section trains.

Every loss of `study.losses` that one view of each sample and its labels suffice for is a method, alone or with one of
the regularisers. The keys of a method are those of `Weights` and the hyperparameters in the signatures of its loss and
regulariser, and no others.
"""

import inspect
from collections.abc import Mapping
from functools import partial
from typing import Any

from study.knobs import Knob, knobs
from study.losses.catalogue import Loss, losses, needs_two_views, regularisers
from study.methods.objective import Objective, Weights

NO_REGULARISER = "none"
GIVEN = {"views", "target", "bias"}
"""What a trial gives to a loss."""

__all__ = ["NO_REGULARISER", "Objective", "build", "method_knobs", "names", "needs_bias", "regulariser_names"]


def names() -> list[str]:
    """Every loss that `method.name` may name."""
    return [name for name, loss in losses().items() if not needs_two_views(name) and _required(loss) <= GIVEN]


def regulariser_names() -> list[str]:
    """Every regulariser that `method.regulariser` may name; `none` for no regulariser."""
    return [NO_REGULARISER, *regularisers()]


def method_knobs(method: Mapping[str, Any]) -> dict[str, Knob]:
    """The hyperparameters of a `method` section's loss and regulariser, by key; `lambda` only where there is one."""
    functions = _functions(method)
    found = {knob.key: knob for function in reversed(functions) for knob in knobs(function)}
    weights = {knob.key: knob for knob in knobs(Weights)}
    if len(functions) == 1:
        del weights["lambda"]
    return weights | found


def needs_bias(method: Mapping[str, Any]) -> bool:
    """Whether the loss or the regulariser cannot do without bias labels."""
    loss, *regulariser = _functions(method)
    return bool(regulariser) or "bias" in _required(loss)


def build(method: Mapping[str, Any]) -> Objective:
    """The objective of a complete, checked `method` section."""
    loss, *regulariser = (_with_options(function, method) for function in _functions(method))
    weights = Weights(
        **{f"{key}_" if key == "lambda" else key: method[key] for key in ("alpha", "lambda") if key in method}
    )
    return Objective(loss, regulariser[0] if regulariser else None, weights)


def _required(function: Loss) -> set[str]:
    return {name for name, one in inspect.signature(function).parameters.items() if one.default is one.empty}


def _functions(method: Mapping[str, Any]) -> list[Loss]:
    name = method.get("regulariser", NO_REGULARISER)
    return [losses()[method["name"]], *([] if name == NO_REGULARISER else [regularisers()[name]])]


def _with_options(function: Loss, method: Mapping[str, Any]) -> Loss:
    parameters = inspect.signature(function).parameters
    accepted = {knob.key for knob in knobs(function)}
    by_parameter = {name: name.rstrip("_") for name in parameters}
    return partial(function, **{name: method[key] for name, key in by_parameter.items() if key in accepted})
