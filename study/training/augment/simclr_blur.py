"""simclr_blur: crop, flip, colour jitter, greyscale and blur: the views of DCL and HCL, after SimCLR."""

from collections.abc import Sequence

from study.training.augment.inputs import colour_images as suits
from study.training.augment.operations import Operation
from study.training.augment.operations.blur import GaussianBlur
from study.training.augment.operations.colour import ColourJitter, Greyscale
from study.training.augment.operations.crop import ResizedCrop
from study.training.config import TrainOptions

__all__ = ["IS_RANDOM", "operations", "suits"]

IS_RANDOM = True


def operations(options: TrainOptions) -> Sequence[Operation]:
    return (
        ResizedCrop(options.crop_size, options.crop_scale or 0.08),
        ColourJitter(0.4 * options.jitter, 0.1 * options.jitter),
        Greyscale(),
        GaussianBlur(),
    )
