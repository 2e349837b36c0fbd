"""Where a method's objects keep a hyperparameter, so that a tensor can stand there in place of a number."""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from functools import partial
from typing import Any

from torch import nn

Slot = tuple[dict[str, Any], str]
"""A dictionary, an object's own or one that it has, and a key in it."""


class Marker(float):
    """A number that is told from all others by its identity."""


def marked(section: Mapping[str, Any], keys: set[str]) -> dict[str, Any]:
    """A section whose numbers of these keys are `Marker`."""
    return {key: Marker(value) if key in keys else value for key, value in section.items()}


def slots(owner: nn.Module, section: Mapping[str, Any]) -> dict[str, list[Slot]]:
    """By key of a `marked` section, where the number stands in the module and what it holds.

    Dataclasses, dictionaries and arguments of `functools.partial` are looked through. A number that was computed from
    one of the section is not found: see the contract test.
    """
    keys = {id(value): key for key, value in section.items() if isinstance(value, Marker)}
    found: dict[str, list[Slot]] = {key: [] for key in keys.values()}
    for module in owner.modules():
        for place, name in _entries(vars(module)):
            if id(place[name]) in keys:
                found[keys[id(place[name])]].append((place, name))
    return found


def _entries(place: dict[str, Any]) -> Iterator[Slot]:
    for name, value in place.items():
        yield place, name
        if isinstance(value, nn.Module) or name in ("_modules", "_parameters", "_buffers"):
            continue
        if is_dataclass(value) and not isinstance(value, type):
            yield from _entries(vars(value))
        elif isinstance(value, partial):
            yield from _entries(value.keywords)
        elif isinstance(value, dict):
            yield from _entries(value)
