"""mlp: fully connected layers for tables, as the WCL paper's section 6.2 has them."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from torch import Tensor, nn
from typing_extensions import Doc

from study.data.dataset import Facts
from study.knobs import Range
from study.models.encoder import Encoder, not_rows

Width = Annotated[int, Range(low=1)]


@dataclass(frozen=True)
class Options:
    """Keys of the `model` section."""

    depth: Annotated[int, Range(low=1), Doc("number of layers")] = 2
    width: Annotated[Width, Doc("units of each layer but the last")] = 128
    features: Annotated[Width, Doc("units of the last layer")] = 128


class MLP(Encoder):
    """Linear, ReLU and then batch norm, `depth` times: the features have mean 0, so that cosines have both signs."""

    def __init__(self, columns: int, options: Options) -> None:
        super().__init__()
        widths = (columns, *[options.width] * (options.depth - 1), options.features)
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise(widths):
            layers += [nn.Linear(inputs, outputs), nn.ReLU(), nn.BatchNorm1d(outputs)]
        self.layers = nn.Sequential(*layers)
        self.features = options.features

    def forward(self, rows: Tensor) -> Tensor:
        return self.layers(rows)


def unsuited(options: Options, facts: Facts) -> str | None:
    """Say why the data do not suit: they must be a table."""
    return not_rows(facts)


def build(options: Options, facts: Facts) -> Encoder:
    """Build the network for rows of `facts.shape`."""
    return MLP(facts.shape[0], options)
