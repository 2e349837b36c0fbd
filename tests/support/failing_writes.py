"""A write below a folder that fails as the system would say it, in this process and in those that it starts."""

import ctypes
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
CONTROL = "FAILING_WRITES"
"""Variable with the file by which processes are told what fails."""

CALLS = ("open", "write", "sync", "rename", "mkdir", "truncate", "link", "remove")
"""What can fail: `open` where it makes a file, `truncate` where it makes one longer; `remove` only after another, of a
disk that cannot be written any more."""


class _Control(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int) for name in ("armed", "call", "nth", "error", "lasting", "seen", "failed", "process")),
        *(("folder", ctypes.c_char * 1024), ("pattern", ctypes.c_char * 256)),
        *(("first", ctypes.c_char * 1024), ("log", ctypes.c_char * 1024)),
    )


@dataclass(frozen=True)
class Fault:
    """The `nth` of the calls on files whose path below the folder is as `pattern` fails.

    Attributes:
        error: the number that the system gives.
        lasting: whether everything that is written below the folder fails from then on.
    """

    call: str
    pattern: str
    nth: int
    error: int
    lasting: bool = False


def missing() -> str | None:
    """What stands against it here."""
    if sys.platform != "linux":
        return "needs Linux"
    return None if shutil.which("gcc") else "needs gcc"


def run_again() -> None:
    """Run this process's command anew with the library loaded, unless it is."""
    if CONTROL in os.environ:
        return
    place = Path(tempfile.mkdtemp(prefix="failing-writes-"))
    library, control = place / "failing_writes.so", place / "control"
    subprocess.run(["gcc", "-O1", "-fPIC", "-shared", str(SOURCE), "-o", str(library), "-ldl"], check=True)
    control.write_bytes(bytes(ctypes.sizeof(_Control)))
    environment = {name: value for name, value in os.environ.items() if name != "MLFLOW_TRACKING_URI"}
    environment |= {CONTROL: str(control), "LD_PRELOAD": str(library)}
    try:
        status = subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode
    finally:
        shutil.rmtree(place)
    raise SystemExit(status)


class FailingWrites:
    """Tells all processes that have the library what fails, below which folder."""

    def __init__(self, folder: Path) -> None:
        with open(os.environ[CONTROL], "r+b") as file:
            self._control = _Control.from_buffer(mmap.mmap(file.fileno(), ctypes.sizeof(_Control)))
        self._folder = folder

    @contextmanager
    def counted(self) -> Iterator[Counter[tuple[str, str]]]:
        """Counts the calls of the block by their name and path below the folder; filled when it ends."""
        found = Counter[tuple[str, str]]()
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as log:
            self._tell(call=-1, log=log.name.encode())
            try:
                yield found
            finally:
                self._control.armed = 0
                for line in log:
                    call, _, path = line.rstrip("\n").partition(" ")
                    found[call, path] += 1

    @contextmanager
    def failing(self, fault: Fault) -> Iterator[None]:
        """Lets it fail within the block, if the call comes."""
        given = {"call": CALLS.index(fault.call), "pattern": fault.pattern.encode(), "nth": fault.nth}
        self._tell(error=fault.error, lasting=fault.lasting, **given)
        try:
            yield
        finally:
            self._control.armed = 0

    @property
    def failed(self) -> str | None:
        """What failed first, with its path and process; None where nothing has."""
        control = self._control
        who = "driver" if control.process == os.getpid() else "another process"
        return f"{control.first.decode()}, {who}" if control.failed else None

    def _tell(self, **values: object) -> None:
        control = self._control
        ctypes.memset(ctypes.addressof(control), 0, ctypes.sizeof(control))
        for name, value in values.items():
            setattr(control, name, value)
        control.folder = str(self._folder).encode()
        control.armed = 1
