"""Samplers and rules of early stopping by name, and what each sampler can do.

Each is a module of a package in `study.sweep`, named as study files name it.
"""

from importlib import import_module
from typing import ClassVar, TypeVar

from study.catalogue import module_names

Base = TypeVar("Base")

PACKAGE = "study.sweep.samplers"


class Declaration:
    """What is known of a sampler before a study begins; the other half of `study.sweep.samplers.Strategy`.

    Attributes:
        good_for: the searches to choose it for, for the guide.
        limits: what it does not do, for the guide.
        metrics: how many it can search at once; None: any number.
        independent: its draws do not depend on the trials before.
        guided: it looks at the values of trials.
        foreseeable: it was tried what more of its trials gain, see `study.ranking.remaining_gain`.
        every_key: each trial must have every key of the space.
        ranges_only: it searches no choices.
        every_cell: it tries each cell of a grid once.
        most_values: of a range with steps or of whole numbers; None: any number.
    """

    good_for: ClassVar[str]
    limits: ClassVar[str]
    metrics: ClassVar[int | None] = None
    independent: ClassVar[bool] = False
    guided: ClassVar[bool] = True
    foreseeable: ClassVar[bool] = False
    every_key: ClassVar[bool] = False
    ranges_only: ClassVar[bool] = False
    every_cell: ClassVar[bool] = False
    most_values: ClassVar[int | None] = None


def declaration(name: str) -> type[Declaration]:
    """The class of a sampler."""
    return found(PACKAGE, name, Declaration)


def declarations() -> dict[str, type[Declaration]]:
    """All samplers by name."""
    return {name: declaration(name) for name in module_names(PACKAGE)}


def found(package: str, name: str, base: type[Base]) -> type[Base]:
    """The class of a kind that the module of this name in a package defines.

    The module is imported here and not above: what it defines is made of a study's specification.
    """
    module = import_module(f"{package}.{name}")
    own = (one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__)
    (of_kind,) = (one for one in own if issubclass(one, base))
    return of_kind
