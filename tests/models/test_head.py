"""Projection heads: those of the protocols, and what is common to all."""

import pytest
import torch
from torch import nn

from study import models
from study.data.dataset import Facts
from study.models.encoder import build_projection_head
from study.models.network_keys import HeadOptions

FACTS = Facts(10, 10, (3, 28, 28))


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


LINEAR, NORM, RELU = "Linear", "BatchNorm1d", "ReLU"

# Protocol, features of its network, its head, and what that must be: layers, and parameters by hand.
PROTOCOLS = [
    ("FairKL 128-128-128", 128, HeadOptions("mlp", 128, 128), [LINEAR, RELU, LINEAR], 2 * (128 * 128 + 128)),
    ("FSCL 512-512-128", 512, HeadOptions("mlp", 512, 128), [LINEAR, RELU, LINEAR], 512 * 513 + 128 * 513),
    (
        "DCL 2048-512-128",
        2048,
        HeadOptions("mlp", 512, 128, "hidden"),
        [LINEAR, NORM, RELU, LINEAR],
        2048 * 512 + 2 * 512 + 512 * 128 + 128,
    ),
    (
        "CCL-K critic 84-84-128",
        84,
        HeadOptions("mlp", 84, 128, "both"),
        [LINEAR, NORM, RELU, LINEAR, NORM],
        84 * 84 + 2 * 84 + 84 * 128,
    ),
]


@pytest.mark.parametrize(
    ("features", "options", "layers", "count"), [one[1:] for one in PROTOCOLS], ids=[one[0] for one in PROTOCOLS]
)
def test_heads_are_the_protocols(features: int, options: HeadOptions, layers: list[str], count: int) -> None:
    head = build_projection_head(options, features)
    assert [type(part).__name__ for part in head] == layers
    assert sum(tensor.numel() for tensor in head.parameters()) == count
    assert head(torch.randn(5, features)).shape == (5, 128)


@pytest.mark.parametrize("kind", ["none", "linear", "mlp"])
@pytest.mark.parametrize("norm", ["none", "hidden", "both"])
def test_a_network_gives_features_and_embeddings(kind: str, norm: str) -> None:
    model = {
        "name": "small_conv_net",
        "width": 2,
        "head": kind,
        "head_norm": norm,
        "head_hidden": 6,
        "head_features": 5,
    }
    network = models.build_network(model, FACTS)
    images = torch.randn(4, *FACTS.shape)
    features, embeddings = network(images)
    assert features.shape == (4, network.encoder.features) == (4, 8)
    assert torch.equal(features, network.encoder(images))
    assert embeddings is features if kind == "none" else embeddings.shape == (4, 5)
    biases = [part.bias is not None for part in network.head.modules() if isinstance(part, nn.Linear)]
    assert biases == {"none": [], "linear": [norm != "both"], "mlp": [norm == "none", norm != "both"]}[kind]


def test_the_encoder_of_a_seed_does_not_depend_on_the_head() -> None:
    encoders = []
    for kind in ("none", "mlp"):
        torch.manual_seed(3)
        encoders.append(models.build_network({"name": "small_conv_net", "head": kind}, FACTS).encoder.state_dict())
    assert all(torch.equal(encoders[0][name], encoders[1][name]) for name in encoders[0])


def test_the_keys_of_a_head_are_those_that_have_an_effect() -> None:
    for head, there in (
        ("none", {"head"}),
        ("linear", {"head", "head_features", "head_norm"}),
        ("mlp", {"head", "head_hidden", "head_features", "head_norm"}),
    ):
        keys = set(models.model_knobs({"name": "lenet", "head": head}))
        assert keys == there
