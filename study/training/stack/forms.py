"""Layers of images in the forms that take a CPU the least time, for tensors whose channels lie last in memory.

They compute what PyTorch's own do, rounded otherwise. Measured on one thread, 256 images in LeNet's layers: tanh 2.1 ms
(PyTorch's 3.9 to 5.0), the mean of 2 x 2 positions 0.6 (1.7), the gradient of a convolution's six input channels 4.2
(6.3).
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

LANES = 8
"""Numbers of float32 in a register: a convolution's gradient of as many input channels, or a multiple, is fast."""


def tanh(x: Tensor) -> Tensor:
    """By the logistic function; its error is absolute, up to 2e-7 in float32, and not a share of a small value."""
    value: Tensor = _Tanh.apply(x)
    return value


def mean_of_four(x: Tensor) -> Tensor:
    """As `AvgPool2d(2)` for images of even sides, (B, C, H, W)."""
    value: Tensor = _MeanOfFour.apply(x)
    return value


def convolution(x: Tensor, weight: Tensor, bias: Tensor | None, options: dict[str, Any]) -> Tensor:
    """As `functional.conv2d` in one group; `options` are its stride, padding and dilation, pairs of numbers."""
    if not x.requires_grad or x.shape[1] % LANES == 0:
        return functional.conv2d(x, weight, bias, **options)
    value: Tensor = _Convolution.apply(x, weight, bias, *(options[name] for name in ("stride", "padding", "dilation")))
    return value


def form(layer: nn.Module, x: Tensor) -> Tensor:
    """What a layer without state gives, in the form of this module where it has one."""
    if type(layer) is nn.Tanh:
        return tanh(x)
    if type(layer) is nn.AvgPool2d and _halves(layer) and not (x.shape[2] % 2 or x.shape[3] % 2):
        return mean_of_four(x)
    value: Tensor = layer(x)
    return value


def _halves(pool: nn.AvgPool2d) -> bool:
    sizes = {pool.kernel_size, pool.stride}
    return sizes <= {2, (2, 2)} and pool.padding in (0, (0, 0)) and pool.divisor_override is None


class _Tanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        value = (x + x).sigmoid_().mul_(2).sub_(1)
        ctx.save_for_backward(value)
        return value

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (value,) = ctx.saved_tensors
        return torch.ops.aten.tanh_backward(gradient, value)


class _MeanOfFour(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        samples, channels, height, width = x.shape
        pairs = x.permute(0, 2, 3, 1).reshape(samples, height // 2, 2, width * channels)
        of_rows = (pairs[:, :, 0] + pairs[:, :, 1]).view(samples, height // 2, width // 2, 2, channels)
        return (of_rows[..., 0, :] + of_rows[..., 1, :]).mul_(0.25).permute(0, 3, 1, 2)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return torch.ops.aten.avg_pool2d_backward(gradient, x, [2, 2], [2, 2], [0, 0], False, True, None)


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, *options: Any) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.options, ctx.outputs = options, None if bias is None else [len(bias)]
        return functional.conv2d(x, weight, bias, *options)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        plain, images, kernel = gradient.contiguous(), x.contiguous(), weight.contiguous()
        of_x = _gradients(plain, images, kernel, None, ctx.options, [True, False, False])[0]
        _, *others = _gradients(gradient, x, weight, ctx.outputs, ctx.options, [False, True, ctx.outputs is not None])
        return of_x.contiguous(memory_format=torch.channels_last), *others, None, None, None


def _gradients(
    gradient: Tensor, x: Tensor, weight: Tensor, outputs: list[int] | None, options: Any, asked: list[bool]
) -> Any:
    """Those of the input, the weight and the bias that are asked for."""
    return torch.ops.aten.convolution_backward(gradient, x, weight, outputs, *options, False, [0, 0], 1, asked)
