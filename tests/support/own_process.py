"""A script in a process of its own."""

import os
import subprocess
import sys

from study.upstream.environment import ProcessKind, variables_of_processes


def as_driver(script: str, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """With the settings that `study` makes before Ray is imported, which such a script does first."""
    settings = {**os.environ, **variables_of_processes(ProcessKind.DRIVER, ProcessKind.OWN_RAY), **environment}
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, env=settings, capture_output=True, text=True, timeout=500)
