"""The network of small studies learns what it is for: a small folder of images of any usual size, on a CPU."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small import config
from torch import nn

from study import data, models
from study.data.dataset import Dataset, Facts, Split
from study.models import Encoder
from study.training.trial import Trial

MODEL = {"name": "small_conv_net", "width": 4}


def digits_of(side: int) -> Dataset:
    """The quickstart's 1,080 training digits with each of their 8 x 8 pixels enlarged to a square."""
    whole = data.load({"name": "biased_digits", "rho": 0.95})
    wide = {
        name: Split(np.kron(split.inputs, np.ones((side // 8, side // 8), np.uint8)), split.target, split.bias)
        for name, split in whole.splits.items()
    }
    return Dataset(replace(whole.facts, shape=(3, side, side), condition=None), wide)


@pytest.mark.slow
def test_it_learns_digits_of_32_pixels_in_a_few_epochs() -> None:
    """The mean over positions behind the same convolutions, and a ReLU, is at 24% here."""
    method = {"name": "eps_sup_info_nce", "temperature": 0.1, "regulariser": "fair_kl", "alpha": 0.01, "lambda": 0.5}
    chosen = config(method, epochs=6, batch_size=64, learning_rate=0.001, seed=1)
    assert chosen.model == {"name": "small_conv_net", "width": 8}
    *_, last = Trial(chosen, digits_of(32), "cpu").train_epochs()
    assert last["val/accuracy"] > 0.6


def built(height: int, width: int | None = None) -> Encoder:
    torch.manual_seed(0)
    return models.build_encoder_without_head(MODEL, Facts(10, 10, (3, height, width or height)))


@pytest.mark.parametrize(
    ("shape", "grid"),
    [
        *(((side, side), (4, 4)) for side in (4, 8, 28, 32, 64, 128, 224)),
        ((5, 5), (3, 3)),
        ((1, 1), (1, 1)),
        ((64, 48), (4, 3)),
        ((300, 2), (3, 1)),
    ],
)
def test_whatever_the_size_the_linear_layer_sees_a_few_positions_each_of_which_sees_much(
    shape: tuple[int, int], grid: tuple[int, int]
) -> None:
    encoder = built(*shape)
    seen: list[tuple[int, ...]] = []
    encoder.layers.register_forward_hook(lambda module, inputs, output: seen.append(tuple(output.shape[2:])))
    images = torch.randn(3, 3, *shape, generator=torch.Generator().manual_seed(1))
    assert encoder(images).shape == (3, encoder.features) == (3, 16)
    assert seen == [grid]


def test_features_tell_where_something_is_and_have_both_signs() -> None:
    encoder = built(28).eval()
    images = torch.zeros(2, 3, 28, 28)
    images[0, :, 4:8, 4:8] = images[1, :, 16:20, 16:20] = 1.0
    first, second = encoder(images)
    assert not torch.allclose(first, second)
    assert (first < 0).any()
    assert (first > 0).any()


@pytest.mark.parametrize("side", [14, 20, 56, 100])
def test_images_of_another_size_than_in_training_are_taken_too(side: int) -> None:
    """As with `train.crop_size` and `train.evaluation_size`."""
    assert built(28).eval()(torch.randn(2, 3, side, side)).shape == (2, 16)


def test_a_long_side_is_halved_by_stride_a_short_one_by_pooling() -> None:
    strides = [part.stride[0] for part in built(128).layers if isinstance(part, nn.Conv2d)]
    assert strides == [2, 2, 1, 1, 1]
    assert sum(isinstance(part, nn.MaxPool2d) for part in built(128).layers) == 3
    assert [part.stride[0] for part in built(32).layers if isinstance(part, nn.Conv2d)] == [1, 1, 1]
