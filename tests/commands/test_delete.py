"""`study delete` removes a study whole, and no other; never one that runs."""

import io
from pathlib import Path

import pytest
from answers import answer
from helpers import Told, quickstart, write_ledger
from mlflow import MlflowClient
from tracked_study import make_home

from study.commands.delete import delete_study
from study.errors import UserError
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger
from study.tracking import MlflowTracker


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_database: Path) -> Home:
    """Two studies, `one` and `other`; MLflow's database is there."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "home"))
    found = make_home(tmp_path / "home", empty_database)
    for name in ("one", "other"):
        spec = quickstart(f"name={name}")
        folder = found.create_study(spec)
        write_ledger(folder.ledger_file, Told("search", [0.5], params={"method.alpha": 0.5}))
    return found


def track(home: Home) -> None:
    """Bring the studies into MLflow."""
    for folder in home.list_studies():
        tracker = MlflowTracker(home, folder, folder.load_spec())
        tracker.start_following()
        assert tracker.finish_writing() is None


def runs(home: Home) -> dict[str, int]:
    """How many runs each experiment has."""
    client = MlflowClient(home.tracking_uri)
    found = {one.name: len(client.search_runs([one.experiment_id])) for one in client.search_experiments()}
    return {name: count for name, count in found.items() if count}


@pytest.mark.slow
def test_a_study_is_removed_whole_and_no_other(home: Home) -> None:
    track(home)
    assert runs(home) == {"one": 2, "other": 2}
    assert answer("delete", "one", "--yes").out.endswith("one: removed\n")
    assert runs(home) == {"other": 2}
    assert [folder.name for folder in home.list_studies()] == ["other"]
    assert not [path for path in home.path.rglob("*") if "one" in path.name]
    assert answer("delete", "one", "--yes").status == 2
    home.create_study(quickstart("name=one"))
    assert [folder.name for folder in home.list_studies()] == ["other", "one"], "the name is free"


@pytest.mark.slow
def test_a_study_that_runs_is_not_removed(home: Home) -> None:
    held = Ledger(StudyFolder(home.path / "one").ledger_file)
    with pytest.raises(UserError, match="another process is running this study"):
        delete_study(home, "one")
    held.close()
    assert len(home.list_studies()) == 2


@pytest.mark.slow
def test_a_link_in_the_place_of_a_study_is_refused_before_anything_is_removed(home: Home, tmp_path: Path) -> None:
    track(home)
    moved = (home.path / "one").rename(tmp_path / "moved")
    (home.path / "one").symlink_to(moved)
    before = sorted(moved.rglob("*"))
    for flags in (["--yes"], []):
        done = answer("delete", "one", *flags)
        assert done.status == 2
        assert f"one: is a symbolic link in {home.path}, to {moved}" in done.err
    assert runs(home) == {"one": 2, "other": 2}
    assert sorted(moved.rglob("*")) == before


def test_what_a_link_in_a_study_leads_to_stays(home: Home, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "mine").touch()
    (home.path / "one" / "checkpoints").symlink_to(tmp_path / "disk")
    delete_study(home, "one")
    assert [folder.name for folder in home.list_studies()] == ["other"]
    assert (tmp_path / "disk" / "mine").exists()


@pytest.mark.parametrize("typed", ["n\n", "\n", ""])
def test_without_a_yes_nothing_is_removed(home: Home, monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    done = answer("delete", "one")
    assert done.status == 1
    assert "1 trial," in done.err
    assert len(home.list_studies()) == 2


@pytest.mark.slow
def test_a_damaged_study_can_be_removed(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    track(home)
    ledger = home.find_study("one").ledger_file
    first, *others = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(first + b"".join(others[1:]))
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    done = answer("delete", "one")
    assert done.status == 0
    assert (
        f"unreadable ({ledger}: damaged at byte {len(first)}: event 2 does not follow the events before it" in done.err
    )
    assert runs(home) == {"other": 2}
    assert [folder.name for folder in home.list_studies()] == ["other"]


def test_a_study_whose_first_event_is_lost_is_not_removed_without_its_runs(home: Home) -> None:
    track(home)
    home.find_study("one").ledger_file.write_bytes(b"")
    done = answer("delete", "one", "--yes")
    assert done.status == 2
    assert "which runs in MLflow are its own" in done.err
    assert runs(home) == {"one": 2, "other": 2}
