"""PyTorch, imported when something of it is first used: what a study file can say is known without it.

A module that declares hyperparameters beside the mathematics has this line in place of `import torch`, and its import
then takes no second:

    from study.losses.lazy_torch import functional, torch

Classes of modules and of gradients need PyTorch where they are defined: they are in modules of their own, which are
imported where they are used.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any


class _LazyModule(ModuleType):
    """A module that stands for the one of its name, and keeps what was asked of that."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import torch as torch
    from torch.nn import functional as functional
else:
    torch, functional = _LazyModule("torch"), _LazyModule("torch.nn.functional")
