"""The thread that follows a ledger, with an MLflow that answers, and with such that do not."""

import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest
from runs import Runs
from servers import answering
from tracked_study import PARAMS, SESSION, SPEC, STATUS

from study.home.events import EpochReported, SessionClosed, SessionOpened, TrialDecided, TrialEnded, TrialStarted
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger
from study.text import redact_credentials
from study.tracking import MlflowTracker, replace_study_artifacts, tracker
from study.tracking.tracking_state import TrackingState


@pytest.mark.slow
def test_a_growing_ledger_is_followed(home: Home) -> None:
    folder = home.create_study(SPEC)
    tracker, ledger = MlflowTracker(home, folder, SPEC), Ledger(folder.ledger_file)
    tracker.start_following()
    ledger.append(SessionOpened(**SESSION))
    for trial in range(3):
        ledger.append(TrialDecided(trial=trial, stage="search", params=PARAMS, seed=0))
        ledger.append(TrialStarted(trial=trial, node="here"))
        ledger.append(EpochReported(trial=trial, epoch=1, metrics={"val/accuracy": 0.5}))
        time.sleep(0.3)
        ledger.append(TrialEnded(trial=trial, state="complete"))
    assert tracker.is_behind
    ledger.append(SessionClosed(state="complete"))
    ledger.close()
    assert tracker.finish_writing() is None
    runs = Runs(home.tracking_uri, SPEC.name)
    assert {run.info.status for run in runs.all} == {"FINISHED"}
    assert [runs.history(f"trial {trial}, seed 0", "val/accuracy") for trial in range(3)] == [[(1, 0.5)]] * 3
    assert tracker.is_behind, "it has no report yet"
    (folder.path / "report.md").write_text("new")
    assert tracker.log_artifacts({folder.path / "report.md": "report"}) is None
    assert not tracker.is_behind
    assert runs.artifacts("quickstart") == {"report", "study.yaml"}
    assert runs.artifacts("quickstart", "report") == {"report/report.md"}
    note = Runs(home.tracking_uri, SPEC.name).by_name["quickstart"].data.tags["mlflow.note.content"]
    experiment = runs.all[0].info.experiment_id
    for key in ("results", "study"):
        assert f"(#/experiments/{experiment}/runs?viewStateShareKey={key}&" in note, "its views are one click away"


@pytest.mark.parametrize("status", [401, 404])
def test_a_server_that_refuses_from_the_beginning_is_told_of_at_once(
    home: Home, folder: StudyFolder, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    told = list[str]()
    with answering(status) as uri:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        one = MlflowTracker(home, folder, SPEC)
        one.start_following(tracker.MAX_MLFLOW_START_DELAY_S, told.append)
        deadline = time.monotonic() + tracker.MAX_MLFLOW_START_DELAY_S
        while not told and time.monotonic() < deadline:
            time.sleep(0.05)
        one.give_up_writing()
        one.finish_writing()
    (line,) = told
    assert f"({status})" in line
    assert "secret" not in line


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "told"),
    [
        (401, "does not accept the user name and password (401); it takes MLFLOW_TRACKING_USERNAME"),
        (403, "does not let this user write (403)"),
        (500, "500"),
    ],
)
def test_a_server_that_refuses_is_told_of_and_the_rest_comes_later(
    home: Home, folder: StudyFolder, monkeypatch: pytest.MonkeyPatch, status: int, told: str
) -> None:
    monkeypatch.setattr(tracker, "UNREACHABLE_FINISH_TIMEOUT_S", 0.1)
    with answering(status) as uri:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        one = MlflowTracker(home, folder, SPEC)
        one.start_following()
        message = one.finish_writing()
    assert message is not None
    assert told in message
    assert "secret" not in message
    assert "\n" not in message
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    other = MlflowTracker(home, folder, SPEC)
    other.start_following()
    assert other.finish_writing() is None
    assert len(Runs(home.tracking_uri, SPEC.name).all) == len(STATUS)


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_not_waited_for(
    home: Home, folder: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracker, "FINISH_TIMEOUT_S", 0.5)
    with answering(200, delay=60) as uri:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        one = MlflowTracker(home, folder, SPEC)
        one.start_following()
        began = time.monotonic()
        assert one.finish_writing() == "it is slow"
        assert time.monotonic() - began < 50
    assert one.is_behind


def test_an_mlflow_that_opens_too_late_gets_nothing(
    home: Home, folder: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next driver of this process may be bringing the same by then. Who waits is told through whom it gives."""
    monkeypatch.setattr(tracker, "FINISH_TIMEOUT_S", 0.1)
    monkeypatch.setattr(tracker, "WAIT_NOTICE_DELAY_S", 0.0)
    told = list[str]()
    monkeypatch.setattr(tracker, "LAST_REQUEST_GRACE_S", 0.1)
    with closing(sqlite3.connect(home.database_file)) as other:
        other.execute("BEGIN EXCLUSIVE")
        one = MlflowTracker(home, folder, SPEC)
        one.start_following()
        assert one.finish_writing(told.append) == "it is slow"
        other.rollback()
    one._thread.join()
    assert not folder.tracking_state_file.exists()
    assert len(told) == 1


@pytest.mark.slow
def test_a_report_made_anew_replaces_the_one_in_mlflow(
    home: Home, folder: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = folder.path / "report.md"
    page.write_text("old")
    assert replace_study_artifacts(home, folder, {page: "report"}) is None, "MLflow does not have the study yet"
    one = MlflowTracker(home, folder, SPEC)
    one.start_following()
    assert (one.finish_writing(), one.log_artifacts({page: "report"})) == (None, None)
    note = folder.tracking_state_file.read_bytes()
    page.write_text("new")
    assert replace_study_artifacts(home, folder, {page: "report"}) is None
    (there,) = home.artifacts_folder.rglob("report.md")
    assert there.read_text() == "new"
    page.write_text("newer")
    code = (
        "import sys; from pathlib import Path; from study.home.folder import Home\n"
        "from study.tracking import replace_study_artifacts\n"
        "home, page = Home(Path(sys.argv[1])), Path(sys.argv[2])\n"
        "print(replace_study_artifacts(home, home.find_study(page.parent.name), {page: 'report'}), 'mlflow' "
        "in sys.modules)"
    )
    given = [sys.executable, "-c", code, str(home.path), str(page)]
    assert subprocess.check_output(given, text=True) == "None False\n", "MLflow's import takes seconds"
    assert there.read_text() == "newer"
    assert folder.tracking_state_file.read_bytes() == note, "that belongs to a driver that may be running"
    with answering(500) as uri:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        TrackingState(redact_credentials(uri), runs={"study": "1"}).save(folder.tracking_state_file)
        message = replace_study_artifacts(home, folder, {page: "report"})
    assert message is not None
    assert "500" in message
