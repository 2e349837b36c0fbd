"""Where caches and sockets go if the user's home, or the temporary folder, cannot be written."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from helpers import ROOT

from study import writable_folders
from study.data.source import data_root, data_roots, writable_data_folder
from study.errors import UserError

NOWHERE = "/dev/null/home"
"""A home in which nothing can be made, whoever tries."""


@pytest.fixture(autouse=True)
def _no_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("STUDY_DATA", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "MPLCONFIGDIR", "TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", NOWHERE)
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "studies"))
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_why_a_folder_cannot_be_written_is_known_before(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert writable_folders.why_unwritable(tmp_path / "file" / "below") == "Not a directory"
    assert writable_folders.why_unwritable(tmp_path / "a" / "b") is None
    assert not (tmp_path / "a").exists()
    assert writable_folders.why_unwritable(Path("/proc/nothing/here")) == (
        None if os.access("/proc", os.W_OK) else "Permission denied"
    )


def test_data_go_below_the_home_of_studies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "studies" / ".cache" / "study"
    assert data_root() == writable_data_folder() == mine
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "file" / "x"))
    (tmp_path / "file").touch()
    assert data_roots() == [tmp_path / "file" / "x", Path(NOWHERE, ".cache", "study"), mine]
    assert writable_data_folder() == mine
    monkeypatch.setenv("STUDY_HOME", "/dev/null/studies")
    with pytest.raises(UserError, match=r"no folder for data can be written \(.*Not a directory.*Set STUDY_DATA"):
        writable_data_folder()


def test_caches_of_libraries_go_there_too_and_what_is_set_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_HOME", "/mine")
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)  # PyTorch sets it once it compiles
    writable_folders.set_library_folders()
    for name in ("XDG_CACHE_HOME", "MPLCONFIGDIR", "TORCHINDUCTOR_CACHE_DIR"):
        assert Path(os.environ[name]).is_relative_to(tmp_path / "studies" / ".cache")
    assert os.environ["TRITON_HOME"] == "/mine"
    assert "TMPDIR" not in os.environ


def test_a_home_that_can_be_written_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    before = dict(os.environ)
    writable_folders.set_library_folders()
    assert dict(os.environ) == before


def test_a_user_without_name_and_home_gets_both(tmp_path: Path) -> None:
    code = (
        "import os, pwd\n"
        "os.getuid = lambda: 54321\n"
        "def getpwuid(number): raise KeyError(number)\n"
        "pwd.getpwuid = getpwuid\n"
        "from study import writable_folders\n"
        "writable_folders.set_library_folders()\n"
        "from pathlib import Path\n"
        "from study.home.provenance import study_owner\n"
        "print(Path.home(), study_owner())"
    )
    environment = {"PYTHONPATH": str(ROOT), "STUDY_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "/ uid 54321\n"


def test_the_folder_for_sockets_is_found_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = []
    monkeypatch.setattr(writable_folders, "_is_writable_folder", lambda place: place in there)
    run, mine = str(tmp_path / "run"), str(tmp_path / "studies")
    monkeypatch.setenv("XDG_RUNTIME_DIR", run)
    with pytest.raises(UserError, match=rf"{run}: No such file or directory.*{mine}.*TMPDIR=/FOLDER"):
        writable_folders.ray_socket_folder(100)
    for place in (mine, run, "/tmp"):
        there.append(place)
        assert writable_folders.ray_socket_folder(100) == place
    there.remove("/tmp")
    with pytest.raises(UserError, match="has more than 9 characters"):
        writable_folders.ray_socket_folder(9)


def test_temporary_files_go_there_where_no_temporary_folder_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    can = writable_folders._is_writable_folder
    monkeypatch.setattr(
        writable_folders, "_is_writable_folder", lambda place: place not in ("/tmp", "/var/tmp") and can(place)
    )
    writable_folders.set_library_folders()
    assert os.environ["TMPDIR"] == tempfile.gettempdir() == str(tmp_path / "studies")


@pytest.mark.skipif(sys.platform != "linux", reason="others have no such folder")
def test_a_linux_without_shared_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    writable_folders.check_shared_memory()
    for there in ("/dev/null/shm", "/proc/self/shm"):
        monkeypatch.setattr(writable_folders, "SHARED_MEMORY_FOLDER", there)
        with pytest.raises(UserError, match=rf"{there}: .*--shm-size"):
            writable_folders.check_shared_memory()
