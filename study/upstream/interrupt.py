"""Ctrl-C, SIGTERM and SIGHUP where a library cannot bear them.

Python drops a KeyboardInterrupt within a destructor or a weak reference's callback, and one that reaches the C++ of a
library that is being loaded, as torch's, ends the process by SIGABRT.
"""

import _thread
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

IGNORES_HANGUP = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
"""Whether this process is to outlive its terminal, as with `nohup`."""

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, *(() if IGNORES_HANGUP else (signal.SIGHUP,)))
"""The signals that stop a command; SIGHUP comes when a terminal is closed."""


RESEND_DELAY_S = 0.05
"""Seconds after which a signal that was dropped, or came while a library was being loaded, is sent again."""

MAX_IMPORT_WAIT_S = 10.0
"""Most seconds that a signal waits for a library that is being loaded."""


class DroppedInterruptResender:
    """Hook for `sys.unraisablehook`: a KeyboardInterrupt that Python drops is sent again soon, without a message.

    Args:
        before: the hook that gets everything else that is dropped.
    """

    def __init__(self, before: "Callable[[UnraisableHookArgs], object]") -> None:
        self.before = before
        self._turn = 0
        self._waits_until: float | None = None

    def __call__(self, lost: "UnraisableHookArgs") -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            self._schedule_resend()
        else:
            self.before(lost)

    def raise_interrupt(self, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, or send a SIGINT soon while `frame` loads a library, for `MAX_IMPORT_WAIT_S`."""
        now = time.monotonic()
        self._waits_until = self._waits_until or now + MAX_IMPORT_WAIT_S
        if now > self._waits_until or not _is_importing(frame):
            self._waits_until = None
            raise KeyboardInterrupt
        self._schedule_resend()

    def _schedule_resend(self) -> None:
        self._turn += 1
        # a signal's handler may not wait for `threading`'s locks
        _thread.start_new_thread(self._resend_signal, (self._turn,))

    def cancel_resend(self) -> None:
        """Cancel a signal that is to be sent again: it was obeyed."""
        self._turn += 1

    def _resend_signal(self, turn: int) -> None:
        time.sleep(RESEND_DELAY_S)
        if turn == self._turn and callable(signal.getsignal(signal.SIGINT)):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


class InterruptHandler:
    """Handler of signals that raises KeyboardInterrupt, and remembers that one has come.

    Args:
        dropped: raises it.
    """

    has_received_signal = False

    def __init__(self, dropped: DroppedInterruptResender) -> None:
        self._dropped = dropped

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        self.has_received_signal = True
        if signum == signal.SIGHUP:
            ignore_signal(signum)
        self._dropped.raise_interrupt(frame)


def _is_importing(frame: FrameType | None) -> bool:
    """Return whether a module is being imported by this frame or one that called it."""
    while frame and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        frame = frame.f_back
    return frame is not None


@contextmanager
def resend_dropped_interrupts_in_block() -> Iterator[DroppedInterruptResender]:
    """Use a `DroppedInterruptResender` in the block; cancel signals still to be sent again at its begin or end."""
    before = sys.unraisablehook
    if isinstance(before, DroppedInterruptResender):
        before.cancel_resend()
    sys.unraisablehook = mine = DroppedInterruptResender(before)
    try:
        yield mine
    finally:
        sys.unraisablehook = before
        mine.cancel_resend()


def ignore_signal(signum: int) -> None:
    """Ignore this signal from now on: the system sends SIGHUP when a terminal is closed, and then its shell again."""
    signal.signal(signum, signal.SIG_IGN)


def raise_interrupt_on_signals() -> None:
    """Make each of `STOP_SIGNALS` a KeyboardInterrupt from now on, remembered, and raised again if Python drops it."""
    dropped = sys.unraisablehook  # a process may begin many commands, as a notebook's does
    if not isinstance(dropped, DroppedInterruptResender):
        sys.unraisablehook = dropped = DroppedInterruptResender(dropped)
    handler = InterruptHandler(dropped)
    for number in STOP_SIGNALS:
        signal.signal(number, handler)


def has_stop_signal_come() -> bool:
    """Return whether one of the signals has come since `raise_interrupt_on_signals`."""
    handlers = [signal.getsignal(number) for number in STOP_SIGNALS]
    return any(isinstance(handler, InterruptHandler) and handler.has_received_signal for handler in handlers)


@contextmanager
def ignore_stop_signals_in_block() -> Iterator[None]:
    """Ignore these signals in the block, as for a clean-up that has to finish."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
