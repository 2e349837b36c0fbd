"""The `study` command as a user types it, in a process of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from study.home.folder import StudyFolder
from study.home.record import StudyRecord
from study.spec import StudySpec
from study.upstream.environment import KEEP_LOOPBACK_VARIABLES, UV_HOOK_VARIABLE


def as_a_users() -> dict[str, str]:
    """The environment of these tests, without what a driver has to set itself before it imports Ray."""
    return {
        name: value for name, value in os.environ.items() if name not in {UV_HOOK_VARIABLE, *KEEP_LOOPBACK_VARIABLES}
    }


@dataclass(frozen=True)
class Command:
    """The `study` command with a home of its own; `patience` in seconds, after which a command is killed."""

    home: Path
    work: Path
    patience: float = 240

    def start(self, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
        """Begin, in a process group of its own, as a shell would; with `SABOTAGE`, see `sabotage.py`."""
        command = [str(Path(__file__).parent / "sabotage.py")] if "SABOTAGE" in environment else ["-m", "study"]
        return subprocess.Popen(
            [sys.executable, *command, *arguments],
            cwd=self.work,
            env={**as_a_users(), "STUDY_HOME": str(self.home), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __call__(self, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run to the end.

        Raises:
            TimeoutExpired: it did not come to an end; it is killed with all that it started.
        """
        process = self.start(*arguments, **environment)
        try:
            out, err = process.communicate(timeout=self.patience)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def done(self, *arguments: str, **environment: str) -> str:
        """What a command that has to succeed prints."""
        ended = self(*arguments, **environment)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def wait_for(self, name: str, condition: Callable[[StudyRecord], bool]) -> None:
        """Until a condition holds of the record of a study."""
        ledger, deadline = self.folder(name).ledger_file, time.monotonic() + self.patience
        while not (ledger.exists() and condition(StudyRecord.load(ledger))):
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def folder(self, name: str) -> StudyFolder:
        return StudyFolder(self.home / name)

    def load(self, name: str) -> tuple[StudySpec, StudyRecord]:
        """A study's file and record."""
        return self.folder(name).load_spec(), StudyRecord.load(self.folder(name).ledger_file)
