"""Signals under a driver: told at once whatever the main thread does, obeyed as soon as it can."""

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from study.sweep import STOPPING_MESSAGE
from study.sweep.stop_on_signals import DUPLICATE_SIGNAL_S, stop_study_on_signals
from study.upstream import interrupt

BUSY = """
import hashlib
from types import SimpleNamespace
from study.sweep.stop_on_signals import stop_study_on_signals

agenda = SimpleNamespace(stopping=None)
with stop_study_on_signals(agenda, lambda text: print(text, agenda.stopping, flush=True)):
    print("busy", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", 6_000_000)  # in C, which no signal interrupts
    print(agenda.stopping, flush=True)
"""


def agenda() -> Any:
    return SimpleNamespace(stopping=None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_asks_the_agenda_and_the_second_interrupts(number: signal.Signals) -> None:
    asked, told = agenda(), list[str]()
    before = signal.getsignal(number)
    with stop_study_on_signals(asked, told.append):
        signal.raise_signal(number)
        signal.raise_signal(number)  # told twice, as under `uv run` with a signal to the whole group
        assert asked.stopping == "interrupted"
        time.sleep(DUPLICATE_SIGNAL_S)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert told == [STOPPING_MESSAGE]
    assert signal.getsignal(number) is before
    assert signal.set_wakeup_fd(-1) == -1


class Library:
    """Has a signal come while it is destroyed: what its end raises is lost."""

    def __init__(self, number: signal.Signals) -> None:
        self._number = number

    def __del__(self) -> None:
        signal.raise_signal(self._number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_one_that_a_library_swallows_comes_again(
    number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    def swallows() -> None:
        Library(number)
        time.sleep(60)

    hook, asked = sys.unraisablehook, agenda()
    with stop_study_on_signals(asked, lambda _: None):
        signal.raise_signal(number)
        time.sleep(DUPLICATE_SIGNAL_S)
        with pytest.raises(KeyboardInterrupt):
            swallows()
    assert sys.unraisablehook is hook
    assert capfd.readouterr().err == ""


def test_a_command_obeys_one_that_a_library_swallows_and_shows_nothing_of_it() -> None:
    code = """
import signal, time, weakref
from study.upstream import interrupt

interrupt.raise_interrupt_on_signals()
class Thing: pass
thing = Thing()
watch = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
try:
    del thing
    time.sleep(60)
except KeyboardInterrupt:
    print("stopped", interrupt.has_stop_signal_come())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=200)
    assert (done.stdout, done.stderr) == ("stopped True\n", "")


def test_a_command_obeys_one_that_comes_while_a_library_is_loaded_once_it_is(tmp_path: Path) -> None:
    """A KeyboardInterrupt within torch's C++ ends the process by SIGABRT while torch is being loaded."""
    sends = [f"os.kill(os.getpid(), {int(number)})" for number in (signal.SIGTERM, signal.SIGINT)]
    (tmp_path / "library.py").write_text("\n".join(["import os", *sends, "WHOLE = True"]))
    code = """
import time
from study.upstream import interrupt

interrupt.raise_interrupt_on_signals()
try:
    import library
    time.sleep(60)
except KeyboardInterrupt:
    print("stopped", library.WHOLE)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert (done.stdout, done.stderr) == ("stopped True\n", "")


def test_another_signal_soon_after_the_first_is_not_lost_while_a_library_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes again as a SIGINT, which is not the first one told twice."""
    sends = [f"signal.raise_signal({int(number)})" for number in (signal.SIGINT, signal.SIGTERM)]
    (tmp_path / "loaded_in_a_test.py").write_text("\n".join(["import signal", *sends]))
    monkeypatch.syspath_prepend(tmp_path)

    def load_and_go_on() -> None:
        importlib.import_module("loaded_in_a_test")
        time.sleep(10 * interrupt.RESEND_DELAY_S)

    with stop_study_on_signals(agenda(), lambda _: None), pytest.raises(KeyboardInterrupt):
        load_and_go_on()


def test_each_signal_waits_for_a_library_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    loads, comes = True, list[None]()
    monkeypatch.setattr(interrupt, "MAX_IMPORT_WAIT_S", 0.1)
    monkeypatch.setattr(interrupt, "_is_importing", lambda frame: loads)
    dropped = interrupt.DroppedInterruptResender(print)
    monkeypatch.setattr(dropped, "_schedule_resend", lambda: comes.append(None))
    dropped.raise_interrupt(None)
    time.sleep(0.2)
    with pytest.raises(KeyboardInterrupt):
        dropped.raise_interrupt(None)
    dropped.raise_interrupt(None)
    assert len(comes) == 2


@pytest.mark.slow
@pytest.mark.skipif(interrupt.IGNORES_HANGUP, reason="under nohup a terminal that is closed stops nothing")
def test_a_closed_terminal_stops_once_however_often_it_says_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    asked, told = agenda(), list[str]()
    with stop_study_on_signals(asked, told.append):
        for _ in range(2):
            signal.raise_signal(signal.SIGHUP)
            time.sleep(DUPLICATE_SIGNAL_S)
        assert asked.stopping == "interrupted"
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    signal.signal(signal.SIGHUP, before)
    assert told == [STOPPING_MESSAGE]


def test_under_nohup_the_end_of_a_terminal_is_nothing() -> None:
    code = (
        "import signal; from study.upstream.interrupt import raise_interrupt_on_signals; raise_interrupt_on_signals(); "
    )
    code += "signal.raise_signal(signal.SIGHUP)"
    done = subprocess.run(
        ["nohup", sys.executable, "-c", f"{code}; print('goes on')"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "goes on\n")


def test_an_alarm_with_which_ray_would_end_the_process_is_called_off() -> None:
    """Its C++ sets it before it hands SIGTERM on, where that comes while `ray.init` returns."""
    asked, told = agenda(), list[str]()
    with stop_study_on_signals(asked, told.append):
        signal.alarm(60)
        signal.raise_signal(signal.SIGTERM)
        while not told:
            time.sleep(0.01)
        assert signal.alarm(0) == 0
    assert asked.stopping == "interrupted"


@pytest.mark.slow
def test_it_is_told_before_the_main_thread_can_answer() -> None:
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "busy\n"
        computes, begun = psutil.Process(process.pid), psutil.Process(process.pid).cpu_times().user
        while computes.cpu_times().user < begun + 0.1:  # it is within the C by then
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == f"{STOPPING_MESSAGE} None\n"  # the handler did not run yet
        assert process.stdout.readline() == "interrupted\n"
        assert process.wait() == 0


def test_outside_the_main_thread_nothing_is_changed() -> None:
    before, seen = signal.getsignal(signal.SIGINT), list[object]()

    def run() -> None:
        with stop_study_on_signals(agenda(), print):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [before]


@pytest.mark.parametrize("number", interrupt.STOP_SIGNALS)
def test_one_that_a_library_swallowed_before_is_obeyed(number: signal.Signals) -> None:
    before = {each: signal.getsignal(each) for each in interrupt.STOP_SIGNALS}
    hook, sys.unraisablehook = sys.unraisablehook, lambda lost: None
    asked, told = agenda(), list[str]()
    try:
        interrupt.raise_interrupt_on_signals()
        with stop_study_on_signals(agenda(), told.append):
            assert told == []
        Library(number)  # destroyed at once
        with stop_study_on_signals(asked, told.append):
            assert asked.stopping == "interrupted"
        assert told == [STOPPING_MESSAGE]
    finally:
        sys.unraisablehook = hook
        for each, handler in before.items():
            signal.signal(each, handler)
