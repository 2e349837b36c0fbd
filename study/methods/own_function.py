"""own_function: a training function of the user's own, with a data set and a network that only it knows.

`study.training.function_loading` calls it. The section's keys are the function's: whichever the file gives or searches.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from study.catalogue import NAMES_FOR_OWN_FUNCTION
from study.data.dataset import Facts
from study.errors import UserError
from study.knobs import Knob, Section
from study.methods.method_needs import MethodNeeds

if TYPE_CHECKING:
    from study.methods.base_method import NetworkFactory

OWN_FUNCTION_NAME = NAMES_FOR_OWN_FUNCTION["study.methods"]
NAMES = [OWN_FUNCTION_NAME]

REUSE_PROCESS_KEY = "reuse_process"
"""Key by which a function promises to leave nothing behind in its process."""

RESERVED_KEYS = ("name", "function", REUSE_PROCESS_KEY)
"""Keys of the section that are not the function's own."""


def knobs(method: Section) -> Iterator[Knob]:
    """Yield the knobs `function`, `reuse_process` where it is given, and every other key that the section has.

    `reuse_process` is no parameter of studies that do not give it. Of the function's own keys a whole number stays one,
    any other value may be anything.
    """
    yield Knob("function", str, None, True, "the training function, MODULE:NAME")
    if REUSE_PROCESS_KEY in method:
        yield Knob(
            REUSE_PROCESS_KEY, bool, False, False, "true: its trials run one after the other in the same processes"
        )
    for key, value in method.items():
        if key not in RESERVED_KEYS:
            yield Knob(key, int if type(value) is int else Any, None, True, "the function's own")


def needs(method: Section) -> MethodNeeds:
    """Return no needs: the function has its own data."""
    return MethodNeeds()


def build(method: Section, facts: Facts, new_network: "NetworkFactory") -> NoReturn:
    """Refuse to build a module: there is only the function.

    Raises:
        UserError: always.
    """
    raise UserError(f"{OWN_FUNCTION_NAME}: a function has no networks of this package")
