"""simclr: crop, flip, colour jitter and greyscale: the FSCL paper's views of CelebA and UTKFace."""

from collections.abc import Sequence

from study.training.augment.inputs import colour_images as suits
from study.training.augment.operations import Operation
from study.training.augment.operations.colour import ColourJitter, Greyscale
from study.training.augment.operations.crop import ResizedCrop
from study.training.config import TrainOptions

__all__ = ["IS_RANDOM", "operations", "suits"]

IS_RANDOM = True


def operations(options: TrainOptions) -> Sequence[Operation]:
    return (
        ResizedCrop(options.crop_size, options.crop_scale or 0.2),
        ColourJitter(0.4 * options.jitter, 0.1 * options.jitter),
        Greyscale(),
    )
