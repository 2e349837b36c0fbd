"""What a worker does before a trial."""

import importlib
import importlib.util
import sys
from pathlib import Path

import pytest

from study.sweep import worker


def test_a_file_of_the_working_folder_hides_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray puts the driver's working folder first; a trial has one of its own, and is told the driver's."""
    (tmp_path / "skops.py").write_text("hidden = True\n")
    (tmp_path / "mine.py").write_text("")
    monkeypatch.setattr(sys, "path", [sys.path[0], str(tmp_path), *sys.path[1:]])
    monkeypatch.delitem(sys.modules, "skops", raising=False)
    importlib.invalidate_caches()
    origins = []
    for _ in range(2):
        found, mine = importlib.util.find_spec("skops"), importlib.util.find_spec("mine")
        assert found is not None
        assert mine is not None
        origins.append(Path(str(found.origin)).parent == tmp_path)
        worker._search_last(str(tmp_path))
    assert origins == [True, False]
