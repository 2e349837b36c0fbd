"""A driver in a process of its own: what it leaves as it was in the process that asked for it, and how each of the two
outlives the other."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from command import Command, as_a_users

from study.home import lease
from study.home.ledger import is_driver_running, lease_path
from study.home.record import StudyRecord

SNAPSHOT = '''
import gc
import os
import signal
import sys
import threading
import types


def theirs():
    """Everything that the modules of these packages have by name, and all that their classes have."""
    found = {}
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] not in ("ray", "mlflow", "optuna", "torch") or not isinstance(module, types.ModuleType):
            continue
        for key, value in list(vars(module).items()):
            found[name, key] = value
            if isinstance(value, type):
                found |= {(name, key, inner): of_class for inner, of_class in list(vars(value).items())}
    return found


def process():
    return {
        "environment": dict(os.environ),
        "signals": {one: signal.getsignal(one) for one in signal.Signals},
        "wakeup": signal.set_wakeup_fd(-1),
        "hooks": (sys.excepthook, sys.unraisablehook, threading.excepthook, sys.displayhook),
        "folder": os.getcwd(),
        "path": list(sys.path),
        "collects": gc.isenabled(),
        "frozen": gc.get_freeze_count(),
        "switches": sys.getswitchinterval(),
        "threads": threading.enumerate(),
    }
'''
"""What of a process and of libraries in it is compared."""

NOTEBOOK = f"""{SNAPSHOT}
import atexit
import sys

import mlflow
import optuna
import PIL.Image  # which leaves a hook of its own
import ray.tune
import torch

import study

before, was = theirs(), process()
hooked = []
atexit.register = lambda *given, **named: hooked.append(given)
same = object()

def train(config, epochs):
    for epoch in range(epochs):
        yield {{"val/accuracy": config["rate"] / (epoch + 1)}}


mine = study.run(train=train, name="mine", space={{"rate": [0.25, 0.5]}}, epochs=2)
mine.resume(trials=1, quiet=True) if mine.state != "complete" else None
try:
    study.run("no such file")
except study.UserError as error:
    print("refused:", error)
print("page:", mine.report().name)
after, now = theirs(), process()
print("changed:", [key for key, value in before.items() if after.get(key, same) is not value])
print("differs:", [key for key in was if was[key] != now[key]])
print("hooked:", hooked)
print("best:", mine.best.params, mine.state)
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_notebooks_process_and_the_libraries_in_it_are_as_before(make_command: Callable[[], Command]) -> None:
    command = make_command()
    done = script(command, NOTEBOOK).communicate(timeout=250)[0]
    told = dict(line.split(": ", 1) for line in done.splitlines() if ": " in line)
    assert {name: told[name] for name in ("changed", "differs", "hooked")} == dict.fromkeys(
        ("changed", "differs", "hooked"), "[]"
    ), done
    assert told["best"] == "{'method.rate': 0.5} complete"
    assert "no such file" in told["refused"]
    assert told["page"] == "report.html"
    assert "starting Ray" in done


LIGHT = """
import sys
import helper_of_this_test
import study

mine = study.run(train=helper_of_this_test.train, name="mine", space={"rate": [0.25]}, quiet=True)
print(sorted({"ray", "mlflow", "torch"} & set(sys.modules)), mine.state)
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_library_of_a_trial_is_loaded_and_modules_are_found_where_the_script_finds_them(
    make_command: Callable[[], Command],
) -> None:
    command = make_command()
    elsewhere = command.work / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "helper_of_this_test.py").write_text(
        "def train(config):\n    yield {'val/accuracy': config['rate']}\n"
    )
    told = script(command, f"import sys; sys.path.append({str(elsewhere)!r})\n{LIGHT}").communicate(timeout=250)[0]
    assert told == "[] complete\n"


SLOW = '''
import sys
import time

import study


def train(config, epochs, checkpoint):
    """Goes on where it was."""
    file = checkpoint / "done"
    for epoch in range(int(file.read_text()) if file.exists() else 0, epochs):
        time.sleep(float(config["rest"]))
        file.write_text(str(epoch + 1))
        yield {"val/accuracy": config["rate"] * (epoch + 1) / epochs}


try:
    mine = study.run(
        train=train, name="mine", space={"rate": (0.1, 0.9)}, fixed={"rest": 0.3}, epochs=20,
        set={"search.trials": 4, "search.sampler": "random", "search.concurrency": 2},
    )
    print("state:", mine.state)
except Exception as error:
    print(f"{type(error).__name__}: {error}")
'''


@dataclass(frozen=True)
class Slow:
    """A script that waits for a driver of the study `mine`, whose trials take six seconds."""

    command: Command
    process: "subprocess.Popen[str]"

    def wait_for(self, condition: Callable[[StudyRecord], bool]) -> int:
        """Until a condition holds of the study's record; gives its driver's process."""
        self.command.wait_for("mine", condition)
        holder = lease.read_holder(lease_path(self.command.folder("mine").ledger_file))
        assert holder is not None
        return holder.process.pid

    def told(self) -> str:
        """What it prints until its end."""
        return self.process.communicate(timeout=100)[0]

    def record(self) -> StudyRecord:
        return self.command.load("mine")[1]


def script(command: Command, content: str) -> "subprocess.Popen[str]":
    """A Python script of a user's, in a group of processes of its own; what started these tests may ignore Ctrl-C."""
    hears = "import signal\n\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    (command.work / "script.py").write_text(hears + content)
    return subprocess.Popen(
        [sys.executable, "script.py"],
        cwd=command.work,
        env={**as_a_users(), "STUDY_HOME": str(command.home)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture
def slow(make_command: Callable[[], Command]) -> Iterator[Slow]:
    command = make_command()
    begun = Slow(command, script(command, SLOW))
    yield begun
    begun.process.kill()
    begun.process.communicate()
    assert_all_end(command.home)


def assert_all_end(home: Path, patience: float = 30.0) -> None:
    """No process of studies in this home lives on."""
    until = time.monotonic() + patience
    while left := [process for process in psutil.process_iter() if _is_of(process, home)]:
        assert time.monotonic() < until, left
        time.sleep(0.2)


def _is_of(process: psutil.Process, home: Path) -> bool:
    try:
        return process.environ().get("STUDY_HOME") == str(home)
    except psutil.Error:
        return False


def listening(home: Path) -> set[str]:
    """The addresses at which processes of studies in this home listen."""
    found = [process for process in psutil.process_iter() if _is_of(process, home)]
    places = [one for process in found for one in process.net_connections("inet")]
    assert len(places) > 5
    return {one.laddr.ip for one in places if one.status == psutil.CONN_LISTEN}


def runs(record: StudyRecord) -> bool:
    """Whether a trial has an epoch behind it."""
    return any(trial.n_epochs for trial in record.trials.values())


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ctrl_c_stops_it_in_good_order_and_gives_back_the_study(slow: Slow) -> None:
    """The terminal sends it to the script and what is in its group."""
    slow.wait_for(runs)
    os.killpg(slow.process.pid, signal.SIGINT)
    told = slow.told()
    assert "stopping; trials that run go on later, from checkpoints if they keep any" in told
    assert told.endswith("state: interrupted\n")
    assert slow.process.returncode == 0
    assert (slow.record().state, runs(slow.record())) == ("interrupted", True)
    assert {trial.state for trial in slow.record().trials.values()} <= {"waiting", "interrupted", "complete"}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_second_ctrl_c_ends_it_at_once(slow: Slow) -> None:
    slow.wait_for(runs)
    slow.process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    slow.process.send_signal(signal.SIGINT)
    assert "state: interrupted" in slow.told() or slow.record().state == "interrupted"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seconds", [0.1, 1.0, 3.0])
def test_a_stop_while_it_starts_leaves_nothing_or_a_study_that_goes_on(
    make_command: Callable[[], Command], seconds: float
) -> None:
    command = make_command()
    process = script(
        command,
        SLOW.replace("import study\n", "import study, study.api.run_study\nprint('here', flush=True)").replace(
            "except Exception as error", "except (Exception, KeyboardInterrupt) as error"
        ),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=100)[0]
    if command.folder("mine").ledger_file.exists():  # it had begun by then
        assert "study resume mine" in told or "state: interrupted" in told
    else:
        in_the_check = seconds < 1 and "KeyboardInterrupt" in told  # in the user's own process
        assert "StartInterruptedError: stopped" in told or in_the_check
        assert not command.folder("mine").path.exists()
    assert_all_end(command.home)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "who",
    [
        pytest.param("starter", marks=pytest.mark.slow),
        pytest.param("driver", marks=pytest.mark.slow),
        pytest.param("both", marks=pytest.mark.long),
    ],
)
def test_whoever_is_killed_the_rest_ends_and_the_study_goes_on(slow: Slow, who: str) -> None:
    driver = slow.wait_for(runs)
    assert listening(slow.command.home) <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    file = slow.command.folder("mine").ledger_file
    if who != "driver":
        slow.process.kill()
    if who != "starter":
        os.kill(driver, signal.SIGKILL)
    if who == "driver":
        told = slow.told()
        killed = f"the driver, process {driver}, was ended by SIGKILL. Nothing is lost; go on"
        assert f"StudyStoppedError: {killed}" in told
        assert "study resume mine" in told
    assert_all_end(slow.command.home)
    assert not is_driver_running(file)
    closed = [json.loads(line) for line in file.read_text().splitlines() if json.loads(line)["event"] == "closed"]
    assert len(closed) == (who == "starter")
    slow.command.done("resume", "mine")
    trials = slow.record().trials.values()
    assert [trial.state for trial in trials] == ["complete"] * len(trials)
    rates = [trial.params["method.rate"] for trial in trials]
    assert [[report["val/accuracy"] for report in trial.reports] for trial in trials] == [
        [rate * (epoch + 1) / 20 for epoch in range(20)] for rate in rates
    ]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_detached_one_goes_on_by_itself_and_is_looked_at_and_stopped(make_command: Callable[[], Command]) -> None:
    command = make_command()
    (command.work / "mine.yaml").write_text(
        "name: mine\nmethod: {name: own_function, function: 'slow_of_this_test:train', rest: 0.3}\n"
        "train: {epochs: 20}\nsearch:\n  space: {method.rate: {low: 0.1, high: 0.9}}\n  trials: 8\n"
    )
    (command.work / "slow_of_this_test.py").write_text(SLOW.partition("try:")[0])
    try:
        _look_and_stop(command)
    finally:
        command("stop", "mine")
    assert_all_end(command.home)


def _look_and_stop(command: Command) -> None:
    out = command.done("run", "mine.yaml", "--detach")
    assert "study attach mine" in out
    command.wait_for("mine", runs)
    assert command.load("mine")[1].state == "running"
    looking = command.start("attach", "mine")
    assert looking.stdout is not None
    assert any(" running" in line for line in looking.stdout)
    looking.send_signal(signal.SIGINT)
    assert "mine goes on; to stop it: study stop mine" in looking.communicate(timeout=60)[1]
    assert looking.returncode == 130
    assert command.load("mine")[1].state == "running"
    looking = command.start("attach", "mine")
    command.done("stop", "mine")
    assert "go on with it: study resume mine" in looking.communicate(timeout=60)[0]
    assert looking.returncode == 130
    assert command.load("mine")[1].state == "interrupted"
    printed = (command.folder("mine").path / "driver.log").read_text()
    assert "go on with it: study resume mine" in printed
    refused = command("run", "mine.yaml", "--detach")
    assert (refused.returncode, "mine" in refused.stderr) == (2, True)
    assert command("attach", "mine").returncode == 2
