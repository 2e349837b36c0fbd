"""Layers of N networks as one: (N * B, ...) in and out, the samples of row n behind those of row n - 1."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from study.models import Encoder
from study.training.stack.forms import LANES, convolution, form

OF_IMAGES = (nn.ReLU, nn.Tanh, nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.Identity)
SAME = (*OF_IMAGES, nn.Flatten)
"""Layers without state that treat samples apart: one of them serves all rows."""

Row = Callable[[Tensor], Tensor]
"""A layer of one row: (B, ...) to (B, ...)."""


@dataclass(frozen=True)
class Joined:
    """A parameter of all rows.

    Attributes:
        stacked: what a stack trains; row n's elements follow those of row n - 1 in memory.
        rows: the rows' own, views of it.
    """

    stacked: nn.Parameter
    rows: list[nn.Parameter]


@dataclass
class Joiner:
    """Lays tensors of N rows beside each other; the rows' become views.

    Attributes:
        parameters: those that were joined.
    """

    parameters: list[Joined] = field(default_factory=list)

    def parameter(self, rows: Sequence[Tensor | None], end_to_end: bool = False) -> nn.Parameter | None:
        """The rows' parameters as one, (N, ...), or along their first dimension `end_to_end`; None where they are."""
        own = [cast(nn.Parameter, row) for row in rows if row is not None]
        if not own:
            return None
        stacked = nn.Parameter(beside(own, end_to_end), requires_grad=own[0].requires_grad)
        self.parameters.append(Joined(stacked, own))
        return stacked


def beside(rows: Sequence[Tensor], end_to_end: bool = False, like: Tensor | None = None) -> Tensor:
    """The rows in one new tensor, (N, ...) or along their first dimension; they become views of it.

    Args:
        like: its order in memory is that of each row; by default the first row's.
    """
    first = rows[0] if like is None else like
    shape, size = first.shape, first.numel()
    reach = 1 + sum((length - 1) * step for length, step in zip(shape, first.stride(), strict=True))
    stride = first.stride() if reach == size else torch.empty(shape, device="meta").stride()
    buffer = torch.empty(len(rows) * size, dtype=rows[0].dtype, device=rows[0].device)
    for place, row in enumerate(rows):
        part = buffer.as_strided(shape, stride, place * size)
        part.copy_(row.detach())
        row.data = part
    if end_to_end:
        return buffer.as_strided((len(rows) * shape[0], *shape[1:]), stride)
    return buffer.as_strided((len(rows), *shape), (size, *stride))


class StackedLayer(nn.Module):
    """A layer of each row.

    Attributes:
        rows: N.
        shared: an input of so many samples, (B, ...), is the same for all rows; 0: each row has its own, (N * B, ...).
    """

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.rows, self.shared = rows, 0

    def is_shared(self, x: Tensor) -> bool:
        """Whether an input is the same for all rows."""
        return self.rows > 1 and len(x) == self.shared

    def by_row(self, x: Tensor) -> Tensor:
        """An input as (N, B, ...), without a copy."""
        return x.expand(self.rows, *x.shape) if self.is_shared(x) else x.unflatten(0, (self.rows, -1))


class StackedLinear(StackedLayer):
    """`nn.Linear` of each row: (N * B, inputs) to (N * B, outputs)."""

    def __init__(self, layers: Sequence[nn.Linear], joiner: Joiner) -> None:
        super().__init__(len(layers))
        self.weight = joiner.parameter([layer.weight for layer in layers])
        self.bias = joiner.parameter([layer.bias for layer in layers])

    def forward(self, x: Tensor) -> Tensor:
        inputs, weight = self.by_row(x), cast(Tensor, self.weight).mT
        product = inputs @ weight if self.bias is None else torch.baddbmm(self.bias[:, None], inputs, weight)
        return product.flatten(0, 1)


class StackedConv2d(StackedLayer):
    """`nn.Conv2d` of each row: one convolution in N groups on a GPU, N of them on a CPU, see `row_by_row`."""

    def __init__(self, layers: Sequence[nn.Conv2d], joiner: Joiner) -> None:
        super().__init__(len(layers))
        first = layers[0]
        self.weight = joiner.parameter([layer.weight for layer in layers], end_to_end=True)
        self.bias = joiner.parameter([layer.bias for layer in layers], end_to_end=True)
        self.groups = first.groups
        self.options: dict[str, Any] = {
            "stride": first.stride,
            "padding": first.padding,
            "dilation": first.dilation,
        }

    def forward(self, x: Tensor) -> Tensor:
        return row_by_row(x, [self]) if x.is_cpu else by_channels(x, [self])

    def of_channels(self, x: Tensor) -> Tensor:
        """Of all rows' channels, (B, N * C, H, W), or of images that are the same for all, (B, C, H, W)."""
        weight = cast(Tensor, self.weight)
        groups = x.shape[1] // weight.shape[1]
        return functional.conv2d(x, weight, self.bias, groups=groups, **self.options)

    def is_better_at_once(self, x: Tensor) -> bool:
        """Whether one convolution for all rows takes a CPU less time than one for each."""
        outputs = len(cast(Tensor, self.weight)) // self.rows
        return self.groups == 1 and self.is_shared(x) and bool(outputs % LANES)

    def of_rows(self) -> list[Row]:
        """The layer of each row."""
        parts = zip(_parts(self.weight, self.rows), _parts(self.bias, self.rows), strict=True)
        return [partial(self._of_a_row, weight, bias) for weight, bias in parts]

    def _of_a_row(self, weight: Tensor | None, bias: Tensor | None, x: Tensor) -> Tensor:
        if self.groups == 1 and not isinstance(self.options["padding"], str):
            return convolution(x, cast(Tensor, weight), bias, self.options)
        return functional.conv2d(x, cast(Tensor, weight), bias, groups=self.groups, **self.options)


class StackedBatchNorm(StackedLayer):
    """Batch normalisation of each row's channels, which are normalised one by one anyway."""

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor

    def __init__(self, layers: Sequence[nn.BatchNorm1d | nn.BatchNorm2d], joiner: Joiner) -> None:
        super().__init__(len(layers))
        first = layers[0]
        self.momentum, self.eps = cast(float, first.momentum), first.eps
        self.weight = joiner.parameter([layer.weight for layer in layers], end_to_end=True)
        self.bias = joiner.parameter([layer.bias for layer in layers], end_to_end=True)
        for name in ("running_mean", "running_var"):
            self.register_buffer(name, beside([getattr(layer, name) for layer in layers], end_to_end=True))
        counts = [cast(Tensor, layer.num_batches_tracked) for layer in layers]
        self.register_buffer("num_batches_tracked", beside(counts))

    def forward(self, x: Tensor) -> Tensor:
        return by_channels(x, [self])

    def of_channels(self, x: Tensor) -> Tensor:
        """Of all rows' channels, (B, N * C, ...)."""
        mean, variance, weight, bias = self._state()
        return self._normalised(mean, variance, weight, bias, x)

    def of_rows(self) -> list[Row]:
        """The layer of each row."""
        parts = zip(*(_parts(one, self.rows) for one in self._state()), strict=True)
        return [partial(self._normalised, *part) for part in parts]

    def _state(self) -> tuple[Tensor | None, ...]:
        """What a call takes; it is counted."""
        if self.training:
            self.num_batches_tracked.add_(1)
        return self.running_mean, self.running_var, self.weight, self.bias

    def _normalised(self, mean: Any, variance: Any, weight: Any, bias: Any, x: Tensor) -> Tensor:
        return functional.batch_norm(x, mean, variance, weight, bias, self.training, self.momentum, self.eps)


class StackedImageLayers(nn.Sequential):
    """Layers of images that follow each other: rows and samples are exchanged before the first and behind the last."""

    def forward(self, x: Tensor) -> Tensor:
        return row_by_row(x, list(self)) if x.is_cpu else by_channels(x, list(self))


def by_channels(x: Tensor, layers: Sequence[nn.Module]) -> Tensor:
    """Layers that treat channels apart, convolutions in groups: those of all rows as those of one network."""
    first = next(layer for layer in layers if isinstance(layer, StackedLayer))
    if not (isinstance(first, StackedConv2d) and first.groups == 1 and first.is_shared(x)):
        x = along(first.by_row(x))
    for layer in layers:
        x = layer.of_channels(x) if isinstance(layer, (StackedConv2d, StackedBatchNorm)) else layer(x)
    return apart(x, first.rows)


def row_by_row(x: Tensor, layers: Sequence[nn.Module]) -> Tensor:
    """Layers of images, (N * B, C, H, W), one row after the other: what a row needs stays in the cache, and rows are
    put together once. The gradient of what is put together has its order in memory: PyTorch's ReLU takes twenty times
    as long where the two differ."""
    first = next(layer for layer in layers if isinstance(layer, StackedLayer))
    x, outputs = x.contiguous(memory_format=torch.channels_last), []
    parts: Sequence[Tensor]
    if isinstance(layers[0], StackedConv2d) and layers[0].is_better_at_once(x):
        parts, layers = layers[0].of_channels(x).chunk(first.rows, 1), layers[1:]
    else:
        parts = [x] * first.rows if first.is_shared(x) else x.chunk(first.rows)
    of_layers = [layer.of_rows() if isinstance(layer, (StackedConv2d, StackedBatchNorm)) else None for layer in layers]
    for row, part in enumerate(parts):
        for layer, of_rows in zip(layers, of_layers, strict=True):
            part = form(layer, part) if of_rows is None else of_rows[row](part)
        outputs.append(part)
    whole = torch.cat(outputs)
    if whole.requires_grad and whole.is_contiguous(memory_format=torch.channels_last):
        whole.register_hook(_with_channels_last)
    return whole


def _with_channels_last(gradient: Tensor) -> Tensor:
    return gradient.contiguous(memory_format=torch.channels_last)


def _parts(tensor: Tensor | None, rows: int) -> Sequence[Tensor | None]:
    return [None] * rows if tensor is None else tensor.chunk(rows)


def along(x: Tensor) -> Tensor:
    """The channels of all rows as those of one network: (N, B, C, ...) to (B, N * C, ...)."""
    exchanged = x.transpose(0, 1).flatten(1, 2)
    return exchanged.contiguous(memory_format=torch.channels_last) if exchanged.dim() == 4 else exchanged


def apart(x: Tensor, rows: int) -> Tensor:
    """The reverse of `along`, and the samples of all rows behind each other: (N * B, C, ...)."""
    return x.unflatten(1, (rows, -1)).transpose(0, 1).flatten(0, 1)


LAYERS: dict[type[nn.Module], Callable[[Any, Joiner], nn.Module]] = {
    nn.Linear: StackedLinear,
    nn.Conv2d: StackedConv2d,
    nn.BatchNorm1d: StackedBatchNorm,
    nn.BatchNorm2d: StackedBatchNorm,
}


def can_stack(module: nn.Module) -> bool:
    """Whether `stacked` knows the module and all in it."""
    if isinstance(module, nn.Conv2d):
        return type(module) is nn.Conv2d and module.padding_mode == "zeros"
    if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
        return type(module) in LAYERS and module.track_running_stats and module.momentum is not None
    if type(module) in LAYERS or type(module) in SAME:
        return True
    composed = type(module) is nn.Sequential or (isinstance(module, Encoder) and module.by_sample)
    own = next(module.parameters(recurse=False), None), next(module.buffers(recurse=False), None)
    return composed and own == (None, None) and all(can_stack(child) for child in module.children())


def stacked(modules: Sequence[nn.Module], joiner: Joiner) -> nn.Module:
    """The rows' modules, of one structure, which `can_stack`, as one; their tensors become views of it."""
    first = modules[0]
    if (layer := LAYERS.get(type(first))) is not None:
        return layer(modules, joiner)
    if type(first) in SAME:
        return first
    whole = copy.copy(first)
    whole.__dict__ = dict(first.__dict__)
    children = {name: [module.get_submodule(name) for module in modules] for name, _ in first.named_children()}
    whole._modules = {name: stacked(rows, joiner) for name, rows in children.items()}
    return _with_image_layers(whole) if type(whole) is nn.Sequential else whole


def _with_image_layers(whole: nn.Sequential) -> nn.Sequential:
    """The sequence with what follows from a convolution to the last layer of images as one."""
    layers = list(whole)
    begin = next((at for at, layer in enumerate(layers) if isinstance(layer, StackedConv2d)), len(layers))
    end = begin
    while end < len(layers) and (isinstance(layers[end], (StackedConv2d, StackedBatchNorm, *OF_IMAGES))):
        end += 1
    if end - begin < 2:
        return whole
    return nn.Sequential(*layers[:begin], StackedImageLayers(*layers[begin:end]), *layers[end:])
