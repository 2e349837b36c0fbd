"""Replaces itself by a given command, which then ends with the process that started it; on Linux.

A process of Ray's that waits for its node to answer does not notice that the node is dead, and waits for ever.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1
"""Option of prctl(2): the signal that a process gets when its parent ends; it stays through `exec`."""

FOR_SETUP = "--language="
"""Prefix of an option that Ray adds for its own script, which this one replaces."""


def end_with_parent() -> None:
    """Make the system end this process when its parent ends; do nothing on other systems than Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main(parent: str, *command: str) -> None:
    """Run the command so that it ends with its parent, if the parent still has this name; else the parent has ended."""
    end_with_parent()
    if Path(f"/proc/{os.getppid()}/comm").read_text(encoding="utf-8").strip() == parent:
        os.execv(command[0], [word for word in command if not word.startswith(FOR_SETUP)])


if __name__ == "__main__":
    main(*sys.argv[1:])
