"""What cannot be used is one message with exit status 2, no traceback, nothing half-written."""

from pathlib import Path

import pytest
from answers import answer

CASES = {
    "unknown key": (["--set", "method.epsilonn=1"], ["method.epsilonn: unknown key", "Did you mean 'method.epsilon'?"]),
    "test metric": (["--set", "search.metric=test/accuracy"], ["test metrics cannot be used to choose"]),
    "name that leads out": (["--name", ".."], ["'..' cannot be a study's name", "letters, digits"]),
    "unknown profile": (["--profile", "tpu"], ["--profile tpu", "Profiles there: gpu"]),
    "more than the machine has": (["--set", "resources.cpu=9999"], ["resources.cpu: 9999 given, this machine has"]),
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def refused(*arguments: str) -> str:
    """The message of a command that is refused."""
    done = answer(*arguments)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert "Traceback" not in done.err
    return done.err


@pytest.mark.parametrize("case", CASES)
def test_run_is_refused(case: str, home: Path) -> None:
    arguments, expected = CASES[case]
    message = refused("run", "quickstart", *arguments)
    assert [part for part in expected if part not in message] == []
    assert not home.exists()


@pytest.mark.parametrize("command", ["status", "resume", "report"])
def test_unknown_study_names_the_known(command: str, home: Path) -> None:
    assert "None is there yet" in refused(command, "quickstart")
    assert not home.exists()


def test_unknown_file_names_the_shipped(home: Path) -> None:
    assert "Did you mean 'quickstart'?" in refused("run", "quikstart")
    assert not home.exists()


def test_home_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("mine")
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "file"))
    assert "cannot be written" in refused("run", "quickstart")
    assert (tmp_path / "file").read_text() == "mine"


def test_ui_with_nothing_to_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert "nothing to show yet" in refused("ui")
