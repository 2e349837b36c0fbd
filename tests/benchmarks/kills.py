"""The driver killed at drawn moments, again and again: what of its study's processes and folders stays behind.

    python tests/benchmarks/kills.py                  50 kills of one study of a training function, about 12 minutes
    python tests/benchmarks/kills.py --kills 5 --json
    python tests/benchmarks/kills.py --who starter    a script that called `study.run`; or its driver, or both

Each kill is a SIGKILL of `study run`, later of `study resume`, within ten seconds of its start, or, every other time,
within thirty; on a machine that is kept busy, `--longest 100`. The study's processes are known by their STUDY_HOME or
their session; those that live 10 s after the kill (30 s where the driver ends in good order, as nobody waits for it any
more) are left over, and so is what is in the temporary folder after `study doctor --clean` at the end. Fails
where something is left, or where a command ended before it was killed.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[2]
PATIENCE, IN_ORDER = 10.0, 30.0
OF_TORCH = "torchinductor_"
"""How the name of PyTorch's cache begins, one folder per user, which is to stay."""

FUNCTION = """import time


def train(config, epochs, checkpoint):
    for epoch in range(epochs):
        time.sleep(0.2)
        (checkpoint / "state").write_text("x" * 10_000)
        yield {"val/accuracy": config["x"] * epoch / epochs}
"""
SCRIPT = "import study; study.run('killed.yaml', resume=True)"
STUDY = """name: killed
method: {name: own_function, function: "killed_function:train"}
train: {epochs: 50}
search: {space: {method.x: {low: 0.0, high: 1.0}}, trials: 100, sampler: random}
"""


def living(home: Path, sessions: Collection[int] = ()) -> list[psutil.Process]:
    """Processes of studies in this home, and those of sessions: some of Ray's overwrite their environment."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            if os.getsid(process.pid) in sessions or process.environ().get("STUDY_HOME") == str(home):
                found.append(process)
    return found


def sessions_of(processes: Iterable[psutil.Process]) -> set[int]:
    """The sessions of processes, but for this one's."""
    found = set()
    for process in processes:
        with suppress(OSError):
            found.add(os.getsid(process.pid))
    return found - {os.getsid(0)}


def name_of(process: psutil.Process) -> str:
    """Its command line in short, for one that may have ended."""
    with suppress(psutil.Error):
        return f"{process.pid} {' '.join(process.cmdline())[:80]}"
    return f"{process.pid} ended"


def victims(process: "subprocess.Popen[bytes]", who: str) -> list[psutil.Process]:
    """The processes to kill: the command, or the script that started a driver, that driver, or both."""
    starter, found = psutil.Process(process.pid), []
    with suppress(psutil.Error):
        found = [child for child in starter.children() if "drive" in child.cmdline()] if who != "command" else []
    return ([starter] if who != "driver" or not found else []) + (found if who != "starter" else [])


def kill(work: Path, environment: dict[str, str], moment: float, who: str) -> dict[str, Any]:
    """Start the study or go on with it, kill its driver after so many seconds, and see what lives on."""
    home = Path(environment["STUDY_HOME"])
    words = ["resume", "killed"] if (home / "killed" / "ledger.jsonl").exists() else ["run", "killed.yaml"]
    command = ["-m", "study", *words] if who == "command" else ["-c", SCRIPT]
    errors = (work / "stderr").open("w+", encoding="utf-8")
    began = time.monotonic()
    driver = subprocess.Popen(
        [sys.executable, *command],
        cwd=work,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        start_new_session=True,
    )
    while time.monotonic() - began < moment and driver.poll() is None:
        time.sleep(0.01)
    sessions = sessions_of(living(home))
    ended, there = driver.poll(), living(home, sessions)
    for process in victims(driver, who) if ended is None else ():
        with suppress(psutil.Error):
            process.kill()
    killed = time.monotonic()
    while (left := living(home, sessions)) and time.monotonic() - killed < (IN_ORDER if who == "starter" else PATIENCE):
        driver.poll()
        time.sleep(0.1)
    found: dict[str, Any] = {"command": words[0], "who": who, "moment": round(moment, 1), "processes": len(there)}
    found |= {"gone after": round(time.monotonic() - killed, 1), "left": [name_of(process) for process in left]}
    if ended is not None:
        errors.seek(0)
        found["ended by itself"] = f"{ended}: {errors.read()[-300:]}"
    errors.close()
    driver.kill()
    driver.wait()
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--who", choices=("command", "starter", "driver", "both"), default="command")
    parser.add_argument("--longest", type=float, default=30.0, help="seconds until every other kill, at most")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    drawn, found = random.Random(given.seed), []
    with tempfile.TemporaryDirectory(prefix="killed-") as folder:
        work = Path(folder)
        temporary = work / "tmp"
        temporary.mkdir()
        (work / "killed_function.py").write_text(FUNCTION, encoding="utf-8")
        (work / "killed.yaml").write_text(STUDY, encoding="utf-8")
        environment = {name: value for name, value in os.environ.items() if name != "MLFLOW_TRACKING_URI"}
        environment |= {"STUDY_HOME": str(work / "home"), "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
        for number in range(given.kills):
            found.append(kill(work, environment, drawn.uniform(0, 10 if number % 2 else given.longest), given.who))
            print(number, found[-1], file=sys.stderr, flush=True)
        clean = [sys.executable, "-m", "study", "doctor", "--clean"]
        subprocess.run(clean, cwd=work, env=environment, stdout=subprocess.DEVNULL, check=False)
        stays = sorted(path.name for path in temporary.iterdir() if not path.name.startswith(OF_TORCH))
    wrong = [one for one in found if one["left"] or "ended by itself" in one]
    slowest = max(one["gone after"] for one in found)
    if given.json:
        print(json.dumps({"kills": found, "in the temporary folder": stays}, indent=1))
    else:
        print(f"{len(found)} kills, {len(wrong)} wrong; the last process was gone after {slowest} s at most")
        print(f"left in the temporary folder: {', '.join(stays) or 'nothing'}")
    return bool(wrong or stays)


if __name__ == "__main__":
    sys.exit(main())
