"""A home that was moved or copied keeps its artifacts, and its studies their runs."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.artifacts import download_artifacts
from mlflow.tracking._tracking_service.utils import _artifact_repos_cache
from runs import Runs
from tracked_study import SPEC, STATUS

from study.home.folder import Home, StudyFolder
from study.tracking import MlflowTracker, replace_study_artifacts
from study.tracking.connection import correct_artifact_locations


@pytest.fixture
def used(home: Home, folder: StudyFolder) -> Home:
    """A home with runs, artifacts, a registered model, and an experiment that somebody made elsewhere."""
    tracker = MlflowTracker(home, folder, SPEC)
    tracker.start_following()
    (folder.path / "report.md").write_text("old")
    assert (tracker.finish_writing(), tracker.log_artifacts({folder.path / "report.md": "report"})) == (None, None)
    client = MlflowClient(home.tracking_uri)
    run = Runs(home.tracking_uri, SPEC.name).by_name["quickstart"].info
    model = client.create_logged_model(run.experiment_id, "served", run.run_id)
    weights = home.path.parent / "weights"
    weights.mkdir()
    (weights / "weights").write_text("of the model")
    client.log_model_artifacts(model.model_id, str(weights))
    client.create_registered_model("served")
    client.create_model_version("served", model.artifact_location, run.run_id, model_id=model.model_id)
    elsewhere = home.path.parent / "else" / "artifacts" / "theirs"
    client.log_text(
        client.create_run(client.create_experiment("theirs", elsewhere.as_uri())).info.run_id, "theirs", "note.txt"
    )
    return home


def forget_places() -> None:
    """MLflow remembers, in a process, where a run's artifacts are; the next command is another process."""
    _artifact_repos_cache.clear()


def cells(database: Path, text: str) -> list[tuple[str, str]]:
    """Every table and column of a database with a value that holds a text."""
    found = []
    with closing(sqlite3.connect(database)) as connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for _, column, *_ in connection.execute(f'PRAGMA table_info("{table}")').fetchall():
                query = f'SELECT 1 FROM "{table}" WHERE instr(CAST("{column}" AS TEXT), ?) LIMIT 1'
                found += [(table, column)] if connection.execute(query, (text,)).fetchone() else []
    return found


@pytest.mark.parametrize("way", ["moved", "copied"])
def test_another_place_of_a_home_is_the_same_home(used: Home, way: str) -> None:
    old = used.path
    home = Home(old.parent / "an other?home")
    if way == "moved":
        old.rename(home.path)
    else:
        shutil.copytree(old, home.path)
    forget_places()
    before = {path: path.stat().st_mtime_ns for path in old.rglob("*")} if way == "copied" else {}
    folder = home.find_study(SPEC.name)
    assert not MlflowTracker(home, folder, SPEC).is_behind, "its runs are known"
    (folder.path / "report.md").write_text("new")
    assert replace_study_artifacts(home, folder, {folder.path / "report.md": "report"}) is None
    assert cells(home.database_file, old.as_uri() + "/") == []
    runs = Runs(home.tracking_uri, SPEC.name)
    assert len(runs.all) == len(STATUS)
    assert runs.artifacts("quickstart") == {"report", "study.yaml"}
    (report,) = home.artifacts_folder.rglob("report.md")
    assert report.read_text() == "new"
    source = runs.client.get_model_version("served", "1").source
    place = download_artifacts(artifact_uri=f"{source}/weights", tracking_uri=home.tracking_uri)
    assert Path(place).read_text() == "of the model"
    assert Path(place).is_relative_to(home.path)
    assert {path: path.stat().st_mtime_ns for path in old.rglob("*")} == before, "nothing is written where it was"
    (theirs,) = Runs(home.tracking_uri, "theirs").all
    assert "/else/artifacts/theirs/" in theirs.info.artifact_uri
    assert [entry.path for entry in runs.client.list_artifacts(theirs.info.run_id)] == ["note.txt"]


@pytest.mark.slow
def test_artifacts_of_a_run_that_goes_on_go_where_the_home_is_now(used: Home, folder: StudyFolder) -> None:
    """Also if a machine that sees the home by another path looked at it meanwhile."""
    tracker = MlflowTracker(used, folder, SPEC)
    assert tracker.log_artifacts({folder.spec_file: "one"}) is None
    correct_artifact_locations(used.database_file, used.path.parent / "mounted" / "artifacts")
    forget_places()
    assert cells(used.database_file, "/mounted/")
    assert tracker.log_artifacts({folder.spec_file: "two"}) is None
    assert cells(used.database_file, "/mounted/") == []
    assert {"one", "two"} <= Runs(used.tracking_uri, SPEC.name).artifacts("quickstart")
    assert not (used.path.parent / "mounted").exists()
