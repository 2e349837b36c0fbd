"""bias_con: rotation and colour jitter, neither crop nor flip: BiasCon's views of Biased-MNIST."""

from collections.abc import Sequence

from study.training.augment.inputs import colour_images as suits
from study.training.augment.operations import Operation
from study.training.augment.operations.colour import ColourJitter
from study.training.augment.operations.rotation import Rotation
from study.training.config import TrainOptions

__all__ = ["IS_RANDOM", "operations", "suits"]

IS_RANDOM = True


def operations(options: TrainOptions) -> Sequence[Operation]:
    return (Rotation(20.0), ColourJitter(0.4 * options.jitter, 0.1 * options.jitter))
