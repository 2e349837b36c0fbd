"""What every loss asks of its inputs: types and shapes, never values, so that no check waits for a device.

The shapes are known under `torch.vmap` and to `torch.compile`, too. B is the number of samples of the first argument.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from torch import Tensor

CLASSES, VALUES = "whole numbers or booleans", "floating-point numbers"


class Wanted(NamedTuple):
    """The shapes that an input may have, in letters, and what its elements are; None: any numbers."""

    shapes: tuple[str, ...]
    elements: str | None


FIRST = {"views": Wanted(("VBD",), VALUES), "logits": Wanted(("BC",), VALUES)}
INPUTS = {
    "target": Wanted(("B",), CLASSES),
    "bias": Wanted(("B",), CLASSES),
    "condition": Wanted(("B", "BF", "VBF"), None),
    "bias_features": Wanted(("BK",), VALUES),
    "confusion": Wanted(("GC",), VALUES),
    "biased_views": Wanted(("VBE",), VALUES),
    "extra_positives": Wanted(("MBD",), VALUES),
    "negatives": Wanted(("NBD",), VALUES),
    "similarity": Wanted(("RR",), VALUES),
}
BIAS_AS_CONDITION = Wanted(("B", "BF"), None)
"""Of a loss that takes a condition, too: CCL-K."""

LETTERS = {"R": "V*B", "E": "D'", "F": "K"}
"""Letters that are written in another way, R for the rows of all views."""


def checked(function: Callable[..., Any]) -> Callable[[Any, Mapping[str, Any]], dict[str, Any]]:
    """Return the check of a loss's inputs: called as the loss is, it returns the keyword arguments, classes as int64.

    The check raises ValueError for an input of another type or shape, and for an empty batch: it names what was given
    and what is wanted.
    """
    first, *others = inspect.signature(function).parameters.values()
    wanted = {parameter.name: INPUTS[parameter.name] for parameter in others if parameter.name in INPUTS}
    if "condition" in wanted and "bias" in wanted:
        wanted["bias"] = BIAS_AS_CONDITION
    optional = {parameter.name for parameter in others if parameter.default is None}

    def check(views: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
        of_first = FIRST["logits" if first.name == "logits" else "views"]
        sizes: dict[str, int] = {}
        _check(function.__name__, first.name, views, of_first, sizes)
        if 0 in views.shape:
            raise ValueError(
                f"{function.__name__}: {first.name} is empty: {_given(views)}, wanted is shape {_shape(of_first)} with "
                "at least one of each"
            )
        if "V" in sizes:
            sizes["R"] = sizes["V"] * sizes["B"]
        taken = dict(inputs)
        for name, value in inputs.items():
            if name not in wanted or (value is None and name in optional):
                continue
            _check(function.__name__, name, value, wanted[name], sizes)
            if wanted[name].elements is CLASSES:
                taken[name] = value.long()
        return taken

    return check


def _check(loss: str, name: str, value: Any, wanted: Wanted, sizes: dict[str, int]) -> None:
    """Check one input against the sizes that are known, and note in them what it tells of further ones."""
    if isinstance(value, Tensor) and _has_elements(value, wanted.elements):
        shape = value.shape
        for letters in wanted.shapes:
            if len(letters) == len(shape):
                for letter, size in zip(letters, shape, strict=True):
                    if sizes.setdefault(letter, size) != size:
                        break
                else:
                    return
    known = ", ".join(f"{letter} = {sizes[letter]}" for letter in "VBD" if letter in sizes and name not in FIRST)
    elements = f" of {wanted.elements}" if wanted.elements else ""
    raise ValueError(
        f"{loss}: {name} is a tensor{elements} of shape {_shape(wanted)}, got {_given(value)}"
        + (f"; here {known}" if known else "")
    )


def _has_elements(value: Tensor, elements: str | None) -> bool:
    if elements is None:
        return not value.is_complex()
    return value.is_floating_point() == (elements is VALUES) and not value.is_complex()


def _shape(wanted: Wanted) -> str:
    names = ([LETTERS.get(letter, letter) for letter in letters] for letters in wanted.shapes)
    return " or ".join(f"({each[0]},)" if len(each) == 1 else f"({', '.join(each)})" for each in names)


def _given(value: Any) -> str:
    """The shape and type of a value."""
    kind = value.dtype if isinstance(value, Tensor) else f"{type(value).__module__}.{type(value).__name__}"
    kind = str(kind).removeprefix("builtins.")
    if isinstance(value, Tensor) or hasattr(value, "shape"):
        return f"{tuple(value.shape)} of type {kind}"
    return f"a {kind} of {len(value)}" if hasattr(value, "__len__") else f"a {kind}"
