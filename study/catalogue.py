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

ENTRY_POINT_GROUPS = ("study.data", "study.models", "study.methods")

NAMES_FOR_OWN_FUNCTION = {"study.data": "none", "study.models": "none", "study.methods": "own_function"}
"""The data set, network and method that a user's own training function stands for, by group. They are found by name,
but not listed."""

REFERENCE_METHOD = "reference"
"""The method that is a model of scikit-learn, fitted at once. It is found by name, as `study train` needs it, but not
listed among those that can be searched."""


@cache
def find_modules(package: str, required_attributes: str, excluded_modules: Sequence[str] = ()) -> dict[str, Any]:
    """Return the modules of a package that define `required_attributes`, by name, without packages within it.

    A new dataset, model or method is one new file in its package; nothing else lists it.
    """
    parent: ModuleType = importlib.import_module(package)
    loaded = {
        entry.name: importlib.import_module(f"{package}.{entry.name}")
        for entry in pkgutil.iter_modules(parent.__path__)
        if not entry.ispkg and entry.name not in excluded_modules
    }
    return {name: module for name, module in sorted(loaded.items()) if hasattr(module, required_attributes)}


def lazy_getattr(modules_by_name: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package, which imports each name from its module when it is first used."""

    def attribute(name: str) -> Any:
        if name not in modules_by_name:
            raise AttributeError(name)
        return getattr(importlib.import_module(modules_by_name[name]), name)

    return attribute


@dataclass(frozen=True)
class Catalogue:
    """All things of one kind, this package's and those of other distributions.

    Attributes:
        entry_point_group: of the entry points.
        required_attributes: what the module of an entry must define.
        package: this package's modules are in it.
        load_builtins: returns the modules of this package by their names in study files.
    """

    entry_point_group: str
    required_attributes: tuple[str, ...]
    package: str
    load_builtins: Callable[[], Mapping[str, Any]]

    def listed_names(self) -> list[str]:
        """Return all listed names; no entry is loaded for them."""
        return sorted({*self.load_builtins(), *_entry_points_by_name(self.entry_point_group)} - self.unlisted_names)

    @property
    def unlisted_names(self) -> frozenset[str]:
        """Names that are found but not listed, see `NAMES_FOR_OWN_FUNCTION` and `REFERENCE_METHOD`."""
        fitted = [REFERENCE_METHOD] if self.entry_point_group == "study.methods" else []
        return frozenset([*fitted, *([self.name_for_own_function] if self.name_for_own_function else [])])

    @property
    def name_for_own_function(self) -> str | None:
        """Name of the group in `NAMES_FOR_OWN_FUNCTION`, None if it has none."""
        return NAMES_FOR_OWN_FUNCTION.get(self.entry_point_group)

    def declaring_distributions(self, name: str) -> str | None:
        """Return the distributions that declare a name, with versions; None: this package alone."""
        entries = _entry_points_by_name(self.entry_point_group).get(name, ())
        return " and ".join(map(_distribution_and_version, entries)) or None

    def find_module(self, name: str) -> Any:
        """Return the module of this name.

        Raises:
            UserError: there is none, it cannot be loaded, it is not of the right form, or the name is taken.
        """
        entries = _entry_points_by_name(self.entry_point_group).get(name, ())
        builtins = self.load_builtins()
        if not entries:
            if name in builtins:
                return builtins[name]
            raise UserError(f"{name!r}: not found. If a distribution has it, it must be installed on this machine, too")
        if name in builtins or len(entries) > 1:
            others = " and this package" if name in builtins else ""
            raise UserError(
                f"{name!r} is declared by {self.declaring_distributions(name)}{others} (entry point "
                f"{self.entry_point_group}): a name can have one meaning. Give the entry another name, or uninstall it"
            )
        return _load_entry_point(entries[0], self.required_attributes)

    def description(self, name: str) -> str:
        """Return what it is, from the first line of its docstring, `NAME: what it is`; raises as `find_module`."""
        return (self.find_module(name).__doc__ or "").partition("\n")[0].removeprefix(f"{name}: ").rstrip(".")

    def why_unusable(self, name: str) -> str | None:
        """Return why a name cannot be used, None if it can."""
        try:
            self.find_module(name)
        except UserError as error:
            return str(error)
        return None


def plugin_distributions() -> dict[str, str]:
    """Return name and version of the other distributions that declare something."""
    return {entry.dist.name: entry.dist.version for entry in plugin_entry_points() if entry.dist is not None}


@cache
def plugin_entry_points() -> list[EntryPoint]:
    """Return the entry points that other distributions declare, of all groups; none is loaded."""
    declared = entry_points()  # looks through all that is installed: once for all groups
    return [
        entry
        for group in ENTRY_POINT_GROUPS
        for entry in sorted(declared.select(group=group), key=_distribution_and_version)
    ]


@cache
def _entry_points_by_name(group: str) -> dict[str, tuple[EntryPoint, ...]]:
    of_group = [entry for entry in plugin_entry_points() if entry.group == group]
    return {
        name: tuple(entry for entry in of_group if entry.name == name)
        for name in sorted({entry.name for entry in of_group})
    }


def _distribution_and_version(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value


@cache
def _load_entry_point(entry: EntryPoint, having: tuple[str, ...]) -> Any:
    place = f"{entry.name!r}: the entry point {entry.value} of {_distribution_and_version(entry)}"
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
