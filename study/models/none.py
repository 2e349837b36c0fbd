"""none: no network, for a training function of the user's own."""

from dataclasses import dataclass
from typing import Any

from study.data.dataset import Facts
from study.errors import UserError


@dataclass(frozen=True)
class Options:
    """Keys of the `model` section: there are none."""


def unsuited(options: Options, facts: Facts) -> str | None:
    """Say why no data suit: there is no network."""
    return "is the network of a training function of one's own (method.name: own_function), which brings its own"


def build(options: Options, facts: Facts) -> Any:
    """Refuse to build a network.

    Raises:
        UserError: always.
    """
    raise UserError("none: is no network")
