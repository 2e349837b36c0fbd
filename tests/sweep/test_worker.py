"""What a worker does before a trial."""

import importlib
import importlib.util
import sys
from pathlib import Path

import pytest

from study.sweep import worker


def test_a_file_of_the_working_folder_hides_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray puts the driver's working folder first; Tune names it to a trial, which has one of its own."""
    (tmp_path / "skops.py").write_text("hidden = True\n")
    (tmp_path / "mine.py").write_text("")
    monkeypatch.setattr(sys, "path", [sys.path[0], str(tmp_path), *sys.path[1:]])
    monkeypatch.setenv("TUNE_ORIG_WORKING_DIR", str(tmp_path))
    monkeypatch.delitem(sys.modules, "skops", raising=False)
    importlib.invalidate_caches()
    origins = []
    for _ in range(2):
        found, mine = importlib.util.find_spec("skops"), importlib.util.find_spec("mine")
        assert found is not None
        assert mine is not None
        origins.append(Path(str(found.origin)).parent == tmp_path)
        worker._search_working_folder_last()
    assert origins == [True, False]
