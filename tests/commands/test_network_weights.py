"""`study models list` and `study models prepare`, and what a study does whose weights are not there."""

import re
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from backbone_files import classifier, in_data_folder, publish
from helpers import quickstart, record
from serving import Silent, serving

from study.cli import app
from study.commands import network_weights
from study.commands.plan import plan_study
from study.driver import run
from study.errors import UserError
from study.home.events import SessionOpened
from study.home.folder import Home
from study.models import published_weights
from study.spec import StudySpec
from study.sweep import driver

SMALL = "shufflenet_v2_x0_5"


class Files(SimpleHTTPRequestHandler):
    log_message = Silent.log_message


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Where the folder `published` is."""
    (tmp_path / "published").mkdir()
    with serving(partial(Files, directory=tmp_path / "published")) as address:
        yield address


def test_every_architecture_has_weights_whose_file_can_be_checked(root: Path) -> None:
    rows = network_weights.list_weights()
    assert {row.architecture for row in rows} == {
        *published_weights.PACKAGED_WEIGHTS,
        *published_weights.list_architectures(),
    }
    assert len({row.architecture for row in rows if row.default}) == sum(row.default for row in rows)
    assert not any(row.there for row in rows if row.architecture not in published_weights.PACKAGED_WEIGHTS)
    for row in rows:
        source = published_weights.find_published_weights(row.architecture, row.weights).source
        assert source.sha256 is not None
        assert len(source.sha256) >= 8
        option = "" if row.default else f" --weights {row.weights}"
        assert source.command == f"study models prepare {row.architecture}{option}"
    shown = network_weights.weights_table(rows)
    assert "\nresnet50             IMAGENET1K_V2        98    224      1  missing" in shown
    assert str(in_data_folder(root)) in shown


def test_prepare_fetches_once_checks_and_says_what_to_write(
    root: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = publish(monkeypatch, classifier(SMALL), SMALL, tmp_path / "published", url)
    app(["models", "prepare", SMALL, "--quiet"], standalone_mode=False)
    printed = capsys.readouterr().out
    assert f"in a study file: model: {{name: torchvision, architecture: {SMALL}, weights: imagenet}}" in printed
    place = in_data_folder(root) / file.name
    assert place.read_bytes() == file.read_bytes()
    file.unlink()
    assert network_weights.prepare_weights(SMALL).path == str(place)
    place.write_bytes(b"other")
    with pytest.raises(
        UserError, match=rf"not the file, or damaged\. Remove it, then run `study models prepare {SMALL}`"
    ):
        network_weights.prepare_weights(SMALL)
    place.unlink()
    with pytest.raises(UserError, match=f"404 File not found. Try again, or put that file at {place} yourself"):
        network_weights.prepare_weights(SMALL)


@pytest.mark.parametrize(
    ("network", "weights", "message"),
    [
        ("resnet49", "imagenet", "no architecture 'resnet49'. Did you mean 'resnet"),
        ("googlenet", "imagenet", "googlenet: it has auxiliary classifiers"),
        (
            "resnet18",
            "IMAGENET1K_V2",
            r"resnet18 has no published weights 'IMAGENET1K_V2'. Did you mean 'IMAGENET1K_V1'",
        ),
    ],
)
def test_what_is_not_published_is_refused(root: Path, network: str, weights: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        network_weights.prepare_weights(network, weights)


def begins(*more: str) -> StudySpec:
    return quickstart("model={name: resnet18, weights: imagenet}", *more)


def test_a_study_without_its_weights_is_planned_but_does_not_start(root: Path, tmp_path: Path) -> None:
    spec = begins()
    assert spec.base["model"]["stem"] == "imagenet"
    (warning,) = (text for text in plan_study(spec).warnings if "weights" in text)
    assert re.search(r"^the study cannot run yet: .*`study models prepare resnet18` downloads it", warning)
    home = Home(tmp_path / "home_of_studies")
    with pytest.raises(
        UserError, match=r"resnet18-f37072fd\.pth: not found\. `study models prepare resnet18` downloads it"
    ):
        run.run_new_study(home, spec, lambda *_: None)  # type: ignore[arg-type,return-value]
    assert not list(home.list_studies())


def test_weights_that_have_changed_since_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    spec, found = quickstart(), record()
    now = {"name": "mine.pth", "file": "mine.pth", "sha256": "b" * 64}
    monkeypatch.setattr(StudySpec, "initial_weight_files", [now])
    assert driver.check_initial_weights(spec, found) == [now]
    for before, problem in (({"weights": [now]}, None), ({}, None), ({"weights": [now | {"sha256": "a"}]}, "changed")):
        found.sessions[:] = [SessionOpened(owner="ada", **before)]
        if problem is None:
            assert driver.check_initial_weights(spec, found) == [now]
        else:
            with pytest.raises(
                UserError, match=r"mine\.pth, from which its trials begin, has changed: sha256 is b+, was a"
            ):
                driver.check_initial_weights(spec, found)
