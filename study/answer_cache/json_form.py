"""Answers of the catalogues as JSON and back: plain values, types of hyperparameters with their notes, dataclasses.

What is not a scalar is a list that begins with a word for its kind: `["tuple", 1, 2]`, `["Range", 0.0, null, ...]`.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from typing_extensions import Doc

from study.knobs import Knob, Range, Searched

PLAIN: Mapping[str, type] = {kind.__name__: kind for kind in (bool, int, float, str, NoneType)}
KEPT: dict[str, Any] = {kind.__name__: kind for kind in (Knob, Range, Searched)}
"""The dataclasses that can be in an answer; a package adds its own."""


class NoJson(Exception):
    """A value has no form that gives it back as it was: it is not kept, and asked for anew each time."""


class Shared:
    """Forms that many answers contain, by a digest; each is decoded once.

    Attributes:
        forms: of hyperparameters and of sets of them.
    """

    def __init__(self, forms: dict[str, Any]) -> None:
        self.forms = forms
        self._values: dict[str, Any] = {}

    def add(self, form: list[Any]) -> list[Any]:
        """Take in a form; gives the short form that stands for it."""
        place = hashlib.sha256(json.dumps(form).encode()).hexdigest()[:12]
        self.forms[place] = form
        return ["shared", place]

    def value(self, place: str) -> Any:
        """The value of a form. It is shared: it must not be changed."""
        if place not in self._values:
            self._values[place] = decode(self.forms[place], self)
        return self._values[place]


def encode(value: Any, shared: Shared) -> Any:
    """A value in a form that JSON can hold.

    Args:
        shared: takes in what several answers may contain.

    Raises:
        NoJson: it contains something that has no form here, as an unknown note in `Annotated`.
    """
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind in (tuple, list):
        return [kind.__name__, *(encode(part, shared) for part in value)]
    if kind is dict and all(type(key) is str for key in value):
        return shared.add(["dict", *([key, encode(part, shared)] for key, part in value.items())])
    if kind is KEPT.get(kind.__name__):
        form = [kind.__name__, *(encode(getattr(value, field.name), shared) for field in fields(value))]
        return shared.add(form) if kind is Knob else form
    if kind is Doc:
        return ["Doc", value.documentation]
    return _encode_type(value, shared)


def decode(form: Any, shared: Shared) -> Any:
    """The value of a form that `encode` gave; raises ValueError, TypeError or LookupError on any other."""
    if not isinstance(form, list):
        return form
    word, *parts = form
    if word == "shared":
        return shared.value(parts[0])
    if word == "dict":
        return {key: decode(part, shared) for key, part in parts}
    if word == "type":
        return PLAIN[parts[0]]
    inner = [decode(part, shared) for part in parts]
    if word == "list":
        return inner
    if word == "tuple":
        return tuple(inner)
    if word in KEPT:
        return KEPT[word](*inner)
    return _decode_type(word, inner)


def _encode_type(hint: Any, shared: Shared) -> Any:
    if isinstance(hint, type) and PLAIN.get(hint.__name__) is hint:
        return ["type", hint.__name__]
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return ["Literal", *(encode(part, shared) for part in parts)]
    if origin is Annotated:
        return ["Annotated", *(encode(part, shared) for part in parts)]
    if origin in (Union, UnionType):
        return ["Union", *(encode(part, shared) for part in parts)]
    if origin is tuple and parts[1:] == (...,):
        return ["several", encode(parts[0], shared)]
    raise NoJson(repr(hint))


def _decode_type(word: str, inner: list[Any]) -> Any:
    if word == "Doc":
        return Doc(*inner)
    if word == "Literal":
        return Literal[tuple(inner)]
    if word == "Annotated":
        return Annotated[tuple(inner)]
    if word == "Union":
        return Union[tuple(inner)]  # noqa: UP007 (built at run time)
    if word == "several":
        return tuple[inner[0], ...]  # type: ignore[valid-type]
    raise ValueError(word)
