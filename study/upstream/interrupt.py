"""Ctrl-C and SIGTERM that a library swallows: Python drops a KeyboardInterrupt within a destructor or a weak
reference's callback, and so does an `except:` of a library that is being loaded."""

import signal
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
