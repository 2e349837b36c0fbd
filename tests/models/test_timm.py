"""Networks of timm: the features are those of the definition here, and weights come by timm's names."""

import json
import os
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from safetensors.torch import save_file
from serving import Silent, serving

from study import models
from study.data.dataset import Facts
from study.errors import UserError
from study.models import initial_weights
from study.models.backbone_network import Backbone

PHOTOS = Facts(3, 2, (3, 64, 48))


def section(architecture: str, weights: object, **more: Any) -> dict[str, Any]:
    return {"name": "timm", "architecture": architecture, "weights": str(weights), **more}


def images(side: int = 64) -> torch.Tensor:
    return torch.rand(4, 3, side, side, generator=torch.Generator().manual_seed(1))


def test_features_of_efficientnet_lite0_are_those_of_the_definition_here(tmp_path: Path) -> None:
    file, _ = initial_weights.find({"name": "efficientnet_lite0", "weights": "imagenet"})
    theirs = timm.create_model("tf_efficientnet_lite0").state_dict()
    names = [name for name in theirs if not name.endswith("num_batches_tracked")]
    tensors = [
        tensor.contiguous()
        for name, tensor in torch.load(file, weights_only=True).items()
        if not name.endswith("num_batches_tracked")
    ]
    save_file(dict(zip(names, tensors, strict=True)), tmp_path / "lite0.safetensors")
    told: dict[str, Any] = {"normalisation": "data"}
    by_timm = models.build(section("tf_efficientnet_lite0", tmp_path / "lite0.safetensors", **told), PHOTOS).eval()
    own = models.build({"name": "efficientnet_lite0", "weights": "imagenet", **told}, PHOTOS).eval()
    for side in (64, 160, 101):
        with torch.inference_mode():
            torch.testing.assert_close(by_timm(images(side)), own(images(side)), atol=1e-4, rtol=0)


@pytest.mark.parametrize(("architecture", "width"), [("test_resnet", 96), ("deit_tiny_distilled_patch16_224", 192)])
def test_a_file_becomes_the_encoder_without_its_classifiers(architecture: str, width: int, tmp_path: Path) -> None:
    """Also where there are two, and where they are of other classes."""
    source = timm.create_model(architecture, num_classes=7).eval()
    save_file(source.state_dict(), tmp_path / "mine.safetensors")
    facts = Facts(2, None, (3, 224, 224), mean=0.5, deviation=0.25)
    encoder = models.build(section(architecture, tmp_path / "mine.safetensors"), facts).eval()
    assert isinstance(encoder, Backbone)
    source.reset_classifier(0)
    pixels = images(224)
    mean, deviation = (torch.tensor(source.pretrained_cfg[key])[:, None, None] for key in ("mean", "std"))
    with torch.inference_mode():
        found, wanted = encoder((pixels - 0.5) / 0.25), source((pixels - mean) / deviation)
    assert encoder.features == found.shape[1] == width
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"name": "timm"}, "timm needs model.architecture, timm's name of the network"),
        (section("convnext_ato", "imagenet"), "no architecture 'convnext_ato' with weights. Did you mean 'convnext_at"),
        (section("test_resnet", "in22k"), "with architecture test_resnet has no weights 'in22k'. Allowed: imagenet, r"),
        (section("vit_tiny_patch16_224", "imagenet"), "vit_tiny_patch16_224 cannot take images of 64 x 48 pixels"),
    ],
)
def test_what_cannot_serve_is_refused_in_words(model: dict[str, Any], message: str) -> None:
    assert message in str(models.unsuited(model, PHOTOS))


def test_weights_that_are_missing_say_the_command_and_the_file(root: Path) -> None:
    with pytest.raises(UserError, match="`study models prepare timm/test_resnet` downloads it; without a network, put"):
        models.build(section("test_resnet", "imagenet"), PHOTOS)
    with pytest.raises(
        UserError, match=r"put the file of http\S+/model\.safetensors at \S+/timm-test_resnet\.r160_in1k\."
    ):
        models.build(section("test_resnet", "r160_in1k"), PHOTOS)


class Files(SimpleHTTPRequestHandler):
    log_message = Silent.log_message


@pytest.mark.slow
def test_weights_are_fetched_from_where_timm_has_them(root: Path, tmp_path: Path) -> None:
    """From a mirror, as the variable of Hugging Face's library says."""
    folder = tmp_path / "timm" / "test_resnet.r160_in1k" / "resolve" / "main"
    folder.mkdir(parents=True)
    torch.manual_seed(3)
    source = timm.create_model("test_resnet")
    save_file(source.state_dict(), folder / "model.safetensors")
    command = [sys.executable, "-m", "study", "models", "prepare", "timm/test_resnet", "--json", "--quiet"]
    with serving(partial(Files, directory=tmp_path)) as address:
        ended = subprocess.run(command, env=os.environ | {"HF_ENDPOINT": address}, capture_output=True, check=True)
    told = json.loads(ended.stdout)
    assert told["model"] == section("test_resnet", "imagenet")
    encoder = models.build(told["model"], PHOTOS)
    assert isinstance(encoder, Backbone)
    begun = encoder.net.state_dict()
    assert all(torch.equal(begun[name], tensor) for name, tensor in source.state_dict().items() if name in begun)
    assert len(begun) == len(source.state_dict()) - 2
