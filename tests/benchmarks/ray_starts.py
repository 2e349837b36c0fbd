"""A driver's own Ray: what its start costs, and what is left of a study that is killed or interrupted.

    uv run python tests/benchmarks/ray_starts.py study          quickstart: to the first trial, whole, processor seconds
    uv run python tests/benchmarks/ray_starts.py killed         SIGKILL 0.5 to 16 s after its start
    uv run python tests/benchmarks/ray_starts.py interrupted    Ctrl-C at the same moments
    uv run python tests/benchmarks/ray_starts.py twice          the same, a second one a second later
    uv run python tests/benchmarks/ray_starts.py many           eight studies started at once on a machine kept busy

`--against OTHER_CHECKOUT` runs that version too, in turn. With `--who "guard too"` the driver's guard is killed a
second before. `kills.py` kills drivers of scripts, those scripts, and both.

Processor seconds are those of all processes of the study, known by their STUDY_HOME or, where Ray's have overwritten
it, as they were seen before; looked at ten times a second.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from kills import living, name_of, sessions_of

ROOT = Path(__file__).parents[2]
MOMENTS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
LEFT_S = 10.0
"""Seconds after which what lives of a killed study counts as left behind."""

OF_TORCH = "torchinductor_"
"""Prefix of a folder of PyTorch's, which stays."""


class Meter:
    """Processor seconds of the processes of a home, those that have ended as they were last seen."""

    def __init__(self, home: Path) -> None:
        self._home, self._others = str(home), set[tuple[int, float]]()
        self._spent: dict[tuple[int, float], tuple[float, str]] = {}
        self.listeners: set[str] = set()
        self.memory = 0

    def look(self) -> None:
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                known = (process.pid, process.create_time())
                if known in self._others:
                    continue
                if known not in self._spent and process.environ().get("STUDY_HOME") != self._home:
                    if time.time() - known[1] > 2:  # what `exec` will replace is looked at again
                        self._others.add(known)
                    continue
                times = process.cpu_times()
                self._spent[known] = (times.user + times.system, " ".join(process.cmdline())[:60])

    def look_at_listeners_and_memory(self) -> None:
        """Memory is what all processes hold, each shared page divided among those that share it, at its largest."""
        held, known = 0, [pid for pid, _ in self._spent]
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.pid not in known:
                    continue
                held += process.memory_full_info().pss
                for one in process.net_connections(kind="inet"):
                    if one.status == psutil.CONN_LISTEN:
                        place = "loopback" if one.laddr.ip.startswith(("127.", "::ffff:127.", "::1")) else one.laddr.ip
                        self.listeners.add(f"{place} {process.name()}")
        self.memory = max(self.memory, held)

    @property
    def total(self) -> float:
        return sum(spent for spent, _ in self._spent.values())


class Place:
    """A home, data and temporary folder of one study; `temporary` may be one that it shares with others."""

    def __init__(self, work: Path, data: Path, temporary: Path | None = None) -> None:
        self.home, self.temporary = work / "home", temporary or work / "tmp"
        self.home.mkdir()
        self.temporary.mkdir(exist_ok=True)
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(("MLFLOW", "RAY_"))}
        self.environment |= {"STUDY_HOME": str(self.home), "STUDY_DATA": str(data), "TMPDIR": str(self.temporary)}

    def begin(self, checkout: Path, *words: str) -> "subprocess.Popen[bytes]":
        command = [str(checkout / ".venv" / "bin" / "python"), "-m", "study", *words]
        with (self.home.parent / "output").open("wb") as output:
            return subprocess.Popen(
                command,
                env=self.environment | {"PYTHONPATH": str(checkout)},
                cwd=self.home,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def events(self) -> list[dict[str, Any]]:
        ledgers = [*self.home.glob("*/ledger.jsonl")]
        return [json.loads(line) for file in ledgers for line in file.read_text(encoding="utf-8").splitlines()]

    def said(self) -> str:
        return (self.home.parent / "output").read_text(encoding="utf-8", errors="replace")

    def left(self, sessions: set[int]) -> list[str]:
        folders = [path.name for path in self.temporary.iterdir() if not path.name.startswith(OF_TORCH)]
        return [*folders, *(name_of(one) for one in living(self.home, sessions))]

    def clean(self) -> None:
        for one in living(self.home, sessions_of(living(self.home))):
            with suppress(psutil.Error):
                one.kill()


def of_study(checkout: Path, work: Path, data: Path, words: list[str]) -> dict[str, Any]:
    """Figures of one whole study."""
    place, began = Place(work, data), time.time()
    process, meter = place.begin(checkout, "run", "quickstart", "--quiet", *words), Meter(place.home)
    first, looked = 0.0, 0.0
    while process.poll() is None:
        meter.look()
        if not first and any(event["event"] == "started" for event in place.events()):
            first = meter.total
        if time.time() - looked > 3:
            looked = time.time()
            meter.look_at_listeners_and_memory()
        time.sleep(0.1)
    whole = time.time() - began
    times = [event["time"] - began for event in place.events() if event["event"] == "started"]
    found = {"status": process.returncode, "first trial": round(min(times, default=0.0), 1), "whole": round(whole, 1)}
    found |= {"cpu to first trial": round(first, 1), "cpu": round(meter.total, 1), "load": os.getloadavg()[0]}
    found["GB"] = round(meter.memory / 1e9, 2)
    found["beyond loopback"] = sorted(one for one in meter.listeners if not one.startswith("loopback"))
    if process.returncode:
        found["said"] = place.said()[-1500:]
    place.clean()
    if os.environ.get("SHOW"):
        for spent, command in sorted(meter._spent.values(), reverse=True)[:15]:
            print(f"   {spent:6.1f} {command}", file=sys.stderr)
    return found


def guards(process: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    """The guard that a study's driver has started, if it has."""
    with suppress(psutil.Error):
        started = psutil.Process(process.pid).children(recursive=True)
        return [one for one in started if "remove_after_death" in " ".join(one.cmdline())]
    return []


def of_signal(checkout: Path, work: Path, data: Path, moment: float, what: str, who: str) -> dict[str, Any]:
    """What is left of a study of which something is killed, or that is interrupted, so long after its start."""
    place = Place(work, data)
    process = place.begin(checkout, "run", "quickstart", "--quiet", "--set", "search.trials=1000")
    time.sleep(moment)
    sessions = sessions_of(living(place.home))
    many, guard = len(living(place.home, sessions)), guards(process)
    if who != "driver":
        for one in guard:
            one.kill()
        time.sleep(1.0)
    if what == "killed":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGINT)
    if what == "twice":
        time.sleep(1.0)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
    sent = time.monotonic()
    while living(place.home, sessions) and time.monotonic() - sent < 3 * LEFT_S:
        process.poll()
        time.sleep(0.1)
    gone = round(time.monotonic() - sent, 1)
    found = {"moment": moment, "processes": many, "gone after": gone, "status": process.poll()}
    found |= {"left": place.left(sessions), "guarded": bool(guard)}
    place.clean()
    process.kill()
    return found


BURN = "import itertools\nfor _ in itertools.count(): pass"


def of_many(checkout: Path, work: Path, data: Path, count: int, load: int, limit: float) -> dict[str, Any]:
    """How many of several studies started at once begin their first trial, beside so many processes that compute."""
    busy = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(load)]
    try:
        places = []
        for number in range(count):
            (folder := work / str(number)).mkdir()
            places.append(Place(folder, data, work / "tmp"))
        began = time.monotonic()
        words = ["run", "quickstart", "--set", "search.trials=2", "--set", "search.confirm={top: 0}"]
        processes = [place.begin(checkout, *words) for place in places]
        begun: dict[int, float] = {}
        while time.monotonic() - began < limit and len(begun) < count:
            for number, place in enumerate(places):
                if number not in begun and any(event["event"] == "started" for event in place.events()):
                    begun[number] = round(time.monotonic() - began, 1)
            if all(process.poll() is not None for process in processes):
                break
            time.sleep(0.5)
        ended = [place.said()[-600:] for n, place in enumerate(places) if processes[n].poll() and n not in begun]
        again = sum(place.said().count("starting Ray, attempt") for place in places)
        return {
            "begun": len(begun),
            "of": count,
            "after": sorted(begun.values()),
            "told of a second attempt": again,
            "ended": ended,
            "load": os.getloadavg()[0],
        }
    finally:
        for one in busy:
            one.kill()
            one.wait()
        for place in places:
            place.clean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("study", "killed", "interrupted", "twice", "many"))
    parser.add_argument("--against", type=Path, action="append", default=[])
    parser.add_argument("--who", choices=("driver", "guard too"), default="driver")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--load", type=int, default=6)
    parser.add_argument("--limit", type=float, default=600.0)
    parser.add_argument("--set", dest="assignments", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    words = [word for one in given.assignments for word in ("--set", one)]
    with tempfile.TemporaryDirectory(prefix="starts-") as data_folder:
        data = Path(data_folder)
        for run in range(given.runs):
            for checkout in (*given.against, ROOT):
                for moment in (0.0,) if given.what in ("study", "many") else MOMENTS:
                    with tempfile.TemporaryDirectory(prefix="start-") as folder:
                        if given.what == "study":
                            found = of_study(checkout, Path(folder), data, words)
                        elif given.what == "many":
                            found = of_many(checkout, Path(folder), data, given.count, given.load, given.limit)
                        else:
                            found = of_signal(checkout, Path(folder), data, moment, given.what, given.who)
                    told = {"what": given.what, "who": given.who, "checkout": str(checkout), "run": run, **found}
                    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
