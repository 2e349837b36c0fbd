"""lenet: LeNet-5 with tanh, the CCL-K paper's network for ColorMNIST (protocol 2)."""

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional

from study.data.dataset import Facts
from study.models.encoder import Encoder, not_images, size

IMAGE_SIDE = 32


@dataclass(frozen=True)
class Options:
    """Keys of the `model` section: there are none."""


class LeNet(Encoder):
    """5 x 5 convolutions to 6, 16 and 120 channels, mean pooling after the first two, 84 features without activation.

    Works on 32 x 32 pixels; smaller images are padded with zeros on every side, 28 x 28 as LeCun et al. 1998 did.
    """

    features = 84

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(channels, 6, 5), nn.Tanh(), nn.AvgPool2d(2)),
            *(nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2)),
            # the third convolution sees its 5 x 5 input once: as a product of matrices it is several times faster
            *(nn.Flatten(), nn.Linear(16 * 5 * 5, 120), nn.Tanh()),
        )
        self.last = nn.Linear(120, self.features)

    def forward(self, images: Tensor) -> Tensor:
        margins = [(IMAGE_SIDE - side) // 2 for side in images.shape[:1:-1]]
        padded = functional.pad(images, [margin for margin in margins for _ in range(2)])
        return self.last(self.layers(padded))


def unsuited(options: Options, facts: Facts) -> str | None:
    """Say why the data do not suit: they must be images of 28 or 32 pixels a side, with any number of channels."""
    if (problem := not_images(facts)) is not None:
        return problem
    if all(side in (28, IMAGE_SIDE) for side in facts.shape[1:]):
        return None
    return f"takes images of 28 x 28 or {IMAGE_SIDE} x {IMAGE_SIDE} pixels, not of {size(facts)}"


def build(options: Options, facts: Facts) -> Encoder:
    """Build the network for images of `facts.shape`."""
    return LeNet(facts.shape[0])
