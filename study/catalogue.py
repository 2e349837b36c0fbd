"""Modules found by name: of this package, or of other distributions that are installed beside it.

A distribution declares its own as entry points: the group is the package that they belong to (`study.data`,
`study.models`, `study.methods`), the entry's name what a study file calls it, its value a module of the form that the
package asks for. A study file names no code, except `method.function` for a user's own training function.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

from study.errors import UserError

GROUPS = ("study.data", "study.models", "study.methods")

APART = {"study.data": "none", "study.models": "none", "study.methods": "own_function"}
"""The data set, network and method that a user's own training function stands for, by group. They are found by name,
but not listed."""

FITTED = "reference"
"""The method that is a model of scikit-learn, fitted at once. It is found by name, as `study train` needs it, but not
listed among those that can be searched."""


@cache
def modules(package: str, having: str, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the modules of a package that define `having`, by name; packages within it and `without` are left out.

    A new dataset, model or method is one new file in its package; nothing else lists it.
    """
    parent: ModuleType = importlib.import_module(package)
    loaded = {
        entry.name: importlib.import_module(f"{package}.{entry.name}")
        for entry in pkgutil.iter_modules(parent.__path__)
        if not entry.ispkg and entry.name not in without
    }
    return {name: module for name, module in sorted(loaded.items()) if hasattr(module, having)}


def lazy_getattr(places: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package, which imports each name from its module when it is first used."""

    def attribute(name: str) -> Any:
        if name not in places:
            raise AttributeError(name)
        return getattr(importlib.import_module(places[name]), name)

    return attribute


@dataclass(frozen=True)
class Catalogue:
    """All things of one kind, this package's and those of other distributions.

    Attributes:
        group: of the entry points.
        having: what the module of an entry must define.
        package: this package's modules are in it.
        own: returns the modules of this package by their names in study files.
    """

    group: str
    having: tuple[str, ...]
    package: str
    own: Callable[[], Mapping[str, Any]]

    def names(self) -> list[str]:
        """Return all listed names; no entry is loaded for them."""
        return sorted({*self.own(), *_entries(self.group)} - self.unlisted)

    @property
    def unlisted(self) -> frozenset[str]:
        """Names that are found but not listed, see `APART` and `FITTED`."""
        fitted = [FITTED] if self.group == "study.methods" else []
        return frozenset([*fitted, *([self.apart] if self.apart else [])])

    @property
    def apart(self) -> str | None:
        """Name of the group in `APART`, None if it has none."""
        return APART.get(self.group)

    def origin(self, name: str) -> str | None:
        """Return the distributions that declare a name, with versions; None: this package alone."""
        return " and ".join(map(_declared_by, _entries(self.group).get(name, ()))) or None

    def find(self, name: str) -> Any:
        """Return the module of this name.

        Raises:
            UserError: there is none, it cannot be loaded, it is not of the right form, or the name is taken.
        """
        entries = _entries(self.group).get(name, ())
        own = self.own()
        if not entries:
            if name in own:
                return own[name]
            raise UserError(f"{name!r}: not found. If a distribution has it, it must be installed on this machine, too")
        if name in own or len(entries) > 1:
            others = " and this package" if name in own else ""
            raise UserError(
                f"{name!r} is declared by {self.origin(name)}{others} (entry point {self.group}): a name can have one "
                "meaning. Give the entry another name, or uninstall it"
            )
        return _load(entries[0], self.having)

    def about(self, name: str) -> str:
        """Return what it is, from the first line of its docstring, `NAME: what it is`; raises as `find`."""
        return (self.find(name).__doc__ or "").partition("\n")[0].removeprefix(f"{name}: ").rstrip(".")

    def problem(self, name: str) -> str | None:
        """Return why a name cannot be used, None if it can."""
        try:
            self.find(name)
        except UserError as error:
            return str(error)
        return None


def distributions() -> dict[str, str]:
    """Return name and version of the other distributions that declare something."""
    return {entry.dist.name: entry.dist.version for entry in entries() if entry.dist is not None}


@cache
def entries() -> list[EntryPoint]:
    """Return the entry points that other distributions declare, of all groups; none is loaded."""
    declared = entry_points()  # looks through all that is installed: once for all groups
    return [entry for group in GROUPS for entry in sorted(declared.select(group=group), key=_declared_by)]


@cache
def _entries(group: str) -> dict[str, tuple[EntryPoint, ...]]:
    of_group = [entry for entry in entries() if entry.group == group]
    return {
        name: tuple(entry for entry in of_group if entry.name == name)
        for name in sorted({entry.name for entry in of_group})
    }


def _declared_by(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value


@cache
def _load(entry: EntryPoint, having: tuple[str, ...]) -> Any:
    place = f"{entry.name!r}: the entry point {entry.value} of {_declared_by(entry)}"
    try:
        module = entry.load()
    except Exception as error:  # whatever the code of others does when it is imported
        raise UserError(f"{place} cannot be loaded: {type(error).__name__}: {error}") from error
    missing = [name for name in having if not hasattr(module, name)]
    if missing:
        raise UserError(f"{place} has no {', '.join(missing)}; a module of {entry.group} has {', '.join(having)}")
    if entry.name not in getattr(module, "NAMES", (entry.name,)):
        raise UserError(f"{place} has NAMES {', '.join(module.NAMES)}; {entry.name!r} must be one of them")
    return module
