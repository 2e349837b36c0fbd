"""Python processes that this one starts."""

import subprocess
import sys
from pathlib import Path

import pytest

from study.upstream.child_process import python_command


def test_a_program_finds_modules_where_this_process_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the path has what is no string, which Python ignores."""
    (tmp_path / "mine_alone.py").write_text("WORD = 'found'\n", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path), Path("/nowhere")])
    command = python_command("import mine_alone\nprint(mine_alone.WORD, sys.argv[1:])", "a b", "")
    assert subprocess.check_output(command, text=True, cwd="/") == "found ['a b', '']\n"
