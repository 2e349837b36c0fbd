"""A study out of MLflow again, and nothing else."""

import sqlite3

import pytest
from runs import Runs
from tracked_study import SPEC, STATUS, make_study

from study.errors import UserError
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger
from study.tracking import Tracker, remove


def track(home: Home, folder: StudyFolder) -> None:
    tracker = Tracker(home, folder, folder.spec())
    tracker.start()
    assert (tracker.finish(), tracker.attach({folder.spec_file: "report"})) == (None, None)


@pytest.mark.slow
def test_a_study_is_removed_for_good_and_its_name_is_free(home: Home, folder: StudyFolder) -> None:
    track(home, folder)
    assert list(home.artifacts.rglob("study.yaml"))
    assert remove(home, folder) == len(STATUS)
    assert not list(home.artifacts.iterdir())
    assert remove(home, folder) == 0
    folder.path.rename(home.path / ".gone")
    track(home, make_study(home))
    assert len(Runs(home.tracking_uri, SPEC.name).all) == len(STATUS)


def test_what_else_is_in_its_experiment_stays(home: Home, folder: StudyFolder) -> None:
    track(home, folder)
    runs = Runs(home.tracking_uri, SPEC.name)
    own = runs.client.create_run(runs.all[0].info.experiment_id, run_name="by hand")
    runs.client.log_text(own.info.run_id, "mine", "notes.txt")
    assert remove(home, folder) == len(STATUS)
    assert list(Runs(home.tracking_uri, SPEC.name).by_name) == ["by hand"]
    assert [path.name for path in home.artifacts.rglob("*.*")] == ["notes.txt"]


def test_nothing_outside_the_home_is_removed(home: Home, folder: StudyFolder) -> None:
    track(home, folder)
    (mine := home.path.parent / "mine").mkdir()
    with sqlite3.connect(home.database) as database:  # a home is copied from a machine to another
        run_id = Runs(home.tracking_uri, SPEC.name).all[0].info.run_id
        for table in ("runs", "tags"):
            database.execute(f"UPDATE {table} SET run_uuid = '../../../mine' WHERE run_uuid = ?", (run_id,))
    with pytest.raises(UserError, match="cannot be the name of a file in"):
        remove(home, folder)
    assert mine.is_dir()


def test_a_study_that_was_never_tracked_has_nothing_to_remove(home: Home) -> None:
    folder = home.create(SPEC)
    assert remove(home, folder) == 0
    home.database.unlink()
    assert remove(home, folder) == 0
    assert not home.database.exists()
    folder.ledger_file.write_bytes(b"")
    Ledger(folder.ledger_file).close()
    assert remove(home, folder) == 0


def test_an_mlflow_that_does_not_answer_is_told_of(
    home: Home, folder: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    with pytest.raises(UserError, match=r"quickstart: its runs are still in MLflow: .*127\.0\.0\.1"):
        remove(home, folder)
