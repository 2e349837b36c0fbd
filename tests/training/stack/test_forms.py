"""Layers in the forms of a CPU give what PyTorch's own give, and so do their gradients."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from study.training.stack.forms import convolution, form
from study.training.stack.layers import Joiner, StackedLayer, by_channels, row_by_row, stacked

OPTIONS = {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2)}


def images(channels: int, height: int = 12, width: int = 10) -> Tensor:
    torch.manual_seed(0)
    drawn = torch.randn(3, channels, height, width, dtype=torch.float64) * 3
    return drawn.contiguous(memory_format=torch.channels_last).requires_grad_()


LAYERS = [nn.Tanh(), nn.AvgPool2d(2), nn.AvgPool2d(3), nn.AvgPool2d(2, padding=1), nn.ReLU(), nn.MaxPool2d(2)]


@pytest.mark.parametrize("layer", LAYERS, ids=str)
@pytest.mark.parametrize("height", [12, 11])
def test_layers_without_state(layer: nn.Module, height: int) -> None:
    ours, theirs = images(6, height), images(6, height)
    value, expected = form(layer, ours), layer(theirs)
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-12)
    for one, of in ((value, ours), (expected, theirs)):
        (one**2).sum().backward()
        assert of.grad is not None
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("channels", [3, 6, 8])
@pytest.mark.parametrize("has_bias", [False, True])
def test_convolutions(channels: int, has_bias: bool) -> None:
    both = []
    for function in (convolution, lambda x, weight, bias, options: functional.conv2d(x, weight, bias, **options)):
        x, weight = images(channels), torch.linspace(-1, 1, 5 * channels * 9, dtype=torch.float64)
        weight = weight.view(5, channels, 3, 3).contiguous(memory_format=torch.channels_last).requires_grad_()
        bias = torch.arange(5.0, dtype=torch.float64).requires_grad_() if has_bias else None
        value = function(x, weight, bias, OPTIONS)
        (value**2).sum().backward()
        both.append([value, x.grad, weight.grad, *([bias.grad] if bias is not None else [])])
    for ours, theirs in zip(*both, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-10)


def test_a_tanh_is_off_by_less_than_the_spacing_of_numbers_at_two() -> None:
    x = torch.linspace(-20, 20, 10001).view(1, 1, 73, 137)
    assert float((form(nn.Tanh(), x).double() - x.double().tanh()).abs().max()) < 2.4e-7


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("groups", [1, 3])
def test_rows_one_by_one_and_as_the_channels_of_one_network(shared: bool, groups: int) -> None:
    def row() -> nn.Module:
        return nn.Sequential(nn.Conv2d(3, 6, 3, groups=groups), nn.BatchNorm2d(6), nn.Tanh(), nn.AvgPool2d(2)).double()

    torch.manual_seed(0)
    whole = stacked([row() for _ in range(4)], Joiner())
    layers = [layer for layer in whole.modules() if not list(layer.children())]
    for layer in layers:
        if isinstance(layer, StackedLayer):
            layer.shared = 5 if shared else 0
    x = torch.randn(5 if shared else 20, 3, 8, 8, dtype=torch.float64)
    values, slopes = [], []
    for function in (row_by_row, by_channels):
        value = function(x, layers)
        values.append(value)
        slopes.append(torch.autograd.grad((value**2).sum(), [*whole.parameters()]))
    assert values[0].shape == (20, 6, 3, 3)
    torch.testing.assert_close(values[0], values[1])
    torch.testing.assert_close(slopes[0], slopes[1])
