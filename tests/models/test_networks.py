"""Every network of the catalogue, each on data of the sizes that it is for."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from study import models
from study.data.dataset import Facts
from study.errors import UserError

DIGITS, MNIST, COLOUR_MNIST = (Facts(10, 10, shape) for shape in ((3, 8, 8), (1, 28, 28), (3, 28, 28)))
CIFAR, FACES, TABLE = Facts(10, None, (3, 32, 32)), Facts(2, 2, (3, 64, 48)), Facts(2, 2, (11,))

# A network, data that it is for, and the width of its features.
CASES: list[tuple[dict[str, Any], Facts, int]] = [
    *(({"name": "small_conv_net", "width": 4}, facts, 16) for facts in (DIGITS, MNIST)),
    *(({"name": "simple_conv_net"}, facts, 128) for facts in (DIGITS, COLOUR_MNIST)),
    ({"name": "simple_conv_net", "activation": "relu"}, MNIST, 128),
    *(({"name": "lenet"}, facts, 84) for facts in (MNIST, COLOUR_MNIST, CIFAR)),
    *(({"name": "resnet18", "stem": "cifar"}, facts, 512) for facts in (DIGITS, MNIST)),
    *(({"name": "resnet18", "stem": "imagenet"}, facts, 512) for facts in (FACES, MNIST)),
    ({"name": "resnet50", "stem": "cifar"}, DIGITS, 2048),
    ({"name": "torchvision", "architecture": "shufflenet_v2_x0_5"}, FACES, 1024),
    ({"name": "efficientnet_lite0"}, FACES, 1280),
    ({"name": "mlp"}, TABLE, 128),
    ({"name": "linear"}, TABLE, 128),
    ({"name": "linear", "features": 7}, TABLE, 7),
    ({"name": "mlp", "depth": 1, "features": 7}, TABLE, 7),
    ({"name": "mlp", "depth": 4, "width": 9, "features": 5}, TABLE, 5),
    *(({"name": "bagnet", "receptive_field": 9, "width": 8}, facts, 64) for facts in (MNIST, CIFAR, FACES)),
    ({"name": "bagnet", "receptive_field": 17, "width": 8}, MNIST, 64),
    ({"name": "bagnet", "receptive_field": 33, "width": 8}, FACES, 64),
]


def marks(model: dict[str, Any], facts: Facts) -> tuple[pytest.MarkDecorator, ...]:
    """A large network is tried with the slow tests, on one kind of data in each run."""
    large = model["name"] == "resnet50" or (model["name"] == "resnet18" and facts != DIGITS)
    return (pytest.mark.slow,) if large else ()


cases = pytest.mark.parametrize(
    ("model", "facts", "width"),
    [pytest.param(model, facts, width, marks=marks(model, facts)) for model, facts, width in CASES],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else None,
)


def seeded(model: dict[str, Any], facts: Facts, seed: int = 0) -> models.Encoder:
    torch.manual_seed(seed)
    return models.build_encoder_without_head(model, facts)


def samples(facts: Facts, count: int = 4) -> Tensor:
    return torch.randn(count, *facts.shape, generator=torch.Generator().manual_seed(1))


def parameters(module: nn.Module) -> int:
    return sum(tensor.numel() for tensor in module.parameters())


def test_every_network_is_tested_here() -> None:
    assert {model["name"] for model, _, _ in CASES} == set(models.CATALOGUE.listed_names())


@cases
def test_features_have_the_width_that_is_said(model: dict[str, Any], facts: Facts, width: int) -> None:
    encoder = seeded(model, facts)
    features = encoder(samples(facts))
    assert features.shape == (4, width)
    assert features.dtype == torch.float32
    assert encoder.features == width
    assert features.isfinite().all()
    assert (features[0] != features[1]).any()
    features.square().sum().backward()
    assert all(tensor.grad is not None for tensor in encoder.parameters())


@cases
def test_the_seed_decides_the_weights_and_a_state_dict_carries_them(
    model: dict[str, Any], facts: Facts, width: int
) -> None:
    first, again, other = (seeded(model, facts, seed) for seed in (0, 0, 1))
    assert same(first, again)
    assert not same(first, other)
    first(samples(facts))  # moves the running statistics, where there are any
    other.load_state_dict(first.state_dict())
    assert same(first, other)
    inputs = samples(facts)
    assert torch.equal(first.eval()(inputs), other.eval()(inputs))


def same(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(first, second) for first, second in pairs)


@pytest.mark.parametrize(
    ("model", "facts"), [pytest.param(*case[:2], marks=marks(*case[:2])) for case in CASES if not case[1].is_table][::2]
)
def test_channels_last_gives_the_same_features(model: dict[str, Any], facts: Facts) -> None:
    plain, last = (seeded(model, facts).double() for _ in range(2))
    last.to(memory_format=torch.channels_last)
    inputs = samples(facts).double()
    found = last(inputs.contiguous(memory_format=torch.channels_last))
    torch.testing.assert_close(found, plain(inputs))


def wrong() -> Iterator[tuple[dict[str, Any], Facts, str]]:
    images = [name for name in models.CATALOGUE.listed_names() if name not in ("linear", "mlp")]
    yield from (
        ({"name": name}, TABLE, "images, not rows of 11 numbers. Networks for this data: linear, mlp$")
        for name in images
    )
    for name in ("linear", "mlp"):
        yield (
            {"name": name},
            CIFAR,
            r"the rows of a table, not images of 32 x 32 pixels.*: bagnet, efficientnet_lite0, lenet, resnet18,",
        )
    yield {"name": "lenet"}, DIGITS, "28 x 28 or 32 x 32 pixels, not of 8 x 8"
    yield {"name": "lenet"}, FACES, "28 x 28 or 32 x 32 pixels, not of 64 x 48"
    yield {"name": "bagnet", "receptive_field": 33}, CIFAR, "receptive_field 33 takes images of at least that"


@pytest.mark.parametrize(("model", "facts", "message"), list(wrong()))
def test_data_of_another_kind_is_refused_in_words(model: dict[str, Any], facts: Facts, message: str) -> None:
    with pytest.raises(UserError, match=f"^model.name: {model['name']} .*{message}"):
        models.build_encoder_without_head(model, facts)
    assert str(models.why_network_unsuited(model, facts)).startswith(model["name"])


def test_simple_conv_net_is_the_protocols() -> None:
    encoder = seeded({"name": "simple_conv_net"}, COLOUR_MNIST)
    biases = 16 + 32 + 64 + 128  # of its convolutions, which batch norm takes out
    assert parameters(encoder) + biases + parameters(nn.Linear(128, 10)) == 531_210
    convolutions = [part for part in encoder.modules() if isinstance(part, nn.Conv2d)]
    for part in convolutions[1:]:  # Kaiming by fan-out, gain of ReLU
        assert float(part.weight.detach().std()) == pytest.approx((2 / (part.out_channels * 49)) ** 0.5, rel=0.02)
    activations = [type(part) for part in encoder.modules() if isinstance(part, nn.ReLU | nn.Tanh)]
    assert activations == [nn.ReLU, nn.ReLU, nn.ReLU, nn.Tanh]
    relu = seeded({"name": "simple_conv_net", "activation": "relu"}, COLOUR_MNIST)
    assert (relu(samples(COLOUR_MNIST)) >= 0).all()
    assert (encoder(samples(COLOUR_MNIST)).abs() < 1).all()
    assert (encoder(samples(COLOUR_MNIST)) < 0).any()


def test_lenet_is_the_protocols() -> None:
    encoder = seeded({"name": "lenet"}, CIFAR)
    sizes = [75 * 6 + 6, 150 * 16 + 16, 400 * 120 + 120, 120 * 84 + 84]
    assert parameters(encoder) == sum(sizes)
    digits = samples(COLOUR_MNIST)
    assert torch.equal(encoder(digits), encoder(nn.functional.pad(digits, [2, 2, 2, 2])))


def test_mlp_normalises_after_its_relu() -> None:
    encoder = seeded({"name": "mlp", "depth": 2, "width": 9, "features": 6}, TABLE)
    parts = [type(part).__name__ for part in encoder.layers]
    assert parts == ["Linear", "ReLU", "BatchNorm1d"] * 2
    features = encoder(samples(TABLE, 64))
    assert features.mean(0).abs().max() < 1e-5
    assert parameters(encoder) == 11 * 9 + 9 + 18 + 9 * 6 + 6 + 12


@pytest.mark.parametrize(("name", "count"), [("resnet18", 11_689_512), ("resnet50", 25_557_032)])
def test_resnets_are_torchvisions(name: str, count: int) -> None:
    with torch.device("meta"):
        encoder, small = (
            models.build_encoder_without_head({"name": name, "stem": stem}, FACES) for stem in ("imagenet", "cifar")
        )
    assert parameters(encoder) + encoder.features * 1000 + 1000 == count  # as torchvision lists them
    assert parameters(encoder) - parameters(small) == 64 * 3 * (49 - 9)


@pytest.mark.parametrize(("stem", "side"), [("cifar", 4), ("imagenet", 1)])
def test_the_stem_decides_how_much_of_a_small_image_is_left(stem: str, side: int) -> None:
    encoder = seeded({"name": "resnet18", "stem": stem}, CIFAR)
    weight = encoder.net.conv1.weight.detach()
    assert float(weight.std()) == pytest.approx((2 / (64 * weight[0, 0].numel())) ** 0.5, rel=0.05)  # fan-out
    seen: list[tuple[int, ...]] = []
    encoder.net.layer4.register_forward_hook(lambda module, inputs, output: seen.append(tuple(output.shape[2:])))
    encoder(samples(CIFAR))
    assert seen == [(side, side)]


@pytest.mark.parametrize("field", [9, 17, 33])
def test_a_bagnet_feature_sees_its_patch_and_nothing_else(field: int) -> None:
    side, stride = 50, 8
    facts = Facts(2, None, (2, side, side))
    encoder = seeded({"name": "bagnet", "receptive_field": field, "width": 6}, facts).eval()
    images = samples(facts, 2).requires_grad_()
    patches = encoder.patch_features(images)
    count = (side - field) // stride + 1
    assert patches.shape == (2, 48, count, count)
    for row, column in {(0, 0), (count - 1, count - 1), (count // 2, 0), (0, count - 1)}:
        (slope,) = torch.autograd.grad(patches[:, :, row, column].sum(), images, retain_graph=True)
        touched = slope.abs().sum((0, 1)) > 0
        for start, seen in ((row * stride, touched.any(1)), (column * stride, touched.any(0))):
            assert seen.nonzero().flatten().tolist() == list(range(start, start + field))
    torch.testing.assert_close(encoder(images), patches.mean((2, 3)))
