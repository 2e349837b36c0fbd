"""What cannot be used is one message with exit status 2, no traceback, nothing half-written."""

from pathlib import Path

import pytest

from study import cli

CASES = {
    "unknown key": (["--set", "method.epsilonn=1"], ["method.epsilonn: unknown key", "Did you mean 'epsilon'?"]),
    "wrong type": (["--set", "train.epochs=ten"], ["train.epochs: 'ten' given", "integer"]),
    "out of range": (["--set", "data.rho=1.5"], ["data.rho: 1.5 given", "less than or equal to 1"]),
    "unknown metric": (["--set", "search.metric=val/acc"], ["Did you mean 'val/accuracy'?", "val/equalized_odds"]),
    "test metric": (["--set", "search.metric=test/accuracy"], ["test metrics cannot be used to choose"]),
    "name with a slash": (["--name", "a/b"], ["'a/b' given", "letters, digits"]),
    "name that leads out": (["--name", ".."], ["'..' given", "letters, digits"]),
    "unknown profile": (["--profile", "tpu"], ["--profile tpu", "Profiles there: gpu"]),
    "more than the machine has": (["--set", "resources.cpu=9999"], ["resources.cpu: 9999 given, this machine has"]),
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """The message of a command that is refused."""
    monkeypatch.setattr("sys.argv", ["study", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    shown = capsys.readouterr()
    assert ended.value.code == 2
    assert shown.out == ""
    assert "Traceback" not in shown.err
    return shown.err


@pytest.mark.parametrize("case", CASES)
def test_run_is_refused(
    case: str, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, expected = CASES[case]
    message = refused(capsys, monkeypatch, "run", "quickstart", *arguments)
    assert message.startswith("error: ")
    for part in expected:
        assert part in message
    assert not home.exists()


@pytest.mark.parametrize("command", ["status", "resume", "report"])
def test_unknown_study_names_the_known(
    command: str, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "There is no study there yet" in refused(capsys, monkeypatch, command, "quickstart")
    assert not home.exists()


def test_unknown_file_names_the_shipped(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    message = refused(capsys, monkeypatch, "run", "quikstart")
    assert "Did you mean 'quickstart'?" in message
    assert not home.exists()


def test_home_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("mine")
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "file"))
    assert "cannot be written" in refused(capsys, monkeypatch, "run", "quickstart")
    assert (tmp_path / "file").read_text() == "mine"


def test_ui_with_nothing_to_show(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert "nothing to show yet" in refused(capsys, monkeypatch, "ui")
