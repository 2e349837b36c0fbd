"""just_train_twice: a second training, where what a first one got wrong weighs more (JTT, Liu et al. 2021)."""

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

NAMES = ["just_train_twice"]


@dataclass(frozen=True)
class Options:
    """Keys of the method."""

    identification: Annotated[
        float,
        Range(above=0.0, below=1.0),
        Searched(0.05, 0.5),
        Doc("share of the epochs that train the first network, at least one; the rest trains the second"),
    ] = 0.2
    upweight: Annotated[
        float,
        Range(low=1.0),
        Searched(4.0, 100.0, log=True),
        Doc("weight in the second training of a sample that the first network got wrong (lambda_up)"),
    ] = 20.0


def keys(method: Section) -> Iterator[Knob]:
    """Yield the keys of a `method` section."""
    yield from knobs(Options)
    yield from balance_knobs(method)


def needs(method: Section) -> Needs:
    """Return the needs: the classes alone."""
    return Needs(labels="name", epochs=("name", 2), total="identification")


def build(method: Section, facts: Facts, new_network: "NewNetwork") -> "Method":
    """Build the method of a complete, checked `method` section."""
    from study.methods.two_networks import JustTrainTwice

    asked = options(Options, method)
    return JustTrainTwice(asked.identification, asked.upweight, facts, new_network(), new_network())
