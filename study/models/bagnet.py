"""bagnet: a network that sees small patches only (Brendel & Bethge 2019), to capture a bias such as texture.

With the blocks of ResNet-18 it is the bias-capturing model of the FairKL paper (appendix B.2.4) and of SoftCon.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from torch import Tensor, nn
from typing_extensions import Doc

from study.data.dataset import Facts
from study.knobs import Range
from study.models.encoder import Encoder, kaiming, not_images, size

WIDE_STAGES = {9: 2, 17: 3, 33: 4}  # stages that begin with a 3 x 3 convolution, by receptive field


@dataclass(frozen=True)
class Options:
    """Keys of the `model` section."""

    receptive_field: Annotated[Literal[9, 17, 33], Doc("side of the patches, in pixels")] = 17
    width: Annotated[
        int, Range(low=1), Doc("channels of the first stage, doubled in each of the three further ones")
    ] = 64


class Block(nn.Module):
    """A residual block: a 3 x 3 or 1 x 1 convolution without padding, then a 1 x 1 convolution."""

    def __init__(self, inputs: int, outputs: int, side: int, stride: int) -> None:
        super().__init__()
        self.margin = side // 2
        self.layers = nn.Sequential(
            nn.Conv2d(inputs, outputs, side, stride, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        same = inputs == outputs and stride == 1
        shortcut = (nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Sequential(*(() if same else shortcut))

    def forward(self, maps: Tensor) -> Tensor:
        """Transform maps (B, C, H, W); the shortcut takes the middle of what the convolution sees."""
        rows, columns = (slice(self.margin, side - self.margin) for side in maps.shape[2:])
        return (self.layers(maps) + self.shortcut(maps[..., rows, columns])).relu()


class BagNet(Encoder):
    """A 3 x 3 convolution and four stages of two blocks; the mean of features that see one patch each."""

    def __init__(self, channels: int, options: Options) -> None:
        super().__init__()
        width, wide = options.width, WIDE_STAGES[options.receptive_field]
        layers: list[nn.Module] = [nn.Conv2d(channels, width, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        inputs = width
        for stage, stride in enumerate((2, 2, 2, 1)):
            outputs = width * 2**stage
            layers.append(Block(inputs, outputs, 3 if stage < wide else 1, stride))
            layers.append(Block(outputs, outputs, 1, 1))
            inputs = outputs
        self.layers = nn.Sequential(*layers)
        self.features = inputs
        kaiming(self)

    def patches(self, images: Tensor) -> Tensor:
        """Compute features (B, features, rows, columns): that at (i, j) sees the patch with the corner 8 * (i, j)."""
        maps: Tensor = self.layers(images)
        return maps

    def forward(self, images: Tensor) -> Tensor:
        return self.patches(images).mean((2, 3))


def unsuited(options: Options, facts: Facts) -> str | None:
    """Say why the data do not suit: they must be images with room for one patch."""
    if (problem := not_images(facts)) is not None:
        return problem
    if min(facts.shape[1:]) >= options.receptive_field:
        return None
    return f"with receptive_field {options.receptive_field} takes images of at least that, not of {size(facts)} pixels"


def build(options: Options, facts: Facts) -> Encoder:
    """Build the network for images of `facts.shape`: 8 * width features."""
    return BagNet(facts.shape[0], options)
