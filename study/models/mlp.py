"""mlp: fully connected layers for tables, as the WCL paper's section 6.2 has them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from typing_extensions import Doc

from study.data.dataset import Facts
from study.knobs import Range
from study.models.network_keys import Width, not_rows

if TYPE_CHECKING:
    from study.models.encoder import Encoder


@dataclass(frozen=True)
class Options:
    """Keys of the `model` section."""

    depth: Annotated[int, Range(low=1), Doc("number of layers")] = 2
    width: Annotated[Width, Doc("units of each layer but the last")] = 128
    features: Annotated[Width, Doc("units of the last layer")] = 128


def unsuited(options: Options, facts: Facts) -> str | None:
    """Say why the data do not suit: they must be a table."""
    return not_rows(facts)


def build(options: Options, facts: Facts) -> "Encoder":
    """Build the network for rows of `facts.shape`."""
    from study.models.small_networks import MLP

    return MLP(facts.shape[0], options.depth, options.width, options.features)
