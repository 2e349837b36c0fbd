"""How much of the package a command runs: the files and functions of `study/` that are called, imports apart.

    uv run python tests/benchmarks/called.py [--json]

Two commands, each in every process that it starts: `study run` of one trial of one epoch, with report and MLflow, and
`study trial`, one epoch without Ray. What runs while a module is imported is not counted.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]

COUNTING = """
import atexit, os, sys, threading
folder, package = os.environ["CALLED"], os.environ["CALLED_PACKAGE"]
called, looked_at = set(), set()

def note(frame, event, _):
    code = frame.f_code
    if event != "call" or code in looked_at:
        return
    if not code.co_filename.startswith(package) or code.co_name == "<module>":
        looked_at.add(code)
        return
    caller = frame.f_back
    while caller:
        name = caller.f_code.co_filename
        if caller.f_code.co_name == "<module>" and name.startswith(package) and not name.endswith("__main__.py"):
            return  # an import
        caller = caller.f_back
    looked_at.add(code)
    called.add(f"{name_of(code)}")
    with open(os.path.join(folder, str(os.getpid())), "a") as file:
        file.write(name_of(code) + chr(10))

def name_of(code):
    return f"{code.co_filename[len(package):]} {code.co_firstlineno} {code.co_name}"

threading.setprofile(note)
sys.setprofile(note)
"""

SMALL = ["search.trials=1", "search.confirm={top: 0}", "search.baseline=null", "search.early_stopping={}"]
COMMANDS = {
    "study run": ["run", "quickstart", *(word for key in [*SMALL, "train.epochs=1"] for word in ("--set", key))],
    "study trial": ["trial", "quickstart", "--set", "train.epochs=1"],
}


def called(command: list[str]) -> set[str]:
    """The functions that a command calls, as file, line and name."""
    with tempfile.TemporaryDirectory() as place:
        for name in ("hook", "home", "found"):
            (Path(place) / name).mkdir()
        (Path(place) / "hook" / "sitecustomize.py").write_text(COUNTING)
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([f"{place}/hook", str(ROOT)]),
            "CALLED": f"{place}/found",
            "CALLED_PACKAGE": f"{ROOT}/study/",
            "STUDY_HOME": f"{place}/home/studies",
        }
        whole = [sys.executable, "-m", "study", *command]
        done = subprocess.run(whole, env=environment, cwd=place, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        files = (Path(place) / "found").iterdir()
        return {line for file in files for line in file.read_text().splitlines() if ".py " in line and "<" not in line}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="with the functions of each file")
    given = parser.parse_args()
    found = {name: called(command) for name, command in COMMANDS.items()}
    if given.json:
        print(json.dumps({name: sorted(functions) for name, functions in found.items()}, indent=1))
        return
    print(f"{'command':<14}{'files':>7}{'functions':>11}")
    for name, functions in found.items():
        print(f"{name:<14}{len({function.split()[0] for function in functions}):>7}{len(functions):>11}")


if __name__ == "__main__":
    main()
