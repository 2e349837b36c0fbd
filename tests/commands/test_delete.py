"""`study delete` removes a study whole, and no other; never one that runs."""

import io
from pathlib import Path

import pytest
from helpers import Told, quickstart, write_ledger
from mlflow import MlflowClient
from tracked_study import make_home

from study import cli
from study.commands.delete import delete
from study.errors import UserError
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger
from study.tracking import Tracker


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_database: Path) -> Home:
    """Two studies, `one` and `other`; MLflow's database is there."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "home"))
    found = make_home(tmp_path / "home", empty_database)
    for name in ("one", "other"):
        spec = quickstart(f"name={name}")
        folder = found.create(spec)
        write_ledger(folder.ledger_file, Told("search", [0.5], params={"method.alpha": 0.5}))
    return found


def track(home: Home) -> None:
    """Bring the studies into MLflow."""
    for folder in home.studies():
        tracker = Tracker(home, folder, folder.spec())
        tracker.start()
        assert tracker.finish() is None


def runs(home: Home) -> dict[str, int]:
    """How many runs each experiment has."""
    client = MlflowClient(home.tracking_uri)
    found = {one.name: len(client.search_runs([one.experiment_id])) for one in client.search_experiments()}
    return {name: count for name, count in found.items() if count}


def run_command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["study", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


@pytest.mark.slow
def test_a_study_is_removed_whole_and_no_other(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    track(home)
    assert runs(home) == {"one": 2, "other": 2}
    assert run_command(monkeypatch, "delete", "one", "--yes") == 0
    assert capsys.readouterr().out.endswith("one: removed\n")
    assert runs(home) == {"other": 2}
    assert [folder.name for folder in home.studies()] == ["other"]
    assert not [path for path in home.path.rglob("*") if "one" in path.name]
    assert run_command(monkeypatch, "delete", "one", "--yes") == 2
    home.create(quickstart("name=one"))
    assert [folder.name for folder in home.studies()] == ["other", "one"], "the name is free"


@pytest.mark.slow
def test_a_study_that_runs_is_not_removed(home: Home) -> None:
    held = Ledger(StudyFolder(home.path / "one").ledger_file)
    with pytest.raises(UserError, match="another process is running this study"):
        delete(home, "one")
    held.close()
    assert len(home.studies()) == 2


@pytest.mark.slow
def test_a_link_in_the_place_of_a_study_is_refused_before_anything_is_removed(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    track(home)
    moved = (home.path / "one").rename(tmp_path / "moved")
    (home.path / "one").symlink_to(moved)
    before = sorted(moved.rglob("*"))
    for flags in (["--yes"], []):
        assert run_command(monkeypatch, "delete", "one", *flags) == 2
        assert f"one: is a symbolic link in {home.path}, to {moved}" in capsys.readouterr().err
    assert runs(home) == {"one": 2, "other": 2}
    assert sorted(moved.rglob("*")) == before


@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
def test_without_a_yes_nothing_is_removed(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    assert run_command(monkeypatch, "delete", "one") == 1
    assert "1 trial(s)" in capsys.readouterr().err
    assert len(home.studies()) == 2


@pytest.mark.slow
def test_a_damaged_study_can_be_removed(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    track(home)
    ledger = home.find("one").ledger_file
    first, *others = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(first + b"".join(others[1:]))
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert run_command(monkeypatch, "delete", "one") == 0
    assert (
        f"unreadable ({ledger}: damaged at byte {len(first)}: event 2 does not follow the events before it"
        in capsys.readouterr().err
    )
    assert runs(home) == {"other": 2}
    assert [folder.name for folder in home.studies()] == ["other"]


def test_a_study_whose_first_event_is_lost_is_not_removed_without_its_runs(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    track(home)
    home.find("one").ledger_file.write_bytes(b"")
    assert run_command(monkeypatch, "delete", "one", "--yes") == 2
    assert "which runs in MLflow are its own" in capsys.readouterr().err
    assert runs(home) == {"one": 2, "other": 2}
