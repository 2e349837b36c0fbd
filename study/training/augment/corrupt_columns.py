"""corrupt_columns: values of a table's row replaced by those of other rows, as in SCARF (Bahri et al., 2022)."""

from collections.abc import Sequence

from study.training.augment.inputs import tables as suits
from study.training.augment.operations import Operation
from study.training.augment.operations.columns import Corruption
from study.training.config import TrainOptions

__all__ = ["IS_RANDOM", "operations", "suits"]

IS_RANDOM = True


def operations(options: TrainOptions) -> Sequence[Operation]:
    return (Corruption(options.corruption),)
