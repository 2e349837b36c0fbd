"""A home and a ledger for the tests of what is in a home."""

from pathlib import Path

import pytest

from study.home.events import EpochReported, TrialStarted
from study.home.folder import Home
from study.home.ledger import Ledger


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home that is not there yet."""
    return Home(tmp_path / "home")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The ledger of a new study called `mine`, two events after its beginning."""
    (tmp_path / "mine").mkdir()
    path = tmp_path / "mine" / "ledger.jsonl"
    Ledger.create(path)
    held = Ledger(path)
    held.append(TrialStarted(trial=0, node="here"))
    held.append(EpochReported(trial=0, epoch=1, metrics={"val/accuracy": 0.5, "val/x": None}))
    held.close()
    return path
