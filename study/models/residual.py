"""torchvision's ResNets as encoders, with the stem that small images need."""

from dataclasses import dataclass
from typing import Annotated, Literal, cast

from torch import Tensor, nn
from typing_extensions import Doc

from study.data.dataset import Facts
from study.models.encoder import Encoder, kaiming


@dataclass(frozen=True)
class ResNetOptions:
    """Keys of the `model` section."""

    stem: Annotated[
        Literal["cifar", "imagenet"],
        Doc("`imagenet` shrinks an image fourfold before the blocks, `cifar` (3 x 3, stride 1, no pooling) does not"),
    ] = "cifar"


class ResNet(Encoder):
    """A network of torchvision, initialised as there, up to the features before its classifier.

    Args:
        name: of a function of torchvision.models that makes one.
        stem: see `ResNetOptions`.
        channels: of the images.
    """

    def __init__(self, name: str, stem: str, channels: int) -> None:
        super().__init__()
        from torchvision.models import get_model  # here: importing it takes longer than a small trial's epoch

        self.net = get_model(name, weights=None)
        self.features = cast(nn.Linear, self.net.fc).in_features
        self.net.fc = nn.Identity()
        if stem == "cifar":
            self.net.conv1 = nn.Conv2d(channels, 64, 3, padding=1, bias=False)
            self.net.maxpool = nn.Identity()
            kaiming(self.net.conv1)
        elif channels != 3:
            self.net.conv1 = nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)
            kaiming(self.net.conv1)

    def forward(self, images: Tensor) -> Tensor:
        return self.net(images)


def resnet(name: str, options: ResNetOptions, facts: Facts) -> Encoder:
    """The network `name` of torchvision for images of `facts.shape`."""
    return ResNet(name, options.stem, facts.shape[0])
