"""A command that was stopped has status 130, also where a further signal comes while Python leaves."""

import subprocess
import sys

import pytest

STOPPED = """
import os, sys, typer
from study.cli import app, main

@app.command("stopped")
def stopped():
    raise typer.Exit(130)

class Last:
    def __del__(self, kill=os.kill, process=os.getpid(), number=int(sys.argv[1])):
        kill(process, number)

last = Last()
sys.argv = ["study", "stopped"]
main()
"""


@pytest.mark.parametrize("number", [2, 15])
def test_a_signal_while_python_leaves_changes_nothing(number: int) -> None:
    done = subprocess.run([sys.executable, "-c", STOPPED, str(number)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, ""), done.stderr


THREADED = """
import threading, weakref
from study import cli
from study.errors import StudyStoppedError

class Thing:
    pass

kept = [Thing() for _ in range(300_000)]
for thing in kept:
    weakref.finalize(thing, int)

def make():
    while True:
        weakref.finalize(Thing(), int)

def app(**_):
    threading.Thread(target=make, daemon=True).start()
    raise StudyStoppedError("no room")

cli.app = app
cli.main()
"""


@pytest.mark.slow
def test_a_thread_that_still_works_does_not_disturb_the_end() -> None:
    """As the one that opens MLflow's database, when the study has given it up."""
    done = subprocess.run([sys.executable, "-c", THREADED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "error: no room\n")
