"""laftr: a classifier of rows from whose features, and the class, an adversary cannot tell the bias.

LAFTR for equalized odds, Madras et al. 2018; WCL paper Table 3.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from study.data.dataset import Facts
from study.knobs import Knob, Section, knobs, options
from study.methods.balance import balance_knobs
from study.methods.debiasing import AdversaryOptions, source_knobs
from study.methods.needs import Needs

if TYPE_CHECKING:
    from study.methods.batch import Method, NewNetwork

NAMES = ["laftr"]


def keys(method: Section) -> Iterator[Knob]:
    """Yield the keys of a `method` section."""
    yield from knobs(AdversaryOptions)
    yield from balance_knobs(method)
    yield from source_knobs(method, takes_features=False, takes_unknown=False)


def needs(method: Section) -> Needs:
    """Return the needs: a table with bias labels."""
    return Needs(labels="name", bias="name", only_tables=True)


def build(method: Section, facts: Facts, new_network: "NewNetwork") -> "Method":
    """Build the method of a complete, checked `method` section."""
    from study.methods.classifiers import Laftr

    return Laftr(options(AdversaryOptions, method), facts, new_network())
