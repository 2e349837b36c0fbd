"""Becomes the command that it is given, and ends with the process that started it: run by itself, on Linux.

A process of Ray's that waits for its node to answer does not notice that the node is dead, and waits for ever.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1
"""Of prctl(2): the signal that a process gets when its parent ends; it stays through `exec`."""

FOR_SETUP = "--language="
"""The beginning of an option that Ray adds for its own script that would be in this one's place."""


def end_with_parent() -> None:
    """Have the system end this process when its parent ends; on Linux, elsewhere nothing happens."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main(parent: str, *command: str) -> None:
    """End with the parent, which has this name; one that has another is not the parent any more."""
    end_with_parent()
    if Path(f"/proc/{os.getppid()}/comm").read_text(encoding="utf-8").strip() == parent:
        os.execv(command[0], [word for word in command if not word.startswith(FOR_SETUP)])


if __name__ == "__main__":
    main(*sys.argv[1:])
