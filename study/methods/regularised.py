"""The regulariser of a method, if it has one."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from study.knobs import Knob, knobs
from study.losses.catalogue import regularisers
from study.methods.regularised_loss import Term, Weights

NO_REGULARISER = "none"


def regulariser_names() -> list[str]:
    """Every regulariser that `method.regulariser` may name; `none` for no regulariser."""
    return [NO_REGULARISER, *regularisers()]


def regulariser_knobs(method: Mapping[str, Any]) -> Iterator[Knob]:
    """`regulariser`, `alpha`, and where there is a regulariser `lambda` and its own hyperparameters."""
    about = "debiasing term that is added to the loss, weighted by `lambda`"
    yield Knob("regulariser", Literal[tuple(regulariser_names())], NO_REGULARISER, False, about)
    function = regularisers().get(method.get("regulariser", NO_REGULARISER))
    yield from (knob for knob in knobs(Weights) if function or knob.key == "alpha")
    if function:
        yield from knobs(function)


def regulariser(method: Mapping[str, Any]) -> Term | None:
    """The regulariser of a checked `method` section."""
    function = regularisers().get(method.get("regulariser", NO_REGULARISER))
    return Term.of(function, method) if function else None
