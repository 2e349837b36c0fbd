"""EfficientNet-Lite0, with the weights that come as a Python package."""

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from study.models.backbone_network import TORCHVISION_CLASS_COUNT, Backbone, TrainedStages
from study.models.network_keys import LATE_STAGE_MODULES

STAGE_TABLE = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
"""Blocks, kernel, stride of the first block, expansion and channels of each stage (Tan and Le 2019, Table 1; the Lite
variant has no squeeze-and-excitation, ReLU6, and neither stem nor head scaled).
"""

STEM_CHANNELS, LAST_CHANNELS = 32, 1280


class SamePaddedConv(nn.Conv2d):
    """A convolution without bias, padded as TensorFlow's `SAME`, with which the weights were trained.

    An odd pixel of padding is at the right and at the bottom.
    """

    def __init__(self, channels: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__(channels, outputs, kernel, stride, groups=groups, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        kernel, stride = self.kernel_size[0], self.stride[0]
        pads = []
        for side in (images.shape[3], images.shape[2]):
            total = max((-(-side // stride) - 1) * stride + kernel - side, 0)
            pads += [total // 2, total - total // 2]
        padded = functional.pad(images, pads) if any(pads) else images
        return functional.conv2d(padded, self.weight, None, self.stride, 0, 1, self.groups)


def make_batch_norm(channels: int) -> nn.BatchNorm2d:
    """Make a batch norm as the weights were trained with it."""
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


class InvertedBottleneck(nn.Module):
    """A mobile inverted bottleneck; parts are named as in the package's file."""

    def __init__(self, channels: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        width = channels * expansion
        self.expands, self.adds = expansion > 1, stride == 1 and channels == outputs
        if self.expands:
            self._expand_conv, self._bn0 = SamePaddedConv(channels, width, 1), make_batch_norm(width)
        self._depthwise_conv, self._bn1 = SamePaddedConv(width, width, kernel, stride, width), make_batch_norm(width)
        self._project_conv, self._bn2 = SamePaddedConv(width, outputs, 1), make_batch_norm(outputs)

    def forward(self, images: Tensor) -> Tensor:
        wide = functional.relu6(self._bn0(self._expand_conv(images))) if self.expands else images
        wide = functional.relu6(self._bn1(self._depthwise_conv(wide)))
        narrow: Tensor = self._bn2(self._project_conv(wide))
        return images + narrow if self.adds else narrow


class EfficientNetLite0(nn.Module):
    """The network with its classifier, (B, 3, H, W) to (B, 1000); parts are named as in the package's file."""

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem, self._bn0 = SamePaddedConv(3, STEM_CHANNELS, 3, 2), make_batch_norm(STEM_CHANNELS)
        blocks, channels = [], STEM_CHANNELS
        for count, kernel, stride, expansion, outputs in STAGE_TABLE:
            for place in range(count):
                blocks.append(InvertedBottleneck(channels, outputs, kernel, 1 if place else stride, expansion))
                channels = outputs
        self._blocks = nn.ModuleList(blocks)
        self._conv_head, self._bn1 = SamePaddedConv(channels, LAST_CHANNELS, 1), make_batch_norm(LAST_CHANNELS)
        self._fc = nn.Linear(LAST_CHANNELS, TORCHVISION_CLASS_COUNT)

    def forward(self, images: Tensor) -> Tensor:
        images = functional.relu6(self._bn0(self._conv_stem(images)))
        for block in self._blocks:
            images = block(images)
        images = functional.relu6(self._bn1(self._conv_head(images)))
        scores: Tensor = self._fc(images.mean((2, 3)))
        return scores


class EfficientNetStages(TrainedStages):
    """The last stages of the network, see `TrainedStages`."""

    def __init__(self, backbone: Backbone, trained: str, lr_factor: float) -> None:
        super().__init__(backbone, trained, lr_factor)
        first, *ends = (
            int(name.rpartition(".")[2]) + 1
            for name in (self.first, *(name for name, _ in LATE_STAGE_MODULES["efficientnet_lite0"]))
        )
        net: Any = deepcopy(backbone.net)
        self._blocks, self._conv_head, self._bn1 = net._blocks[first:], net._conv_head, net._bn1
        self._ends = [end - first for end in ends if end > first]

    def forward(self, maps: Tensor) -> Tensor:
        parts = []
        for number, block in enumerate(self._blocks, 1):
            maps = block(maps)
            parts += [maps.mean((2, 3))] if number in self._ends else []
        maps = functional.relu6(self._bn1(self._conv_head(maps)))
        return torch.cat([*parts, maps.mean((2, 3))], 1)
