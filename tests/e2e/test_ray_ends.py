"""Ray is killed under a study, a signal comes while it starts, or the machine is busy: the study says so, and goes on
with `study resume`."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from command import Command
from ended import assert_nothing_was_lost
from helpers import computed

from study.sweep import STOPPING_MESSAGE


@pytest.mark.parametrize(
    "victim", [pytest.param("raylet", marks=pytest.mark.slow), pytest.param("gcs_server", marks=pytest.mark.long)]
)
def test_a_killed_process_of_ray_ends_the_study_with_one_line(
    victim: str, make_command: Callable[[], Command], finished: Command
) -> None:
    """Left to itself Ray prints and ends the driver after 15 to 60 seconds."""
    command = make_command()
    process = command.start("run", "tiny.yaml", SABOTAGE='{"slow": 0.3}')
    command.wait_for("tiny", lambda record: len(record.trials) > 1 and record.trials[1].n_epochs > 0)
    started = psutil.Process(process.pid).children(recursive=True)
    next(one for one in started if one.name() == victim).kill()
    out, err = process.communicate(timeout=200)
    assert process.returncode == 1
    line = f"error: Ray's {victim} was ended by SIGKILL. Nothing is lost; go on with it: study resume tiny\n"
    assert err == line
    assert "0:" in out
    assert command.load("tiny")[1].state == "interrupted"
    assert psutil.wait_procs(started, timeout=100)[1] == []
    done = command("resume", "tiny")
    assert (done.returncode, done.stderr) == (0, "")
    assert computed(assert_nothing_was_lost(command.folder("tiny"))) == computed(finished.load("tiny")[1])


def hears(process: "subprocess.Popen[str]") -> bool:
    """Whether it has a handler of SIGTERM: before, Python loads its own first modules."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{process.pid}/status").read_text().splitlines())
    return bool(int(status["SigCgt"], 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.slow
@pytest.mark.timeout(800)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_any_moment_of_the_start_is_exit_130_and_one_answer(
    number: signal.Signals, make_command: Callable[[], Command]
) -> None:
    command, answers = make_command(), []
    for moment in (0.0, 1.0, 2.5, 4.0, 5.5):
        command_line = ("resume", "tiny") if command.folder("tiny").ledger_file.exists() else ("run", "tiny.yaml")
        process = command.start(*command_line)
        while not hears(process):
            time.sleep(0.01)
        time.sleep(moment)
        process.send_signal(number)
        out, err = process.communicate(timeout=150)
        assert process.returncode == 130, (moment, out, err)
        assert "stopped" in err or STOPPING_MESSAGE in out or "study resume tiny" in out, (moment, out, err)
        assert "Traceback" not in err
        answers.append((moment, out, err))
    folder = command.folder("tiny").path
    assert not folder.exists() or "study resume tiny" in "".join(answers[-1][1:])


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """So many processes that compute; they end by themselves after three minutes."""
    spin = "import time\nend = time.monotonic() + 180\nwhile time.monotonic() < end: pass"
    started = [subprocess.Popen([sys.executable, "-S", "-c", spin]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_study_starts_on_a_machine_that_is_kept_busy(make_command: Callable[[], Command]) -> None:
    """Fifteen processes for each processor: Ray's own start ended itself there, again and again."""
    command = make_command()
    with busy(15 * (os.cpu_count() or 1)):
        process = command.start("run", "tiny.yaml")
        try:
            command.wait_for("tiny", lambda record: any(trial.n_epochs for trial in record.trials.values()))
        finally:
            process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=200)
    assert (process.returncode, err) == (130, ""), out
    assert STOPPING_MESSAGE in out
    assert "attempt" not in out
