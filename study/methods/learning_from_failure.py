"""learning_from_failure: what a classifier drawn to easy samples fails on weighs more for a second one.

LfF, Nam et al. 2020; WCL paper 5.1 and Table 3.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from typing_extensions import Doc

from study.data.dataset import Facts
from study.knobs import Knob, Range, Searched, Section, knobs, options
from study.methods.balance import balance_knobs
from study.methods.needs import Needs

if TYPE_CHECKING:
    from study.methods.batch import Method, NewNetwork

NAMES = ["learning_from_failure"]


@dataclass(frozen=True)
class Options:
    """Keys of the method."""

    q: Annotated[
        float,
        Range(low=0.0, high=1.0),
        Searched(0.0, 1.0),
        Doc(
            "q of the biased classifier's generalised cross entropy (1 - p^q) / q; 0 is the cross entropy. "
            "To be searched (WCL paper 6.2): where classes are noisy, as in COMPAS, a large one makes the "
            "noise weigh most"
        ),
    ] = 0.7
    memory: Annotated[
        float,
        Range(low=0.0, below=1.0),
        Doc("share of the old value in a sample's running loss"),
    ] = 0.7


def keys(method: Section) -> Iterator[Knob]:
    """Yield the keys of a `method` section."""
    yield from knobs(Options)
    yield from balance_knobs(method)


def needs(method: Section) -> Needs:
    """Return the needs: the classes alone."""
    return Needs(labels="name")


def build(method: Section, facts: Facts, new_network: "NewNetwork") -> "Method":
    """Build the method of a complete, checked `method` section."""
    from study.methods.two_networks import LearningFromFailure

    asked = options(Options, method)
    return LearningFromFailure(asked.q, asked.memory, facts, new_network(), new_network())
