"""Ledgers to bring into MLflow, and an MLflow to bring them into."""

import secrets
from pathlib import Path

import pytest
from tracked_study import make_home, make_study

from study.home.folder import Home, StudyFolder


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder whose path no test had before: MLflow keeps what it knows of a database by its path, and pytest gives
    the path of a test that passed to the next one of its name."""
    own = tmp_path / secrets.token_hex(4)
    own.mkdir()
    return own


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_database: Path) -> Home:
    """A home whose MLflow has no run."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return make_home(tmp_path / "home", empty_database)


@pytest.fixture
def folder(home: Home) -> StudyFolder:
    """The example in that home."""
    return make_study(home)
