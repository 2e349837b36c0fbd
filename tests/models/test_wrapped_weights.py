"""Weights as the field's programs save them: under keys, behind prefixes, of several networks, not finite."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from backbone_files import classifier
from torch import nn

from study import models
from study.data.dataset import Facts
from study.errors import UserError

SMALL = "shufflenet_v2_x0_5"
PHOTOS = Facts(3, 2, (3, 32, 32), mean=0.5, deviation=0.25)


@pytest.fixture(scope="module")
def source() -> nn.Module:
    return classifier(SMALL, 7)


def saved(content: Any, folder: Path) -> Path:
    torch.save(content, folder / "mine.pth")
    return folder / "mine.pth"


def behind(prefix: str, net: nn.Module) -> dict[str, torch.Tensor]:
    return {f"{prefix}{name}": tensor for name, tensor in net.state_dict().items()}


def begun(file: Path) -> dict[str, torch.Tensor]:
    made: Any = models.build_encoder_without_head(
        {"name": "torchvision", "architecture": SMALL, "weights": str(file)}, PHOTOS
    )
    return dict(made.net.state_dict())


@pytest.mark.slow
def test_of_two_networks_the_one_that_fits_is_taken(source: nn.Module, tmp_path: Path) -> None:
    content = {"student": behind("module.", source), "teacher": {"linear.weight": torch.zeros(2, 2)}}
    state = begun(saved(content, tmp_path))
    assert all(torch.equal(tensor, source.state_dict()[name]) for name, tensor in state.items())


@pytest.mark.parametrize("two", ["nestings", "prefixes", "one with and one without"])
def test_two_networks_that_fit_are_refused_by_name(two: str, source: nn.Module, tmp_path: Path) -> None:
    plain, other = source.state_dict(), classifier(SMALL, 7, seed=4)
    content, names = {
        "nestings": ({"student": plain, "teacher": behind("module.", other)}, "student/*, teacher/module.*"),
        "prefixes": (
            {"state_dict": behind("module.encoder_q.", source) | behind("module.encoder_k.", other)},
            "state_dict/module.encoder_q.*, state_dict/module.encoder_k.*",
        ),
        "one with and one without": (dict(plain) | behind("ema.", other), "*, ema.*"),
    }[two]
    file = saved(content, tmp_path)
    with pytest.raises(UserError, match=rf"mine.pth: holds .* several networks that fit: {re.escape(names)}\. Save"):
        begun(file)


@pytest.mark.slow
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("name", ["conv1.0.weight", "conv1.1.running_var"])
def test_values_that_are_not_finite_are_refused_with_their_tensor(value: float, name: str, tmp_path: Path) -> None:
    source = classifier(SMALL, 7)
    source.state_dict()[name].view(-1)[0] = value
    file = saved({"model": behind("module.", source)}, tmp_path)
    with pytest.raises(UserError, match=rf"mine.pth: values that are not finite \(nan or infinity\) in {name}$"):
        begun(file)


def test_the_layer_that_is_left_out_may_hold_anything(tmp_path: Path) -> None:
    source = classifier(SMALL, 7)
    source.state_dict()["fc.bias"].fill_(float("nan"))
    assert begun(saved(source.state_dict(), tmp_path))


def test_what_is_missing_behind_a_prefix_is_named_without_it(source: nn.Module, tmp_path: Path) -> None:
    state = behind("module.", source)
    del state["module.conv1.0.weight"]
    file = saved({"state_dict": state}, tmp_path)
    with pytest.raises(UserError, match=r"does not fit shufflenet_v2_x0_5\. .*: \"conv1\.0\.weight\"\.$"):
        begun(file)
