"""Other Python processes that this one starts: how they find its modules, and that they end with it."""

import ctypes
import json
import signal
import sys

PR_SET_PDEATHSIG = 1
"""Option of prctl(2): the signal that a process gets when its parent ends."""


def python_command(program: str, *arguments: str) -> list[str]:
    """Return the command that runs a Python program in a process that finds modules where this one does.

    Args:
        program: its source; it has `json` and `sys`, and the arguments in `sys.argv[1:]`.
    """
    module_path = json.dumps([place for place in sys.path if isinstance(place, str)])  # Python ignores a Path
    found_as_here = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1))"
    return [sys.executable, "-c", f"{found_as_here}\n{program}", module_path, *arguments]


def end_with_parent() -> None:
    """Make the system end this process when its parent ends; do nothing on other systems than Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
