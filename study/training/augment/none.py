"""none: samples as they are. All views of a sample are equal: a loss of pairs of views learns nothing from them."""

from collections.abc import Sequence

from study.training.augment.inputs import anything as suits
from study.training.augment.operations import Operation
from study.training.config import TrainOptions

__all__ = ["IS_RANDOM", "operations", "suits"]

IS_RANDOM = False


def operations(options: TrainOptions) -> Sequence[Operation]:
    return ()
