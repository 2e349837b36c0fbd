"""Networks that begin from weights: what is loaded, how pixels reach them, and what is refused."""

import os
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from backbone_files import classifier, in_data_folder, publish
from safetensors.torch import save_file
from torch import nn
from torchvision.models import get_model

from study import models
from study.data.dataset import Facts
from study.errors import UserError
from study.models import initial_weights

SMALL = "shufflenet_v2_x0_5"
PHOTOS, GREY = Facts(3, 2, (3, 32, 32), mean=0.5, deviation=0.25), Facts(3, 2, (1, 32, 32))


def section(weights: object, **more: Any) -> dict[str, Any]:
    return {"name": "torchvision", "architecture": SMALL, "weights": str(weights), **more}


def images(facts: Facts = PHOTOS) -> torch.Tensor:
    return torch.rand(4, *facts.shape, generator=torch.Generator().manual_seed(1))


def same(one: nn.Module, other: nn.Module) -> bool:
    """Whether all that both have is equal, and `one` has nothing else."""
    theirs = other.state_dict()
    return all(torch.equal(tensor, theirs[name]) for name, tensor in one.state_dict().items())


@pytest.mark.parametrize("classes", [1000, 7])
@pytest.mark.parametrize("form", ["safetensors", "pth", "nested", "ours", "backbone"])
def test_a_file_becomes_the_encoder_whatever_its_classes_and_its_form(form: str, classes: int, tmp_path: Path) -> None:
    source = classifier(SMALL, classes)
    state: dict[str, Any] = dict(source.state_dict())
    file = tmp_path / f"mine.{'safetensors' if form in ('safetensors', 'ours') else 'pth'}"
    if form == "ours":
        whole = {f"method.network.encoder.net.{name}": tensor for name, tensor in state.items() if name[:3] != "fc."}
        save_file(whole | {"probes.encoder.weight": torch.zeros(2)}, file)
    elif form == "backbone":
        whole = {f"module.backbone.{name}": tensor for name, tensor in state.items()}
        torch.save({"model": whole | {"module.projector.0.weight": torch.zeros(2)}}, file)
    elif form == "safetensors":
        save_file(state, file)
    else:
        within = {"state_dict": {f"module.{name}": tensor for name, tensor in state.items()}, "epoch": 3}
        nested = {"net": within, "optimizer": {"state": {}, "lr": 0.1}}
        torch.save(nested if form == "nested" else state, file)
    encoder = models.build_encoder_without_head(section(file), PHOTOS)
    assert encoder.features == 1024
    assert same(encoder.net, source)
    told = models.describe_weights(section(file))
    assert told is not None
    assert (told["file"], len(told["sha256"])) == (file.name, 64)


def test_without_weights_nothing_is_told_or_changed() -> None:
    assert models.describe_weights({"name": "resnet18", "weights": None}) is None
    torch.manual_seed(0)
    plain = get_model(SMALL)
    torch.manual_seed(0)
    encoder = models.build_encoder_without_head({"name": "torchvision", "architecture": SMALL}, PHOTOS)
    assert same(encoder.net, plain)
    assert encoder(images()).shape == (4, 1024)


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    state = classifier(SMALL).state_dict()
    for name in [name for name in state if name.startswith("stage4.")]:
        del state[name]
    save_file(state, tmp_path / "mine.safetensors")
    with pytest.raises(UserError) as error:
        models.build_encoder_without_head(section(tmp_path / "mine.safetensors"), PHOTOS)
    message = str(error.value)
    assert re.search(rf"does not fit {SMALL}\. .* Missing key\(s\) in state_dict: \"stage4\.", message)
    assert len(message) < 700


class Code:
    def __reduce__(self) -> Any:
        return print, ("run",)


@pytest.mark.slow
def test_a_file_that_is_not_weights_is_refused_and_no_code_of_it_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "code.pth").write_bytes(pickle.dumps(Code()))
    (tmp_path / "cut.safetensors").write_bytes(b"\x08\0\0\0")
    torch.save([1, 2], tmp_path / "list.pth")
    torch.save(nn.Sigmoid(), tmp_path / "network.pth")
    for file, message in (
        ("code.pth", "cannot be read as weights alone"),
        ("network.pth", r"\(Unsupported global: GLOBAL torch\.nn\.modules\.activation\.Sigmoid .*Save its state_dict"),
        ("cut.safetensors", "not a safetensors file"),
        ("list.pth", "does not hold a network's weights"),
        ("none.pth", "not found"),
    ):
        with pytest.raises(UserError, match=message):
            models.build_encoder_without_head(section(tmp_path / file), PHOTOS)
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_published_weights_see_pixels_as_they_were_published_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = classifier(SMALL)
    file = publish(monkeypatch, source, SMALL, in_data_folder(root))
    source.fc = nn.Identity()
    pixels = images()
    mean, deviation = (torch.tensor(value)[:, None, None] for value in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    wanted = source.eval()((pixels - mean) / deviation)
    as_given = (pixels - PHOTOS.mean) / PHOTOS.deviation
    encoder = models.build_encoder_without_head(section("imagenet"), PHOTOS).eval()
    torch.testing.assert_close(encoder(as_given), wanted)
    assert not any("scale" in name or "shift" in name for name in encoder.state_dict())
    plain = models.build_encoder_without_head(section("imagenet", normalisation="data"), PHOTOS).eval()
    assert torch.equal(plain(as_given), source(as_given))
    told = models.describe_weights(section("imagenet"))
    assert told is not None
    assert told["file"] == file.name
    assert told["name"] == "ShuffleNet_V2_X0_5_Weights.IMAGENET1K_V1"


def test_published_weights_that_are_missing_or_damaged_say_the_command(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = publish(monkeypatch, classifier(SMALL), SMALL, in_data_folder(root))
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(UserError, match=rf"or damaged\. Remove it, then run `study models prepare {SMALL}`"):
        models.build_encoder_without_head(section("imagenet"), PHOTOS)
    file.unlink()
    message = rf"`study models prepare {SMALL}` downloads it; without a network, put the file of http\S+ at {file}"
    with pytest.raises(UserError, match=message):
        models.describe_weights(section("imagenet"))
    assert models.why_network_unsuited(section("imagenet"), PHOTOS) is None  # a study can be planned without the file
    assert models.build_encoder_without_head(section("imagenet"), PHOTOS, False).features == 1024


@pytest.mark.parametrize(
    ("more", "facts", "message"),
    [
        ({"architecture": "shufflenet"}, PHOTOS, "no architecture 'shufflenet'. Did you mean 'shufflenet_v2_x"),
        ({"architecture": "inception_v3"}, PHOTOS, "inception_v3: it has auxiliary classifiers"),
        ({"architecture": "swin_t"}, PHOTOS, "swin_t takes images of at least 224 x 224 pixels, not of 32 x 32"),
        ({"architecture": "vit_b_32"}, Facts(2, None, (3, 40, 40)), "vit_b_32 cannot take images of 40 x 40 pixels"),
        ({"architecture": SMALL}, GREY, "takes colour images, not those of 1 channels"),
        (section("IMAGENET1K_V7"), PHOTOS, r"no weights 'IMAGENET1K_V7'. Allowed: imagenet, IMAGENET1K_V1, or a file"),
        ({"name": "resnet18", "weights": "imagenet"}, PHOTOS, r"needs model\.stem: imagenet, not cifar"),
        ({"name": "resnet18", "weights": "imagenet", "stem": "imagenet"}, GREY, "takes colour images"),
    ],
)
def test_what_cannot_serve_is_refused_in_words(more: dict[str, Any], facts: Facts, message: str) -> None:
    assert re.search(message, str(models.why_network_unsuited({"name": "torchvision", **more}, facts)))


def test_with_weights_the_stem_is_that_of_published_ones_by_default() -> None:
    assert models.model_knobs({"name": "resnet18"})["stem"].default == "cifar"
    assert models.model_knobs({"name": "resnet18", "weights": "imagenet"})["stem"].default == "imagenet"


@pytest.mark.slow
def test_weights_that_change_while_a_study_runs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with the size and times of before."""
    monkeypatch.setattr(initial_weights, "_located_files", {})
    file = tmp_path / "mine.safetensors"
    save_file(classifier(SMALL).state_dict(), file)
    initial_weights.use_located_weights(initial_weights.locate_weights([section(str(file))]))
    before, status = file.read_bytes(), file.stat()
    models.build_network(section(str(file)), PHOTOS)
    file.write_bytes(before[:-4] + bytes(4))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(UserError, match=r"has changed while the study runs: sha256 is .* Put the earlier file back"):
        models.build_network(section(str(file)), PHOTOS)
    file.write_bytes(before)
    models.build_network(section(str(file)), PHOTOS)


def test_a_process_in_another_folder_finds_what_the_first_one_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(initial_weights, "_located_files", {})
    monkeypatch.chdir(tmp_path)
    save_file(classifier(SMALL).state_dict(), "mine.safetensors")
    places = initial_weights.locate_weights([section("mine.safetensors"), {"name": "lenet"}])
    assert list(places.values()) == [
        (str(tmp_path / "mine.safetensors"), initial_weights.file_sha256(tmp_path / "mine.safetensors"))
    ]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="not found"):
        models.describe_weights(section("mine.safetensors"))
    initial_weights.use_located_weights(places)
    assert models.describe_weights(section("mine.safetensors")) is not None
