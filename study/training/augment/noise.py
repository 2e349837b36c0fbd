"""noise: Gaussian noise on the standardised columns of a table."""

from collections.abc import Sequence

from study.training.augment.inputs import tables as suits
from study.training.augment.operations import Operation
from study.training.augment.operations.columns import Noise
from study.training.config import TrainOptions

__all__ = ["IS_RANDOM", "operations", "suits"]

IS_RANDOM = True


def operations(options: TrainOptions) -> Sequence[Operation]:
    return (Noise(options.noise),)
