"""The samplers that there are, and what each can do: modules of `study.sweep.samplers`, asked by their names."""

from functools import cache
from importlib import import_module
from typing import ClassVar

from study.catalogue import module_names

PACKAGE = "study.sweep.samplers"


class Declaration:
    """What is known of a sampler before a study begins; the other half of `study.sweep.samplers.Strategy`.

    Attributes:
        good_for: the searches to choose it for, for the guide.
        limits: what it does not do, for the guide.
        metrics: how many it can search at once; None: any number.
        learns: it can begin with another study's trials.
        independent: its draws do not depend on the trials before.
        foreseeable: it was tried what more of its trials gain, see `study.ranking.remaining_gain`.
        every_key: each trial must have every key of the space.
        ranges_only: it searches no choices.
        every_cell: it tries each cell of a grid once.
        most_values: of a range with steps or of whole numbers; None: any number.
    """

    good_for: ClassVar[str]
    limits: ClassVar[str]
    metrics: ClassVar[int | None] = None
    learns: ClassVar[bool] = False
    independent: ClassVar[bool] = False
    foreseeable: ClassVar[bool] = False
    every_key: ClassVar[bool] = False
    ranges_only: ClassVar[bool] = False
    every_cell: ClassVar[bool] = False
    most_values: ClassVar[int | None] = None


@cache
def declaration(name: str) -> type[Declaration]:
    """The class of a sampler: the one that its module defines.

    It is imported here and not above, since it needs a study's specification; it brings Optuna once it is used.
    """
    module = import_module(f"{PACKAGE}.{name}")
    own = (one for one in vars(module).values() if getattr(one, "__module__", "") == module.__name__)
    (found,) = (one for one in own if isinstance(one, type) and issubclass(one, Declaration))
    return found


def declarations() -> dict[str, type[Declaration]]:
    """All samplers by name."""
    return {name: declaration(name) for name in module_names(PACKAGE)}
