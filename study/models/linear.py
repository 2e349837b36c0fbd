"""linear: one fully connected layer for tables; with a classifier behind it a logistic regression."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from typing_extensions import Doc

from study.data.dataset import Facts
from study.knobs import Range
from study.models.network_keys import not_rows

if TYPE_CHECKING:
    from study.models.encoder import Encoder


@dataclass(frozen=True)
class Options:
    """Keys of the `model` section."""

    features: Annotated[int, Range(low=1), Doc("width of the features")] = 128


def unsuited(options: Options, facts: Facts) -> str | None:
    """Say why the data do not suit: they must be a table."""
    return not_rows(facts)


def build(options: Options, facts: Facts) -> "Encoder":
    """Build the network for rows of `facts.shape`."""
    from study.models.small_networks import Linear

    return Linear(facts.shape[0], options.features)
