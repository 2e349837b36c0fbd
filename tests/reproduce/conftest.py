"""A home of its own for each test, and studies of published tables in it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from published_study import Course

from study.home.folder import Home


@pytest.fixture(autouse=True)
def tracked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is told and not run has nothing that MLflow lacks."""
    monkeypatch.setattr("study.tracking.MlflowTracker.is_behind", False)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("STUDY_DATA", raising=False)
    return Home.locate()


@pytest.fixture
def begin(home: Home) -> Callable[..., Course]:
    """Begins the study of a table."""
    return lambda table, *assignments, **given: Course(home, table, *assignments, **given)
