"""Ledgers to bring into MLflow, and an MLflow to bring them into."""

import secrets
from pathlib import Path

import pytest
from tracked_study import make_home, make_study

from study.home.folder import Home, StudyFolder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_database: Path) -> Home:
    """A home whose MLflow has no run, at a path of its own: MLflow keeps connections by a database's path, and pytest
    gives paths of tests that passed to others."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return make_home(tmp_path / f"home-{secrets.token_hex(8)}", empty_database)


@pytest.fixture
def folder(home: Home) -> StudyFolder:
    """The example in that home."""
    return make_study(home)
