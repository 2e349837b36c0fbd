"""Ctrl-C, SIGTERM and SIGHUP that a library swallows: Python drops a KeyboardInterrupt within a destructor or a weak
reference's callback, and so does an `except:` of a library that is being loaded."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

IS_HELD = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
"""True: this process is to outlive its terminal, as `nohup` has it."""

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


AGAIN = 0.05
"""Seconds after which one that was dropped comes again: what dropped it is over by then."""


class Dropped:
    """Has a KeyboardInterrupt that Python drops come again soon, and shows nothing of it; for `sys.unraisablehook`.

    Args:
        before: takes everything else that is dropped.
    """

    def __init__(self, before: "Callable[[UnraisableHookArgs], object]") -> None:
        self.before = before
        self._timer: threading.Timer | None = None

    def __call__(self, lost: "UnraisableHookArgs") -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            self.before(lost)
            return
        self._timer = threading.Timer(AGAIN, self._send)
        self._timer.daemon = True
        self._timer.start()

    def call_off(self) -> None:
        """Let it not come again: it was obeyed."""
        if self._timer:
            self._timer.cancel()

    def _send(self) -> None:
        if callable(signal.getsignal(signal.SIGINT)):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


@contextmanager
def dropped_ones_come_again() -> Iterator[None]:
    """See `Dropped`; one that is still to come when the block begins or ends does not."""
    before = sys.unraisablehook
    if isinstance(before, Dropped):
        before.call_off()
    sys.unraisablehook = mine = Dropped(before)
    try:
        yield
    finally:
        sys.unraisablehook = before
        mine.call_off()


def once(signum: int) -> None:
    """Have this signal change nothing more: the system sends SIGHUP when a terminal is closed, and its shell again."""
    signal.signal(signum, signal.SIG_IGN)


def listen() -> None:
    """From now on, each of `NUMBERS` is a KeyboardInterrupt, remembered, and raised again where Python drops it."""
    if not isinstance(sys.unraisablehook, Dropped):  # a process may begin many commands, as a notebook's does
        sys.unraisablehook = Dropped(sys.unraisablehook)
    handler = Interrupt()
    for number in NUMBERS:
        signal.signal(number, handler)


def has_come() -> bool:
    """Return whether one of the signals has come since `listen`."""
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
