"""equalized_odds_postprocessing: a cross entropy classifier with thresholds per bias class (WCL paper Table 3).

Hardt et al. 2016. Training knows nothing of it; the thresholds are fitted when the classifier is evaluated.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from study.data.dataset import Facts
from study.knobs import Knob, Section
from study.methods.balance import balance_knobs
from study.methods.needs import PLAIN, Needs

if TYPE_CHECKING:
    from study.methods.batch import Method, NewNetwork

NAMES = ["equalized_odds_postprocessing"]


def keys(method: Section) -> Iterator[Knob]:
    """Yield the keys of a `method` section."""
    yield from balance_knobs(method)


def needs(method: Section) -> Needs:
    """Return the needs: two classes and bias labels."""
    return Needs(labels="name", bias="name", only_binary=True)


def build(method: Section, facts: Facts, new_network: "NewNetwork") -> "Method":
    """Build the method of a complete, checked `method` section."""
    from study.methods.classifiers import EqualizedOddsPostprocessing

    return EqualizedOddsPostprocessing({"name": PLAIN}, facts, new_network())
