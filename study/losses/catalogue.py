"""Losses and regularisers by name, found in the modules of this package."""

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any

import study.losses

Loss = Callable[..., Any]
_LOSSES: dict[str, Loss] = {}
_REGULARISERS: dict[str, Loss] = {}


def loss(function: Loss) -> Loss:
    """Mark a function as a loss: `method.name` in a study file may name it."""
    return _add(_LOSSES, function)


def regulariser(function: Loss) -> Loss:
    """Mark a function as a regulariser: `method.regulariser` in a study file may name it."""
    return _add(_REGULARISERS, function)


def _add(catalogue: dict[str, Loss], function: Loss) -> Loss:
    name = function.__name__
    if name in _LOSSES or name in _REGULARISERS:
        raise ValueError(f"two losses are called {name!r}")
    catalogue[name] = function
    return function


@cache
def _load() -> None:
    for module in pkgutil.iter_modules(study.losses.__path__, "study.losses."):
        importlib.import_module(module.name)


def losses() -> dict[str, Loss]:
    """Every loss by name, sorted."""
    _load()
    return dict(sorted(_LOSSES.items()))


def regularisers() -> dict[str, Loss]:
    """Every regulariser by name, sorted."""
    _load()
    return dict(sorted(_REGULARISERS.items()))
