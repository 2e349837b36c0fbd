"""wcl: two encoders without labels; what the biased one finds hard weighs more for the debiased one (WCL paper 5.2)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from typing_extensions import Doc

from study.data.dataset import Facts
from study.knobs import Knob, Section, knobs, options
from study.losses.difficulty import Form
from study.losses.ranges import DebiasedTemperature, Prior
from study.methods.balance import balance_knobs
from study.methods.needs import Needs

if TYPE_CHECKING:
    from study.methods.batch import Method, NewNetwork

NAMES = ["wcl"]


@dataclass(frozen=True)
class Options:
    """Keys of the method."""

    temperature: DebiasedTemperature = 0.5
    tau_plus: Annotated[
        Prior, Doc("probability that two samples share their class, in both losses; 0 in the triplet's is Eq. 5")
    ] = 0.1
    form: Form = "sum"


def keys(method: Section) -> Iterator[Knob]:
    """Yield the keys of a `method` section."""
    yield from knobs(Options)
    yield from balance_knobs(method)


def needs(method: Section) -> Needs:
    """Return the needs: two views that differ."""
    return Needs(views="name", varies=None)


def build(method: Section, facts: Facts, new_network: "NewNetwork") -> "Method":
    """Build the method of a complete, checked `method` section."""
    from study.methods.two_networks import Wcl

    asked = options(Options, method)
    return Wcl(asked.temperature, asked.tau_plus, asked.form, new_network(), new_network())
