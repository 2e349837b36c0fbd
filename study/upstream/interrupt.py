"""Ctrl-C and SIGTERM that a library swallows: Python drops a KeyboardInterrupt within a destructor or a weak
reference's callback, and so does an `except:` of a library that is being loaded."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

NUMBERS = (signal.SIGINT, signal.SIGTERM)


class Interrupt:
    """A handler of signals that raises KeyboardInterrupt, and remembers that it has."""

    came = False

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        self.came = True
        raise KeyboardInterrupt


def listen() -> None:
    """From now on, both signals are a KeyboardInterrupt, and remembered."""
    handler = Interrupt()
    for number in NUMBERS:
        signal.signal(number, handler)


def has_come() -> bool:
    """Whether one of the signals has come since `listen`."""
    handlers = [signal.getsignal(number) for number in NUMBERS]
    return any(isinstance(handler, Interrupt) and handler.came for handler in handlers)


@contextmanager
def ignored() -> Iterator[None]:
    """Have both signals change nothing until the block is left, as a clean-up that has to come to its end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in NUMBERS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
