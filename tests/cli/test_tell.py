"""What others named, on a terminal."""

import pytest

from study.cli.options import tell


def test_what_a_terminal_would_obey_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    tell("caf\udce9\t\x1b[2Jclass\rname\nnext\u202e")
    assert capsys.readouterr().out == "caf\\xe9\t\\x1b[2Jclass\\rname\nnext\\u202e\n"
