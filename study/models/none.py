"""none: no network, for a training function of the user's own."""

from dataclasses import dataclass
from typing import Any

from study.data.dataset import Facts
from study.errors import UserError


@dataclass(frozen=True)
class Options:
    """No keys."""


def unsuited(options: Options, facts: Facts) -> str | None:
    """It is a network for no data."""
    return "is the network of a training function of one's own (method.name: own_function), which brings its own"


def build(options: Options, facts: Facts) -> Any:
    """Nothing.

    Raises:
        UserError: always.
    """
    raise UserError("none: is no network")
