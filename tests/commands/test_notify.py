"""Who is told of a study's end: a real command gets one document, and cannot harm the study."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from helpers import Told, append_event, quickstart, write_ledger

from study.commands import session
from study.commands import session as telling
from study.commands.session import RunEnd, closing_lines, message, notify
from study.errors import Stopped, UserError
from study.home.folder import Home, StudyFolder
from study.home.record import StudyRecord
from study.spec import StudySpec
from study.tracking.tracked import STUDY, Tracked

PARAMS = {"method.alpha": 1.0, "method.lambda": 0.0, "method.epsilon": 0.0}
SECRET = "a secret of the environment"


def study(home: Path, *settings: str) -> tuple[Home, StudyFolder, StudySpec, StudyRecord]:
    """A complete study of a baseline and a better trial."""
    spec = quickstart("search.confirm.top=0", *settings)
    folder = Home(home).create(spec)
    better = PARAMS | {"method.lambda": 1.0}
    write_ledger(folder.ledger_file, Told("baseline", [0.5], params=PARAMS), Told("search", [0.75], params=better))
    append_event(folder.ledger_file, "closed", state="complete")
    return Home(home), folder, spec, StudyRecord.load(folder.ledger_file)


SENT = {
    "study": "quickstart",
    "state": "complete",
    "metric": "val/accuracy",
    "value": 0.75,
    "baseline": 0.5,
    "trial": 1,
    "address": None,
    "text": "study quickstart: complete; best val/accuracy 75.0%, baseline val/accuracy 50.0%",
}


def keeper(file: Path) -> str:
    """A command that keeps what it is told."""
    return json.dumps([sys.executable, "-c", "import sys; open(sys.argv[1], 'w').write(sys.stdin.read())", str(file)])


def test_a_command_gets_one_document(tmp_path: Path) -> None:
    told = tmp_path / "told"
    assert notify(*study(tmp_path / "home", f"notify.command={keeper(told)}")) is None
    document = json.loads(told.read_text())
    assert document.pop("trials")["complete"] == 2
    assert document == SENT


def test_nothing_secret_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No user name of an address, no owner, no path, nothing of the environment."""
    home, folder, spec, record = study(tmp_path / "home")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://ada:hidden-password@mlflow.example.org")
    monkeypatch.setenv("SOMETHING", SECRET)
    progress = Tracked.load(folder.tracking_file, home.tracking_uri)
    progress.experiment, progress.runs[STUDY] = "3", "abc"
    progress.save(folder.tracking_file)
    document = message(home, folder, spec, record)
    mode = "workflowType=machine_learning"
    assert document["address"] == f"https://mlflow.example.org/#/experiments/3/runs/abc?{mode}"
    text = json.dumps(document)
    for secret in ("ada", "hidden-password", SECRET, str(tmp_path), record.owner or "-"):
        assert secret not in text


@pytest.mark.slow
def test_nobody_is_waited_for_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that hangs, with a child of its own, is killed."""
    monkeypatch.setattr(telling, "PATIENCE", 0.5)
    pids = tmp_path / "pids"
    hanging = json.dumps(["sh", "-c", f"sleep 60 & echo $! > {pids}; wait"])
    problem = notify(*study(tmp_path / "home", f"notify.command={hanging}"))
    assert problem == "notify.command: sh had not ended after 0.5 s and was killed"
    child = Path(f"/proc/{pids.read_text().strip()}/stat")
    deadline = time.monotonic() + 20
    while child.exists() and child.read_text().split()[2] != "Z":
        assert time.monotonic() < deadline, "the child of the command lives"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ('notify.command=["false"]', "notify.command: false ended with status 1"),
        ('notify.command=["no-such-program"]', "notify.command: no-such-program cannot be started: No such file"),
    ],
)
def test_a_notification_that_fails_is_one_line_of_the_end(tmp_path: Path, setting: str, told: str) -> None:
    _, folder, spec, record = one = study(tmp_path / "home", setting)
    problem = notify(*one)
    assert problem is not None
    assert problem.startswith(told)
    (line,) = (line for line in closing_lines(RunEnd(folder, spec, record, None, unnotified=problem)) if told in line)
    assert line == f"not everybody was told of this: {problem}"


ENDS = [("complete", False, True), ("failed", False, True), ("interrupted", False, True), ("interrupted", True, False)]


@pytest.mark.parametrize(("state", "by_hand", "is_told"), ENDS)
def test_every_end_is_told_but_ones_own_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, by_hand: bool, is_told: bool
) -> None:
    told = tmp_path / "told"
    home, folder, spec, record = study(tmp_path / "home", f"notify.command={keeper(told)}")
    record.state = state
    monkeypatch.setattr(session, "_drive", lambda *_: (RunEnd(folder, spec, record, None), by_hand))
    end = session.run_session(home, folder, {}, lambda *_: pytest.fail("no view"), None)
    assert end.unnotified is None
    assert told.exists() == is_told
    assert not is_told or json.loads(told.read_text())["state"] == state


def test_a_study_that_cannot_go_on_is_told_and_says_why_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home, folder, _, _ = study(tmp_path / "home", 'notify.command=["false"]')

    def drive(*_: Any) -> Any:
        raise Stopped("Ray has ended")

    monkeypatch.setattr(session, "_drive", drive)
    with pytest.raises(Stopped, match="Ray has ended"):
        session.run_session(home, folder, {}, lambda *_: pytest.fail("no view"), None)
    assert "notify.command: false ended with status 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("notify={}", "notify.command: is missing"),
        ("notify.url=https://host/path", "notify.url: unknown key"),
        ("notify.command=[]", "notify.command"),
        ("notify.command=echo hello", "allowed is a valid list"),
        ("notify=echo", "allowed is a mapping of keys to values"),
        ("notify.mail=ada", "notify.mail"),
    ],
)
def test_what_nobody_could_be_told_by_is_refused_before_anything_starts(setting: str, told: str) -> None:
    with pytest.raises(UserError) as error:
        quickstart(setting)
    assert told in str(error.value)


def test_who_is_told_changes_no_result(tmp_path: Path) -> None:
    assert quickstart("notify.command=[tell]").hash == quickstart().hash


def test_what_goes_wrong_with_the_message_is_told_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError(13, "Permission denied", "tracking.json")

    monkeypatch.setattr(telling, "study_page", refuse)
    assert notify(*study(tmp_path / "home", "notify.command=[tell]")) == "notify: PermissionError"
