"""crop_flip: random resized crop and flip, no change of colour: the CCL-K paper's views of ColorMNIST."""

from collections.abc import Sequence

from study.training.augment.inputs import images as suits
from study.training.augment.operations import Operation
from study.training.augment.operations.crop import ResizedCrop
from study.training.config import TrainOptions

__all__ = ["IS_RANDOM", "operations", "suits"]

IS_RANDOM = True


def operations(options: TrainOptions) -> Sequence[Operation]:
    return (ResizedCrop(options.crop_size, options.crop_scale or 0.08, interpolation="bicubic"),)
