"""How Ctrl-C, SIGTERM and SIGHUP stop a study: in good order after the first signal, at once after a second."""

import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from study.sweep import STOPPING_MESSAGE
from study.sweep.agenda import Agenda
from study.upstream.interrupt import (
    STOP_SIGNALS,
    has_stop_signal_come,
    ignore_signal,
    resend_dropped_interrupts_in_block,
)

DUPLICATE_SIGNAL_S = 0.3
"""Seconds within which the same signal counts once: a process group may get it, and one of its processes pass it on, as
`uv run` does."""


@contextmanager
def stop_study_on_signals(agenda: Agenda, tell: Callable[[str], None]) -> Iterator[None]:
    """Make each of `STOP_SIGNALS` ask the agenda to stop, and a second one raise KeyboardInterrupt as usual.

    The same signal within `DUPLICATE_SIGNAL_S` seconds is no second one, nor is another SIGHUP. A signal that came
    before, and that a library swallowed, is obeyed too; a second one that is swallowed is raised again. Outside the
    main thread, where no signal arrives, this does nothing.

    Python runs a signal's handler between two of its own instructions: while the main thread is within Ray, or loads a
    library, that may be a minute later on a busy machine. So another thread says at once that the signal has come.

    Args:
        tell: prints that the study stops.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    first: list[tuple[int, float]] = []

    def stop(signum: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if signum == signal.SIGHUP:
            before[signum] = signal.SIG_IGN
            ignore_signal(signum)
        if first and signum == first[0][0] and now - first[0][1] < DUPLICATE_SIGNAL_S:
            return
        if agenda.stopping:
            first.clear()  # this one may be sent again, and must not count as the first then
            dropped.raise_interrupt(frame)
            return
        first.append((signum, now))
        agenda.stopping = "interrupted"

    def acknowledge() -> None:
        told = False
        while number := arrived.recv(1):
            if number[0] == signal.SIGTERM:
                signal.alarm(0)  # Ray's handler in C++ may have set it, to end the process
            if not told and number[0] in STOP_SIGNALS:
                told = True
                tell(STOPPING_MESSAGE)

    arrived, woken = socket.socketpair()
    woken.setblocking(False)
    thread = threading.Thread(target=acknowledge, name="signals", daemon=True)
    thread.start()
    descriptor = signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    try:
        with resend_dropped_interrupts_in_block() as dropped:
            if has_stop_signal_come():
                agenda.stopping = "interrupted"
                tell(STOPPING_MESSAGE)
            for number in STOP_SIGNALS:
                signal.signal(number, stop)
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(descriptor)
        woken.close()
        thread.join()
        arrived.close()
