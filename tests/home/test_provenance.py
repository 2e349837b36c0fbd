"""What a result was computed with, and by whom."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import ROOT

from study import __version__
from study.home.provenance import study_owner


def shown(folder: Path) -> str:
    """What `study --version` prints of the package in a folder."""
    command = [sys.executable, "-c", "from study.cli import main; main()", "--version"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, env={"PYTHONPATH": ""})
    return done.stdout.strip()


def git(folder: Path, *command: str) -> str:
    given = ["-c", "user.name=me", "-c", "user.email=me@here", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *given, *command], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_the_version_names_the_commit_of_a_checkout_alone(tmp_path: Path) -> None:
    """Installed, in a checkout, and in one that was changed since."""
    shutil.copytree(ROOT / "study", tmp_path / "study", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / ".gitignore").write_text("__pycache__/\n")
    assert shown(tmp_path) == __version__
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    commit = git(tmp_path, "rev-parse", "HEAD")[:12]
    (tmp_path / "birds.yaml").write_text("a user's draft, beside the package\n")
    assert shown(tmp_path) == f"{__version__} (commit {commit})"
    (tmp_path / "study" / "errors.py").write_text((ROOT / "study" / "errors.py").read_text() + "\n")
    assert re.fullmatch(rf"{__version__} \(commit {commit}, changed since\)", shown(tmp_path))


def test_the_owner_is_who_is_named_or_logged_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDY_OWNER", " ada ")
    assert study_owner() == "ada"
    monkeypatch.setenv("STUDY_OWNER", "")
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "grace")
    assert study_owner() == "grace"


def test_a_user_without_a_name_is_a_number() -> None:
    code = "import os; os.getuid = lambda: 54321; from study.home.provenance import study_owner; print(study_owner())"
    environment = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "uid 54321\n"
