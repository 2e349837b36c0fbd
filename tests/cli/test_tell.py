"""What others named, on a terminal."""

import ast

import pytest
from helpers import ROOT

from study.text import print_text


def test_what_a_terminal_would_obey_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    print_text("caf\udce9\t\x1b[2Jclass\rname\nnext\u202e\ud800")
    assert capsys.readouterr().out == "caf\\xe9\t\\x1b[2Jclass\\rname\nnext\\u202e\\ud800\n"


@pytest.mark.slow
def test_nothing_else_prints() -> None:
    """But for JSON, in which the same is escaped."""
    calls = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "study").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "typer.echo", "sys.stdout.write")
    }
    assert calls == {"study/text.py", "study/cli/options.py"}
