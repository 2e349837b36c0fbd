"""torchvision's ResNets as encoders, with the stem that small images need."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from torch import Tensor, nn
from typing_extensions import Doc

from study.data.dataset import Facts
from study.models.backbone import Backbone, BackboneOptions, TrainedStages, is_file, plain, wrong_weights
from study.models.encoder import Encoder, kaiming, not_images


@dataclass(frozen=True)
class ResNetOptions(BackboneOptions):
    """Keys of the `model` section."""

    stem: Annotated[
        Literal["cifar", "imagenet"],
        Doc(
            "first layers: `imagenet` shrinks an image fourfold, `cifar` (3 x 3, stride 1, no pooling) does "
            "not; with `weights` the default is `imagenet`"
        ),
    ] = "cifar"


def resnet(name: str, options: ResNetOptions, facts: Facts) -> Encoder:
    """Build the network `name` of torchvision for images of `facts.shape`, initialised as there."""
    net: Any = plain(name, options.weights, facts.shape[1])
    channels = facts.shape[0]
    if options.stem == "cifar":
        net.conv1 = nn.Conv2d(channels, 64, 3, padding=1, bias=False)
        net.maxpool = nn.Identity()
        kaiming(net.conv1)
    elif channels != 3:
        net.conv1 = nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)
        kaiming(net.conv1)
    return Backbone(net, name, options, facts)


class LastStages(TrainedStages):
    """The last stages of a ResNet, see `TrainedStages`."""

    def __init__(self, backbone: Backbone, trained: str, lr_factor: float) -> None:
        super().__init__(backbone, trained, lr_factor)
        net: Any = deepcopy(backbone.net)
        self.stages = nn.Sequential(*([net.layer3] if self.first == "layer2" else []), net.layer4)

    def forward(self, maps: Tensor) -> Tensor:
        features: Tensor = self.stages(maps).mean((2, 3))
        return features


def unsuited_resnet(name: str, options: ResNetOptions, facts: Facts) -> str | None:
    """Say why the data or keys do not suit: data must be images, weights need their own stem."""
    if (problem := not_images(facts)) is not None:
        return problem
    if options.weights is not None and not is_file(options.weights) and options.stem != "imagenet":
        return f"with weights {options.weights} needs model.stem: imagenet, not {options.stem}"
    return wrong_weights(name, options, facts)
