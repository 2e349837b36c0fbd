"""Data folders for tests of data: that of the test, and the real files where they are at hand."""

import os
from pathlib import Path

import pytest

REAL = Path(os.environ.get("STUDY_DATA", Path(__file__).parents[3] / "shared" / "data"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a test, which is the data folder."""
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    return tmp_path


@pytest.fixture
def real(root: Path) -> Path:
    """A data folder with the real files linked into it, so that nothing is written beside them."""
    if not (REAL / "MNIST").exists():
        pytest.skip("needs the real data files: set STUDY_DATA")
    for entry in REAL.iterdir():
        if entry.name != "prepared":
            (root / entry.name).symlink_to(entry)
    return root
