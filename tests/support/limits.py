"""What a piece of work may take at most, whatever it is given."""

import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class TooLong(BaseException):
    """Out of time. No Exception, so that nothing on the way takes it for one of the work's."""


@contextmanager
def within(seconds: float = 10.0, megabytes: int = 500) -> Iterator[None]:
    """Fails where the block takes more processor time, or more memory than before it.

    An endless loop is ended, and what asks for all memory at once is refused: for the address space the limit is 4 GB
    more, since libraries reserve much of it.
    """

    def end(*_: object) -> None:
        raise TooLong(f"not over after {seconds} s")

    before = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGPROF, end)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    resident = _status("VmRSS")
    resource.setrlimit(resource.RLIMIT_AS, (_status("VmSize") * 1024 + 4 * 2**30, before[1]))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
        taken = (_status("VmHWM") - resident) // 1024
        assert taken <= megabytes, f"it took {taken} MB"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextmanager
def full_disk(largest: int) -> Iterator[None]:
    """No file can become larger; what it is to hold beyond is refused, as by a full disk.

    Python would keep the compiled modules that it could write a part of, and not load them again.
    """
    compiles, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = compiles


def _status(name: str) -> int:
    """A figure of this process in kB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
