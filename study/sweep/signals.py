"""The signals that stop a driver that runs: acknowledged at once, whatever it does, and obeyed as soon as it can."""

import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from study.sweep.agenda import Agenda
from study.sweep.steps import STOPPING
from study.upstream.interrupt import NUMBERS, has_come, once

__all__ = ["STOPPING", "TWICE", "stopped_by_signals"]

TWICE = 0.3
"""Seconds within which the same signal again is the first one, told twice: to a whole group of processes, and once more
by one of them that passes it on, as `uv run` does."""


@contextmanager
def stopped_by_signals(agenda: Agenda, tell: Callable[[str], None]) -> Iterator[None]:
    """Each of `NUMBERS` asks the agenda to stop; a second one, `TWICE` later, is the usual KeyboardInterrupt. A second
    SIGHUP is nothing.

    One that came before and that a library swallowed is obeyed, too. Outside the main thread, where no signal arrives,
    it does nothing.

    Python calls a signal's handler between two of its own instructions: while the main thread is within Ray, or loads a
    library, that may be a minute later on a busy machine. So another thread says at once that the signal has come.

    Args:
        tell: says so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    first: list[tuple[int, float]] = []

    def stop(signum: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if signum == signal.SIGHUP:
            before[signum] = signal.SIG_IGN
            once(signum)
        if first and signum == first[0][0] and now - first[0][1] < TWICE:
            return
        if agenda.stopping:
            raise KeyboardInterrupt
        first.append((signum, now))
        agenda.stopping, agenda.by_hand = "interrupted", signum == signal.SIGINT

    def acknowledge() -> None:
        told = False
        while number := arrived.recv(1):
            if number[0] == signal.SIGTERM:
                signal.alarm(0)  # with which Ray's C++ ends the process, if it came before `take_signals_back`
            if not told and number[0] in NUMBERS:
                told = True
                tell(STOPPING)

    arrived, woken = socket.socketpair()
    woken.setblocking(False)
    thread = threading.Thread(target=acknowledge, name="signals", daemon=True)
    thread.start()
    descriptor = signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
    if has_come():
        agenda.stopping, agenda.by_hand = "interrupted", True
        tell(STOPPING)
    before = {number: signal.getsignal(number) for number in NUMBERS}
    for number in NUMBERS:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(descriptor)
        woken.close()
        thread.join()
        arrived.close()
