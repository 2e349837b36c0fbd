"""MLflow's runs that are gone, or its database: the ledger has everything, and they are made again."""

import shutil
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from damaged_files import DAMAGE, halve, outlast_connections, text
from runs import Runs
from servers import MlflowServer
from tracked_study import SPEC, STATUS, append_second_session, make_home, make_study

from study.commands.report import lead_sentences_by_title
from study.driver import resume
from study.driver.session import RunEnd, run_end_lines, write_study_outputs
from study.errors import StudyStoppedError, UserError
from study.home.events import ModelEvaluated, SessionClosed
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.ranking import Results
from study.tracking import MlflowTracker
from study.tracking import tracker as following
from study.tracking.connection import (
    correct_artifact_locations,
    find_database_damage,
    move_damaged_database_aside,
    prepare_mlflow_database,
)

OTHERS = "those of other studies with: study resume NAME"


def resumed(home: Home, folder: StudyFolder) -> RunEnd:
    """The end of `study resume`."""
    return resume.resume_study(home, folder.name, view=None)  # type: ignore[arg-type]  # nothing runs


def again(home: Home, folder: StudyFolder) -> list[str]:
    """What a driver that takes the study up says of MLflow, once it has everything."""
    tracker = MlflowTracker(home, folder, folder.load_spec())
    if not tracker.is_behind and not tracker.has_lost_runs():
        return []
    tracker.start_following()
    assert (tracker.finish_writing(), tracker.log_artifacts({folder.spec_file: None})) == (None, None)
    assert not tracker.is_behind
    return tracker.notes


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Home:
    """A home with all of a complete study in MLflow."""
    home = make_home(tmp_path_factory.mktemp("complete") / "home", empty_database)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        again(home, make_study(home))
    return home


@pytest.fixture
def home(complete: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A copy of it."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    copy = Home(tmp_path / "home")
    shutil.copytree(complete.path, copy.path)
    correct_artifact_locations(copy.database_file, copy.artifacts_folder)
    return copy


@pytest.fixture
def folder(home: Home) -> StudyFolder:
    return home.find_study(SPEC.name)


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_file_is_told_from_a_sound_one(home: Home, how: str) -> None:
    assert (find_database_damage(home.database_file), move_damaged_database_aside(home.database_file)) == (None, None)
    hurt, told = DAMAGE[how]
    hurt(home.database_file)
    content = home.database_file.read_bytes()
    why, aside = move_damaged_database_aside(home.database_file) or ("", Path())
    assert sqlite_says(why, told)
    assert (aside, aside.read_bytes()) == (home.path / "mlflow.db.damaged-1", content)
    assert not home.database_file.exists()
    assert find_database_damage(home.database_file) is None
    home.database_file.write_text("again")
    assert (move_damaged_database_aside(home.database_file) or ("", Path()))[1] == home.path / "mlflow.db.damaged-2"


def sqlite_says(why: str, told: str) -> bool:
    return any(part in why for part in told.split("|"))


def test_a_file_that_another_process_writes_to_is_not_damaged(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("study.tracking.connection.SQLITE_BUSY_TIMEOUT_S", 0.1)
    with closing(sqlite3.connect(home.database_file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert find_database_damage(home.database_file) is None


def runs_of(home: Home) -> dict[str, Any]:
    """The runs by name, with their parents by name, and without what a run that is made again has anew."""
    by_name = Runs(home.tracking_uri, SPEC.name).by_name
    names, found = {run.info.run_id: name for name, run in by_name.items()}, {}
    for name, run in by_name.items():
        told = run.to_dictionary()
        told["data"]["tags"]["mlflow.parentRunId"] = names.get(run.data.tags.get("mlflow.parentRunId"))
        told["data"]["tags"].pop("mlflow.note.content", None)  # it has links to the run
        told["info"] |= {"run_id": "", "run_uuid": "", "artifact_uri": ""}
        found[name] = told
    return found


def files(home: Home) -> dict[tuple[str, str], bytes]:
    """The artifacts by their run's name and their path."""
    names = {run.info.run_id: name for name, run in Runs(home.tracking_uri, SPEC.name).by_name.items()}
    return {
        (names[folder.name], path.relative_to(folder).as_posix()): path.read_bytes()
        for folder in home.artifacts_folder.glob("*/*")
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.slow
def test_the_runs_of_a_complete_study_are_made_again(home: Home, folder: StudyFolder) -> None:
    """With the artifacts that they had, also those that the study itself has no more."""
    record = StudyRecord.load(folder.ledger_file)
    made = write_study_outputs(folder, Results(SPEC, record)), lead_sentences_by_title(Results(SPEC, record))
    with pytest.raises(UserError, match="complete, there is nothing to go on with"):
        resumed(home, folder)
    assert MlflowTracker(home, folder, SPEC).log_artifacts(*made) is None  # as at the end of a run
    runs = Runs(home.tracking_uri, SPEC.name)
    runs.client.log_text(runs.by_name["trial 0, seed 0"].info.run_id, "by a function of one's own", "made/note.txt")
    before, artifacts = runs_of(home), files(home)
    halve(home.database_file)
    outlast_connections()
    end = resumed(home, folder)
    assert end.untracked_reason is None
    (note,) = end.mended_problems
    assert note.startswith(f"{home.database_file} was damaged: ")
    assert note.endswith(f"the runs of quickstart are made again from its ledger, {OTHERS}")
    assert note in run_end_lines(end)
    after = runs_of(home)
    assert after.keys() == before.keys()
    for name, run in before.items():
        assert after[name] == run, name
    assert artifacts.items() <= files(home).items()
    with pytest.raises(UserError, match="complete, there is nothing to go on with"):
        resumed(home, folder)


def test_a_ledger_that_has_lost_its_end_is_in_mlflow_as_it_goes_on(home: Home, folder: StudyFolder) -> None:
    """Its lines are whole, and what was noted of it does not fit any more."""
    lines, before = folder.ledger_file.read_bytes().splitlines(keepends=True), runs_of(home)
    folder.ledger_file.write_bytes(b"".join(lines[:-4]))
    ledger = Ledger(folder.ledger_file)
    ledger.append(SessionClosed(state="interrupted"))
    append_second_session(ledger, owner="somebody of a longer name")
    ledger.close()
    assert again(home, folder) == ["MLflow had more of quickstart than its ledger tells; it is brought there anew"]
    assert again(home, folder) == []
    after = runs_of(home)
    assert after.keys() == before.keys()
    assert {name: run["data"]["metrics"] for name, run in after.items()} == {
        name: run["data"]["metrics"] for name, run in before.items()
    }


SLOWER = [(how, is_noted) for how in ("deleted", "emptied", "text") for is_noted in (True, False)]
"""A new database takes MLflow seconds."""


@pytest.mark.parametrize(
    ("how", "is_noted"), [("text", False), *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOWER)]
)
def test_whatever_became_of_the_database_and_of_the_note(
    home: Home, folder: StudyFolder, how: str, is_noted: bool
) -> None:
    """The note tells what was in MLflow."""
    home.database_file.unlink() if how == "deleted" else DAMAGE[how][0](home.database_file)
    if not is_noted:
        folder.tracking_state_file.unlink()
    notes = again(home, folder)
    assert len(notes) == (is_noted or how != "deleted"), "a new home has no runs either"
    assert all("the runs of quickstart are made again from its ledger" in note for note in notes)
    runs = Runs(home.tracking_uri, SPEC.name)
    assert {name: run.info.status for name, run in runs.by_name.items()} == STATUS
    assert again(home, folder) == []


@pytest.mark.slow
def test_a_database_without_a_table_is_told(home: Home, folder: StudyFolder) -> None:
    """SQLite finds it sound, MLflow cannot read it."""
    with closing(sqlite3.connect(home.database_file, isolation_level=None)) as connection:
        connection.execute("DROP TABLE experiments")
    with pytest.raises(StudyStoppedError, match=r"cannot be told: .*experiments.* Move .*mlflow.db away, then"):
        resumed(home, folder)
    home.database_file.rename(home.path / "away.db")
    outlast_connections()
    assert resumed(home, folder).untracked_reason is None
    assert {name: run.info.status for name, run in Runs(home.tracking_uri, SPEC.name).by_name.items()} == STATUS


@pytest.mark.slow
def test_other_studies_whose_runs_were_in_it_are_named(home: Home, folder: StudyFolder) -> None:
    other = home.create_study(replace(SPEC, name="another"))
    tracker = MlflowTracker(home, other, other.load_spec())
    tracker.start_following()
    assert tracker.finish_writing() is None
    text(home.database_file)
    outlast_connections()
    with pytest.raises(UserError, match=r"mlflow.db: damaged: file is not a database.*study resume quickstart and"):
        prepare_mlflow_database(home)
    assert again(home, folder)[0].endswith(OTHERS)
    (note,) = again(home, other)
    assert note == (
        f"{home.database_file}: runs of another were missing; the runs of another are made again from its ledger, "
        f"{OTHERS}"
    )
    assert len(Runs(home.tracking_uri, "another").all) == 1


@pytest.mark.slow
def test_a_study_that_goes_on_has_its_runs_again_too(
    home: Home, folder: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its driver has the database open as it is taken away."""
    monkeypatch.setattr(following, "UNREACHABLE_FINISH_TIMEOUT_S", 60.0)
    ledger, tracker = Ledger(folder.ledger_file), MlflowTracker(home, folder, SPEC)
    tracker.start_following()
    while tracker._writer is None:  # it has opened the database
        time.sleep(0.05)
    home.database_file.unlink()
    ledger.append(ModelEvaluated(trial=4, split="test", by="ada"))
    ledger.close()
    assert tracker.finish_writing() is None
    (note,) = tracker.notes
    assert note.endswith(f"the runs of quickstart are made again from its ledger, {OTHERS}")
    runs = Runs(home.tracking_uri, SPEC.name)
    assert {name: run.info.status for name, run in runs.by_name.items()} == STATUS
    assert runs.history("trial 4, seed 0", "val/accuracy") == [(1, 0.1), (2, 0.2)]


@pytest.mark.slow
def test_runs_that_were_deleted_are_made_again(home: Home, folder: StudyFolder) -> None:
    """One run, and then the whole experiment, as by the buttons of MLflow's page."""
    runs = Runs(home.tracking_uri, SPEC.name)
    runs.client.delete_run(runs.by_name["trial 2, seed 0"].info.run_id)
    assert "runs of quickstart were missing" in again(home, folder)[0]
    runs = Runs(home.tracking_uri, SPEC.name)
    assert {name: run.info.status for name, run in runs.by_name.items()} == STATUS
    runs.client.delete_experiment(runs.all[0].info.experiment_id)
    assert again(home, folder)
    runs = Runs(home.tracking_uri, SPEC.name)
    assert {name: run.info.status for name, run in runs.by_name.items()} == STATUS
    assert len(runs.all) == len(STATUS)


@pytest.mark.slow
def test_a_server_whose_runs_are_gone_gets_them_again(
    home: Home, folder: StudyFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its experiment deleted, and its database removed, with a new one in its place."""
    server = MlflowServer(tmp_path, f"sqlite:///{tmp_path}/runs.db")
    try:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)
        again(home, folder)
        assert again(home, folder) == []
        runs = Runs(server.uri, SPEC.name)
        runs.client.delete_experiment(runs.all[0].info.experiment_id)
        assert again(home, folder)[0].startswith(f"{server.uri}: runs of quickstart were missing")
        server.stop()
        (tmp_path / "runs.db").unlink()
        server.start()
        assert again(home, folder)
        runs = Runs(server.uri, SPEC.name)
        assert {name: run.info.status for name, run in runs.by_name.items()} == STATUS
        assert len(runs.all) == len(STATUS)
        assert "study.yaml" in runs.artifacts(SPEC.name)
    finally:
        server.stop()
