"""A home that was moved, a copy of one, and one whose database is gone, by the commands that a user types."""

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import Command
from mlflow import MlflowClient
from PIL import Image
from runs import Runs

from study import data
from study.home.folder import Home

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def moved(finished: Command, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """A copy, in a folder whose name means something in an address, of a home that is out of reach then."""
    before = tmp_path_factory.mktemp("before") / "home"
    shutil.copytree(finished.home, before)
    one = replace(finished, home=before)
    one.done("train", str(one.folder("tiny").best_file), "--seeds", "3", "--name", "served")
    home = tmp_path_factory.mktemp("after") / "a home?#1%20"
    before.rename(home)
    return replace(finished, home=home)


def answer(url: str, **query: str) -> Any:
    with urllib.request.urlopen(f"{url}?{urllib.parse.urlencode(query)}", timeout=30) as reply:
        return reply.read()


def states(uri: str) -> dict[str, str]:
    """Of the runs of the study and of the training made here; the home may hold other trainings."""
    runs = [run for name in ("tiny", "served") for run in Runs(uri, name, within="tiny").all]
    return {str(run.info.run_name): run.info.status for run in runs}


def test_a_moved_home_works_with_every_command(moved: Command, tmp_path: Path) -> None:
    done = moved("resume", "tiny")
    assert done.returncode == 2, "its runs are known in the new place"
    assert "tiny: complete, there is nothing to go on with" in done.stderr
    image = data.load(moved.folder("served").load_spec().trial_data_sections[0]).splits["val"].inputs[0]
    Image.fromarray(image.transpose(1, 2, 0)).save(tmp_path / "one.png")
    for model in ("served", "models:/served@candidate"):
        moved.done("predict", model, str(tmp_path / "one.png"))
    for given in (("report", "tiny"), ("train", str(moved.folder("tiny").best_file), "--seeds", "4")):
        out = moved.done(*given)
        assert "not everything is in MLflow" not in out
    runs = Runs(Home(moved.home).tracking_uri, "tiny")
    assert {"study.yaml", "best.yaml", "report"} <= runs.artifacts("tiny")
    assert not list(moved.home.parent.parent.glob("before*/home")), "nothing is written where it was"


def test_mlflows_page_shows_the_artifacts_of_a_moved_home(moved: Command) -> None:
    run = Runs(Home(moved.home).tracking_uri, "tiny").by_name["tiny"].info.run_id
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 200
    page = moved.start("ui", "--port", str(port))
    try:
        while time.monotonic() < deadline:
            with suppress(OSError):
                listed = json.loads(answer(f"{url}/ajax-api/2.0/mlflow/artifacts/list", run_id=run))
                break
            assert page.poll() is None
            time.sleep(0.2)
        assert {"study.yaml", "best.yaml", "report"} <= {file["path"] for file in listed["files"]}
        shown = answer(f"{url}/get-artifact", run_uuid=run, path="study.yaml")
        assert shown == moved.folder("tiny").spec_file.read_bytes()
        version = MlflowClient(url).get_model_version_by_alias("served", "candidate")
        assert version.source.startswith(Home(moved.home).artifacts_folder.as_uri())
        assert page.stdout is not None
        told = "".join(iter(page.stdout.readline, "Ctrl-C ends it\n"))
        experiment = Runs(Home(moved.home).tracking_uri, "tiny").by_name["tiny"].info.experiment_id
        assert f"MLflow UI of {moved.home}: {url}" in told
        named = ("results of tiny", "search of tiny", r"final training \S+")
        places = [re.search(rf"{name}: {url}/#/experiments/{experiment}/", told) for name in named]
        assert all(places), told
        assert [place.start() for place in places if place] == sorted(place.start() for place in places if place)
    finally:
        page.terminate()
        with suppress(subprocess.TimeoutExpired):
            page.communicate(timeout=30)


def test_a_study_whose_database_was_removed_comes_back_by_resume(moved: Command, tmp_path: Path) -> None:
    home = Home(moved.home)
    before = states(home.tracking_uri)
    home.database_file.write_bytes(home.database_file.read_bytes()[: home.database_file.stat().st_size // 2])
    out = moved.done("resume", "tiny")
    assert f"{home.database_file} was damaged: " in out
    assert "It is kept as mlflow.db.damaged-1; the runs of tiny are made again from its ledger" in out
    assert "those of other studies with: study resume NAME" in out
    assert moved("resume", "served").returncode == 0
    assert moved("resume", "tiny").returncode == 2
    shutil.copy(home.database_file, tmp_path / "again.db")  # this process has a connection to the one that was damaged
    uri = f"sqlite:///{tmp_path / 'again.db'}"
    assert states(uri) == before
    assert MlflowClient(uri).get_model_version_by_alias("served", "candidate")
