"""Things found by name: each is one module of a package, called as the module, that has the asked attribute."""

import importlib
import pkgutil
from functools import cache
from types import ModuleType
from typing import Any


@cache
def modules(package: str, having: str) -> dict[str, Any]:
    """The modules of a package that define `having`, by name.

    A new dataset, model or method is one new file in its package; nothing else lists it.
    """
    parent: ModuleType = importlib.import_module(package)
    found = {
        entry.name: importlib.import_module(f"{package}.{entry.name}")
        for entry in pkgutil.iter_modules(parent.__path__)
    }
    return {name: module for name, module in sorted(found.items()) if hasattr(module, having)}
