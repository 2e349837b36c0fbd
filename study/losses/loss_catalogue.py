"""Losses by name, found in the modules of this package. To add one, add a file with one decorated function.

Three kinds, told apart by their first argument and by the decorator:

* `@loss`: `loss(views, *, ...)`, `views` unit embeddings of shape (V, B, D); `@pair_loss` for one that needs two views
  of each sample;
* `@regulariser`: called like a loss, and added to one with the weight `method.lambda`, on data whose bias is known;
* `@classification_loss`: `loss(logits, *, ...)`, `logits` of shape (B, C).

In all of them keyword-only parameters typed `Tensor` are inputs of the maths (`target`, `bias`, `condition`, ...): a
function declares those that it uses and is given no others, and one without a default is always given. All other
keyword-only parameters are hyperparameters (`study.knobs`). `similarity` is optional: the cosine matrix of the rows,
`gram_matrix(views)` of `study.losses.pairs`, given when several functions work on the same views: it is computed and
differentiated once.

Ranges of hyperparameters are checked where a study file is read. Every function can be differentiated once.

Types and shapes of inputs are checked at each call (see `make_input_check`); a ValueError names what does not fit.

Every function computes in float32 at least, also inside autocast: inputs are widened and autocast is off in it.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Union

import study.losses
from study.losses.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor

# Inputs are checked by type and shape, never by value, so that no check waits for a device; `torch.compile` knows the
# shapes, too. B is the number of samples of the first argument.

INTEGER_ELEMENTS, FLOAT_ELEMENTS = "whole numbers or booleans", "floating-point numbers"


class LossInputSpec(NamedTuple):
    """Shapes that an input may have, in letters, and the type of its elements; None: any numbers."""

    shapes: tuple[str, ...]
    elements: str | None


FIRST_INPUT_SPECS = {"views": LossInputSpec(("VBD",), FLOAT_ELEMENTS), "logits": LossInputSpec(("BC",), FLOAT_ELEMENTS)}
NAMED_INPUT_SPECS = {
    "target": LossInputSpec(("B",), INTEGER_ELEMENTS),
    "bias": LossInputSpec(("B",), INTEGER_ELEMENTS),
    "condition": LossInputSpec(("B", "BF", "VBF"), None),
    "bias_features": LossInputSpec(("BK",), FLOAT_ELEMENTS),
    "confusion": LossInputSpec(("GC",), FLOAT_ELEMENTS),
    "biased_views": LossInputSpec(("VBE",), FLOAT_ELEMENTS),
    "extra_positives": LossInputSpec(("MBD",), FLOAT_ELEMENTS),
    "weight": LossInputSpec(("B",), FLOAT_ELEMENTS),
    "negatives": LossInputSpec(("NBD",), FLOAT_ELEMENTS),
    "similarity": LossInputSpec(("RR",), FLOAT_ELEMENTS),
}
BIAS_OR_CONDITION_SPEC = LossInputSpec(("B", "BF"), None)
"""What `bias` may be for a loss that also takes a condition: CCL-K."""

EXPANDED_SHAPE_LETTERS = {"R": "V*B", "E": "D'", "F": "K"}
"""Letters that are written in another way; R stands for the rows of all views."""


ReturnType = TypeVar("ReturnType")
LossInput = Union["Tensor", bool, int, float, str, None]
"""What a loss may be given by name: a tensor, or the value of a hyperparameter."""


def make_input_check(
    function: Callable[..., Tensor],
) -> Callable[[Tensor, Mapping[str, LossInput]], dict[str, LossInput]]:
    """Return the check of a loss's inputs: called as the loss is, it returns the keyword arguments, classes as int64.

    The check raises ValueError for an input of another type or shape, and for an empty batch: it names what was given
    and what is wanted.
    """
    first, *others = inspect.signature(function).parameters.values()
    wanted = {one.name: NAMED_INPUT_SPECS[one.name] for one in others if one.name in NAMED_INPUT_SPECS}
    if "condition" in wanted and "bias" in wanted:
        wanted["bias"] = BIAS_OR_CONDITION_SPEC
    optional = {one.name for one in others if one.default is None}

    def check(views: Tensor, inputs: Mapping[str, LossInput]) -> dict[str, LossInput]:
        of_first = FIRST_INPUT_SPECS["logits" if first.name == "logits" else "views"]
        sizes: dict[str, int] = {}
        _check_input(function.__name__, first.name, views, of_first, sizes)
        if 0 in views.shape:
            raise ValueError(
                f"{function.__name__}: {first.name} is empty: {_shape_and_type_text(views)}, wanted is shape "
                f"{_wanted_shape_text(of_first)} with at least one of each"
            )
        if "V" in sizes:
            sizes["R"] = sizes["V"] * sizes["B"]
        taken = dict(inputs)
        for name, value in inputs.items():
            if name not in wanted and isinstance(value, torch.Tensor):
                raise ValueError(f"{function.__name__}: {name} is no tensor, got {_shape_and_type_text(value)}")
            if name not in wanted or (value is None and name in optional):
                continue
            _check_input(function.__name__, name, value, wanted[name], sizes)
            if wanted[name].elements is INTEGER_ELEMENTS and isinstance(value, torch.Tensor):
                taken[name] = value.long()
        return taken

    return check


def _check_input(loss: str, name: str, value: LossInput, wanted: LossInputSpec, sizes: dict[str, int]) -> None:
    """Check one input against the known sizes, and add the sizes that it shows."""
    if (
        isinstance(value, torch.Tensor)
        and not value.is_complex()
        and (wanted.elements is None or value.is_floating_point() == (wanted.elements is FLOAT_ELEMENTS))
    ):
        shape = value.shape
        for letters in wanted.shapes:
            if len(letters) == len(shape):
                for letter, size in zip(letters, shape, strict=True):
                    if sizes.setdefault(letter, size) != size:
                        break
                else:
                    return
    letters = "" if name in FIRST_INPUT_SPECS else "VBD"
    known = ", ".join(f"{letter} = {sizes[letter]}" for letter in letters if letter in sizes)
    elements = f" of {wanted.elements}" if wanted.elements else ""
    raise ValueError(
        f"{loss}: {name} is a tensor{elements} of shape {_wanted_shape_text(wanted)}, got {_shape_and_type_text(value)}"
        + (f"; here {known}" if known else "")
    )


def _wanted_shape_text(wanted: LossInputSpec) -> str:
    names = ([EXPANDED_SHAPE_LETTERS.get(letter, letter) for letter in letters] for letters in wanted.shapes)
    return " or ".join(f"({each[0]},)" if len(each) == 1 else f"({', '.join(each)})" for each in names)


def _shape_and_type_text(value: Any) -> str:
    """Describe the shape and type of a value."""
    kind = value.dtype if isinstance(value, torch.Tensor) else f"{type(value).__module__}.{type(value).__name__}"
    kind = str(kind).removeprefix("builtins.")
    if isinstance(value, torch.Tensor) or hasattr(value, "shape"):
        return f"{tuple(value.shape)} of type {kind}"
    return f"a {kind} of {len(value)}" if hasattr(value, "__len__") else f"a {kind}"


Loss = Callable[..., "Tensor"]
_LOSSES: dict[str, Loss] = {}
_PAIR_LOSSES: set[str] = set()
_REGULARISERS: dict[str, Loss] = {}
_CLASSIFICATION_LOSSES: dict[str, Loss] = {}


def loss(function: Loss) -> Loss:
    """Mark a function of views as a loss: `method.name` in a study file may name it."""
    return _register(_LOSSES, function)


def pair_loss(function: Loss) -> Loss:
    """Mark a function of two views of each sample as a loss."""
    _PAIR_LOSSES.add(function.__name__)
    return _register(_LOSSES, function)


def regulariser(function: Loss) -> Loss:
    """Mark a function of views as a regulariser: `method.regulariser` in a study file may name it."""
    return _register(_REGULARISERS, function)


def classification_loss(function: Loss) -> Loss:
    """Mark a function of logits as a loss: `method.name` in a study file may name it; it trains a classifier."""
    return _register(_CLASSIFICATION_LOSSES, function)


def compute_in_full_precision(function: Callable[..., ReturnType]) -> Callable[..., ReturnType]:
    """Compute a function in float32 at least: autocast off, half-precision inputs widened; float64 stays float64."""

    @functools.wraps(function)
    def in_full_precision(first: Tensor, /, **inputs: LossInput) -> ReturnType:
        first = _widen_to_float32(first)
        with torch.autocast(first.device.type, enabled=False):
            wide = {
                name: _widen_to_float32(value) if isinstance(value, torch.Tensor) else value
                for name, value in inputs.items()
            }
            return function(first, **wide)

    return in_full_precision


def _widen_to_float32(value: Tensor) -> Tensor:
    """Widen a floating-point tensor to float32 at least; any other stays as it is."""
    if not value.is_floating_point():
        return value
    return value.to(torch.promote_types(value.dtype, torch.float32))


def _register(catalogue: dict[str, Loss], function: Loss) -> Loss:
    name = function.__name__
    if any(name in known for known in (_LOSSES, _REGULARISERS, _CLASSIFICATION_LOSSES)):
        raise ValueError(f"two losses are called {name!r}")
    check, computed = make_input_check(function), compute_in_full_precision(function)

    @functools.wraps(function)
    def of_checked_inputs(first: Tensor, /, **inputs: LossInput) -> Tensor:
        return computed(first, **check(first, inputs))

    catalogue[name] = of_checked_inputs
    return of_checked_inputs


@cache
def _import_loss_modules() -> None:
    for module in pkgutil.iter_modules(study.losses.__path__):
        if module.name != "own_gradients":  # declares none, and needs PyTorch
            importlib.import_module(f"study.losses.{module.name}")


def losses_by_name() -> dict[str, Loss]:
    """Return every loss of views by name, sorted."""
    _import_loss_modules()
    return dict(sorted(_LOSSES.items()))


def needs_two_views(name: str) -> bool:
    """Tell whether the loss of this name pairs two views of each sample."""
    _import_loss_modules()
    return name in _PAIR_LOSSES


def regularisers_by_name() -> dict[str, Loss]:
    """Return every regulariser by name, sorted."""
    _import_loss_modules()
    return dict(sorted(_REGULARISERS.items()))


def classification_losses_by_name() -> dict[str, Loss]:
    """Return every loss of logits by name, sorted."""
    _import_loss_modules()
    return dict(sorted(_CLASSIFICATION_LOSSES.items()))


@cache
def parameter_names(name: str) -> frozenset[str]:
    """Return the names of all parameters of a loss of views."""
    return frozenset(inspect.signature(losses_by_name()[name]).parameters)


@cache
def required_tensor_names(name: str) -> frozenset[str]:
    """Return the tensors that a loss of views must be given, besides its first argument."""
    _, *others = inspect.signature(losses_by_name()[name]).parameters.values()
    return frozenset(parameter.name for parameter in others if parameter.default is parameter.empty)
