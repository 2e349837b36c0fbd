"""linear: one fully connected layer for tables; with a classifier behind it a logistic regression."""

from dataclasses import dataclass
from typing import Annotated

from torch import Tensor, nn
from typing_extensions import Doc

from study.data.dataset import Facts
from study.knobs import Range
from study.models.encoder import Encoder, not_rows


@dataclass(frozen=True)
class Options:
    """Keys of the `model` section."""

    features: Annotated[int, Range(low=1), Doc("width of the features")] = 128


class Linear(Encoder):
    """A layer without activation: a linear classifier of its features is also one of the rows.

    Since the classifier's weights are then a product of two matrices, `train.weight_decay` holds them to few directions
    of the rows, not only to short weights.
    """

    def __init__(self, columns: int, options: Options) -> None:
        super().__init__()
        self.layer = nn.Linear(columns, options.features)
        self.features = options.features

    def forward(self, rows: Tensor) -> Tensor:
        return self.layer(rows)


def unsuited(options: Options, facts: Facts) -> str | None:
    """Say why the data do not suit: they must be a table."""
    return not_rows(facts)


def build(options: Options, facts: Facts) -> Encoder:
    """Build the network for rows of `facts.shape`."""
    return Linear(facts.shape[0], options)
