"""Networks of a few layers, for images and for tables: the modules that the files of their names build."""

import math
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from study.models.encoder import Encoder, init_kaiming


class LeNet(Encoder):
    """5 x 5 convolutions to 6, 16 and 120 channels, mean pooling after the first two, 84 features without activation.

    Works on `side` pixels, 32; smaller images are padded with zeros on every side, 28 x 28 as LeCun et al. 1998 did.
    """

    features = 84

    def __init__(self, channels: int, side: int) -> None:
        super().__init__()
        self.side = side
        self.layers = nn.Sequential(
            *(nn.Conv2d(channels, 6, 5), nn.Tanh(), nn.AvgPool2d(2)),
            *(nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2)),
            # the third convolution sees its 5 x 5 input once: as a product of matrices it is several times faster
            *(nn.Flatten(), nn.Linear(16 * 5 * 5, 120), nn.Tanh()),
        )
        self.last = nn.Linear(120, self.features)

    def forward(self, images: Tensor) -> Tensor:
        margins = [(self.side - side) // 2 for side in images.shape[:1:-1]]
        padded = functional.pad(images, [margin for margin in margins for _ in range(2)])
        return self.last(self.layers(padded))


class Linear(Encoder):
    """A layer without activation: a linear classifier of its features is also one of the rows.

    Since the classifier's weights are then a product of two matrices, `train.weight_decay` holds them to few directions
    of the rows, not only to short weights.
    """

    def __init__(self, columns: int, features: int) -> None:
        super().__init__()
        self.layer = nn.Linear(columns, features)
        self.features = features

    def forward(self, rows: Tensor) -> Tensor:
        return self.layer(rows)


class MLP(Encoder):
    """Linear, ReLU and then batch norm, `depth` times: the features have mean 0, so that cosines have both signs."""

    def __init__(self, columns: int, depth: int, width: int, features: int) -> None:
        super().__init__()
        widths = (columns, *[width] * (depth - 1), features)
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise(widths):
            layers += [nn.Linear(inputs, outputs), nn.ReLU(), nn.BatchNorm1d(outputs)]
        self.layers = nn.Sequential(*layers)
        self.features = features

    def forward(self, rows: Tensor) -> Tensor:
        return self.layers(rows)


SIMPLE_CONV_NET_CHANNELS = (16, 32, 64, 128)


ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU}


class SimpleConvNet(Encoder):
    """Convolution and batch norm four times, ReLU after the first three, mean over positions: 128 features.

    Nothing is pooled in between, so an image costs about 0.42 billion multiply-adds at 28 x 28. Convolutions have no
    bias, which batch norm would take out again (the protocol counts 240 parameters more for them).
    """

    features = SIMPLE_CONV_NET_CHANNELS[-1]

    def __init__(self, channels: int, activation: str) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise((channels, *SIMPLE_CONV_NET_CHANNELS)):
            layers += [nn.Conv2d(inputs, outputs, 7, padding=3, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1], ACTIVATIONS[activation]())
        init_kaiming(self)

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images).mean((2, 3))


SMALL_CONV_NET_GRID = 4
"""Positions along the longer side that the linear layer sees."""


MAX_SIDE_TO_MAX_POOL = 32
"""Pixels of a side up to which it is halved by max pooling; a longer one is halved by stride, at a quarter the cost."""


WIDEST_CHANNELS_FACTOR = 4
"""Channels of the widest convolution, and features, in multiples of `width`."""


class SmallConvNet(Encoder):
    """Convolution, batch norm and ReLU, at least twice, then a linear layer.

    Each convolution halves the image until 4 x 4 positions are left, and the linear layer, without activation, sees
    them all. Measured (`tests/benchmarks/networks.py`): with the mean over positions instead, it does not learn digits
    of 28 pixels and more, since each position sees a small patch and the mean forgets where. A ReLU behind the linear
    layer costs accuracy, too: the cosines of features that have one sign are never below 0.

    Args:
        shape: of the images that it is trained on, (channels, height, width). It takes others, too: their grid is
            averaged to that of this shape.
        width: channels of the first convolution.
    """

    def __init__(self, shape: tuple[int, ...], width: int) -> None:
        super().__init__()
        inputs, *sides = shape
        halvings = math.ceil(math.log2(max(sides) / SMALL_CONV_NET_GRID))
        layers: list[nn.Module] = []
        for index in range(max(2, halvings)):
            outputs = width * min(2**index, WIDEST_CHANNELS_FACTOR)
            halve = index < halvings
            by_stride = max(sides) > MAX_SIDE_TO_MAX_POOL
            layers.append(nn.Conv2d(inputs, outputs, 3, stride=2 if by_stride else 1, padding=1, bias=False))
            layers += [nn.BatchNorm2d(outputs), nn.ReLU()]
            if halve and not by_stride:
                layers.append(nn.MaxPool2d(2, ceil_mode=True))
            sides = [math.ceil(side / 2) for side in sides] if halve else sides
            inputs = outputs
        self.layers = nn.Sequential(*layers)
        self.grid = sides[0], sides[1]
        self.features = WIDEST_CHANNELS_FACTOR * width
        self.last = nn.Linear(inputs * math.prod(sides), self.features)

    def forward(self, images: Tensor) -> Tensor:
        positions = self.layers(images)
        if positions.shape[2:] != self.grid:
            positions = functional.adaptive_avg_pool2d(positions, self.grid)
        return self.last(torch.flatten(positions, 1))


WIDE_STAGES_BY_RECEPTIVE_FIELD = {9: 2, 17: 3, 33: 4}  # stages that begin with a 3 x 3 convolution, by receptive field


class BagNetBlock(nn.Module):
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

    def __init__(self, channels: int, receptive_field: int, width: int) -> None:
        super().__init__()
        wide = WIDE_STAGES_BY_RECEPTIVE_FIELD[receptive_field]
        layers: list[nn.Module] = [nn.Conv2d(channels, width, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        inputs = width
        for stage, stride in enumerate((2, 2, 2, 1)):
            outputs = width * 2**stage
            layers.append(BagNetBlock(inputs, outputs, 3 if stage < wide else 1, stride))
            layers.append(BagNetBlock(outputs, outputs, 1, 1))
            inputs = outputs
        self.layers = nn.Sequential(*layers)
        self.features = inputs
        init_kaiming(self)

    def patch_features(self, images: Tensor) -> Tensor:
        """Compute features (B, features, rows, columns): that at (i, j) sees the patch with the corner 8 * (i, j)."""
        maps: Tensor = self.layers(images)
        return maps

    def forward(self, images: Tensor) -> Tensor:
        return self.patch_features(images).mean((2, 3))
