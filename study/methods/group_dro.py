"""group_dro: the worst group of class and bias counts most (Group DRO, Sagawa et al. 2020; FSCL paper Table 10)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from typing_extensions import Doc

from study.data.dataset import Facts
from study.knobs import Knob, Range, Searched, Section, knobs, options
from study.methods.balance import balance_knobs
from study.methods.debiasing import source_knobs
from study.methods.needs import Needs

if TYPE_CHECKING:
    from study.methods.batch import Method, NewNetwork

NAMES = ["group_dro"]


@dataclass(frozen=True)
class Options:
    """Keys of the method. Its strong L2 penalty is `train.weight_decay` (FSCL Table 10: search both)."""

    group_step: Annotated[float, Range(low=0.0), Doc("step size of the groups' weights")] = 0.01
    group_adjustment: Annotated[
        float,
        Range(low=0.0),
        Searched(0.0, 5.0),
        Doc("C: a group of n training samples has C / sqrt(n) added to its loss"),
    ] = 0.0


def keys(method: Section) -> Iterator[Knob]:
    """Yield the keys of a `method` section."""
    yield from knobs(Options)
    yield from balance_knobs(method)
    yield from source_knobs(method, takes_features=False, takes_unknown=False)


def needs(method: Section) -> Needs:
    """Return the needs: bias labels."""
    return Needs(labels="name", bias="name")


def build(method: Section, facts: Facts, new_network: "NewNetwork") -> "Method":
    """Build the method of a complete, checked `method` section."""
    from study.methods.classifiers import GroupDro

    asked = options(Options, method)
    return GroupDro(asked.group_step, asked.group_adjustment, facts, new_network())
