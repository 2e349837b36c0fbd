"""Ctrl-C, SIGTERM and SIGHUP that a library swallows: Python drops a KeyboardInterrupt within a destructor or a weak
reference's callback, and so does an `except:` of a library that is being loaded."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

IS_HELD = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
"""Whether this process is to outlive its terminal, as `nohup` has it."""

NUMBERS = (signal.SIGINT, signal.SIGTERM, *(() if IS_HELD else (signal.SIGHUP,)))
"""The signals that stop a command: a terminal that is closed sends the last."""


class Interrupt:
    """A handler of signals that raises KeyboardInterrupt, and remembers that it has."""

    came = False

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        self.came = True
        if signum == signal.SIGHUP:
            once(signum)
        raise KeyboardInterrupt


def once(signum: int) -> None:
    """Have this signal change nothing more: the system sends SIGHUP when a terminal is closed, and its shell again."""
    signal.signal(signum, signal.SIG_IGN)


def listen() -> None:
    """From now on, each of `NUMBERS` is a KeyboardInterrupt, and remembered."""
    handler = Interrupt()
    for number in NUMBERS:
        signal.signal(number, handler)


def has_come() -> bool:
    """Whether one of the signals has come since `listen`."""
    handlers = [signal.getsignal(number) for number in NUMBERS]
    return any(isinstance(handler, Interrupt) and handler.came for handler in handlers)


@contextmanager
def ignored() -> Iterator[None]:
    """Have them change nothing until the block is left, as a clean-up that has to come to its end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in NUMBERS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
