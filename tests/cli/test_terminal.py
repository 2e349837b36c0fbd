"""A terminal that is closed stops a command in good order, and what is still printed is no error."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path

import pytest

CODE = """
import sys, time
from study import cli
from study.upstream import interrupt

def app(standalone_mode):
    try:
        print("ready", flush=True)
        time.sleep(3 if interrupt.IGNORES_HANGUP else 60)
    except KeyboardInterrupt:
        print("stopping", flush=True)
    print("over", file=sys.stderr)
    open(sys.argv[1], "w").write("held" if interrupt.IGNORES_HANGUP else "stopped")
    raise SystemExit(130)

cli.app = app
cli.main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("outcome", ["stopped", "held"])
def test_a_terminal_that_is_closed(tmp_path: Path, outcome: str) -> None:
    def begin() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGHUP, signal.SIG_IGN if outcome == "held" else signal.SIG_DFL)

    master, slave = pty.openpty()
    command = [sys.executable, "-c", CODE, str(tmp_path / "mark")]
    ends = {"stdin": slave, "stdout": slave, "stderr": slave}
    with subprocess.Popen(command, **ends, start_new_session=True, preexec_fn=begin) as process:
        os.close(slave)
        assert os.read(master, 100).startswith(b"ready")
        os.close(master)
        assert process.wait(timeout=60) == 130
    assert (tmp_path / "mark").read_text() == outcome


@pytest.mark.parametrize(
    "variables", [{"PAGER": "no-such-pager"}, {"PAGER": "'"}, {"PAGER": "cat", "MANPAGER": "true"}]
)
def test_a_page_of_the_guide_is_shown_whatever_a_pager_is_called(variables: dict[str, str]) -> None:
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "study", "guide", "start"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=os.environ | {"TERM": "xterm"} | variables,
    ) as process:
        os.close(slave)
        shown = bytearray()
        with suppress(OSError):  # the other end was closed
            while part := os.read(master, 1 << 16):
                shown += part
    os.close(master)
    assert process.returncode == 0
    assert b"After this page you can run a study" in shown
