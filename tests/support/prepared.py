"""The `study` command without the seconds in which a process imports Ray, MLflow and PyTorch.

To import them takes as long as all else that the driver of a small study does, and tests start hundreds. A command that
is waited for is a copy (a fork) of one process per worker of pytest that has imported them, and done nothing else: it
has a group of processes, an environment, a folder and outputs of its own, and is what `python -m study` is from there.
"""

import atexit
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path
from tempfile import TemporaryDirectory

from command import Command

from study.upstream.environment import ProcessKind, variables_of_processes

IMPORTS = [
    "study.sweep.worker",
    "study.sweep.tune_adapters",
    "study.tracking.ledger_to_mlflow",
    "study.analysis.report.write_report",
    "study.driver.run",
]
IMPORTS += ["study.commands.final_training", "study.sweep.search_stage"]
"""Modules that bring all that takes long to import."""

AT_ONCE = {"list", "status", "plan", "enqueue", "stop", "export"}
"""Commands that import none of them."""


@dataclass(frozen=True)
class Prepared(Command):
    """A command that imports them is such a copy where it is run to its end. One that is only started, to be given
    signals, is a process from its beginning; so is one with an environment of its own, as Ray reads some variables
    where it is imported."""

    def __call__(self, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        if arguments[0] in AT_ONCE or set(environment) - {"SABOTAGE"}:
            return super().__call__(*arguments, **environment)
        given = {**os.environ, "STUDY_HOME": str(self.home), **environment}
        with TemporaryDirectory() as outputs:
            process = _original().Process(target=_run, args=(arguments, str(self.work), given, outputs))
            process.start()
            process.join(self.patience)
            if process.exitcode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid or 0, signal.SIGKILL)
                raise subprocess.TimeoutExpired(list(arguments), self.patience, *_read(outputs))
            status = process.exitcode
            process.close()
            return subprocess.CompletedProcess(arguments, status, *_read(outputs))


def _read(outputs: str) -> list[str]:
    return [Path(outputs, name).read_text(encoding="utf-8") for name in ("out", "err")]


@cache
def _original() -> ForkServerContext:
    """The process that is copied, with the variables that a driver sets before it imports Ray."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTS)
    plain = dict(os.environ)
    os.environ.update(variables_of_processes(ProcessKind.DRIVER, ProcessKind.OWN_RAY, ProcessKind.MLFLOW_CLIENT))
    try:
        forkserver.ensure_running()
    finally:
        os.environ.clear()
        os.environ.update(plain)
    return context


def _run(arguments: tuple[str, ...], work: str, environment: dict[str, str], outputs: str) -> None:
    """In the copy."""
    os.setsid()
    os.chdir(work)
    os.environ.clear()
    os.environ.update(environment)
    for number, name in ((1, "out"), (2, "err")):
        file = os.open(Path(outputs, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, number)
        os.close(file)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    script = Path(__file__).with_name("sabotage.py")
    is_plain = "SABOTAGE" not in environment
    sys.argv = ["study" if is_plain else str(script), *arguments]
    sys.path.insert(0, work if is_plain else str(script.parent))
    try:
        if is_plain:
            runpy.run_module("study", run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(str(script), run_name="__main__")
    finally:
        atexit._run_exitfuncs()  # as Python does where it ends, and not after a fork
