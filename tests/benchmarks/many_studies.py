"""Many studies submitted at once to a small cluster of this machine: memory of the drivers, order, each trial once.

    uv run python tests/benchmarks/many_studies.py --studies 20 --drivers 3
    uv run python tests/benchmarks/many_studies.py --wait

A large study runs first; the others come at once, of two owners and three priorities. Printed: drivers at once, memory
(PSS) of the drivers and of the processes that waited, whether the order was the queue's, and how many trials the large
study began while each of the others ran its own. It fails where a trial ran twice or a study did not end.

With `--wait`: one large study and three small ones of three other owners on two slots, all submitted at once when the
large one has ended three trials. Printed for each: seconds from its submission until its driver began, until its first
trial began and until it was complete, and how many trials the large study began meanwhile.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from command import Command  # noqa: E402 (its folder is not a package)
from submissions import Submissions  # noqa: E402

from study.home import requests  # noqa: E402
from study.home.requests import Request  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=20)
    parser.add_argument("--drivers", type=int, help="studies that run at once; default: 3, with --wait 4")
    parser.add_argument("--trials", type=int, default=2, help="of each study but the large one")
    parser.add_argument("--wait", action="store_true", help="one large and three small studies: how long each waits")
    parser.add_argument("--epochs", type=int, default=40, help="of each trial, with --wait")
    given = parser.parse_args()
    given.drivers = given.drivers or (4 if given.wait else 3)
    with tempfile.TemporaryDirectory(prefix="study-queue-") as folder:
        command = Command(Path(folder) / "home", Path(folder), patience=900)
        done = command("cluster", "up", "--nodes", "1", "--cpus-per-node", "2", MLFLOW_TRACKING_URI="")
        if done.returncode:
            sys.exit(done.stderr)
        try:
            (command.home / "sharing.yaml").write_text(f"drivers: {given.drivers}\n")
            there = Submissions(command.home, Path(folder), sizes=not given.wait)
            wait(there, given.epochs) if given.wait else run(there, given)
        finally:
            subprocess.run([sys.executable, "-m", "study", "cluster", "down"], env=environment(command), check=True)


def environment(command: Command) -> dict[str, str]:
    return {**os.environ, "STUDY_HOME": str(command.home), "PYTHONPATH": str(ROOT)}


def wait(there: Submissions, epochs: int, large: int = 60, small: int = 4) -> None:
    """Print the table of `--wait`."""
    there.submit("large", large, owner="ann", epochs=epochs)
    there.until(lambda: there.ended("large") >= 3, patience=900)
    submitted = {}
    for name, owner in (("small-1", "bob"), ("small-2", "cem"), ("small-3", "dan")):
        submitted[name] = time.time()
        there.submit(name, small, owner=owner, epochs=epochs)
    there.until(lambda: all(there.is_complete(name) for name in submitted), patience=1800)
    began = [at for at, _, _ in there.events("large", "started")]
    trials = [trial for trial in there.record("large").trials.values() if trial.ended and trial.started]
    seconds = sorted(trial.ended - trial.started for trial in trials if trial.ended and trial.started)
    print(f"a trial of the large study takes {seconds[len(seconds) // 2]:.1f} s (median of {len(seconds)})\n")
    print("| study | driver began | first trial began | complete | trials that the large study began meanwhile |")
    print("|---|---|---|---|---|")
    for name, at in submitted.items():
        opened, first, closed = (there.events(name, kind)[0][0] for kind in ("opened", "started", "closed"))
        meanwhile = sum(at < one < first for one in began), sum(at < one < closed for one in began)
        told = [f"{moment - at:.0f} s" for moment in (opened, first, closed)]
        print(f"| {name} | {' | '.join(told)} | {meanwhile[0]} until its first, {meanwhile[1]} until its end |")
    requests.ask(there.folder("large").requests, Request("end"))
    there.until(lambda: all(job.is_over for job in there.jobs.all()), patience=900)
    for name in ("large", *submitted):
        ends = [trial for _, _, trial in there.events(name, "ended")]
        assert sorted(ends) == sorted(set(ends)) == sorted(there.record(name).trials), name


def run(there: Submissions, given: argparse.Namespace) -> None:
    begun = time.monotonic()
    there.submit("large", trials=100_000)
    there.until(lambda: there.ended("large") > 2, patience=900)
    names = [f"s{number:02d}" for number in range(given.studies - 1)]
    for number, name in enumerate(names):
        there.submit(name, given.trials, owner=("ann", "bob")[number % 2], priority=(0, 5, -1)[number % 3])
    print(f"{given.studies} studies submitted {time.monotonic() - begun:.0f} s after the first")
    progress = Progress(there)
    there.until(lambda: progress.tell() and all(there.is_complete(name) for name in names), patience=7200)
    requests.ask(there.folder("large").requests, Request("end"))
    there.until(lambda: all(job.is_over for job in there.jobs.all()), patience=900)
    print(f"all ended after {time.monotonic() - begun:.0f} s")
    report(there, names)


class Progress:
    """How far it is, said each time that another driver was let in."""

    def __init__(self, there: Submissions) -> None:
        self._there, self._told = there, 0

    def tell(self) -> bool:
        seen = self._there.seen
        if len(seen.begun) != self._told:
            self._told = len(seen.begun)
            told = f"{self._told} let in, {len(self._there.waiting())} wait; so far at most {seen.most} drivers"
            print(f"{told} of {seen.drivers / 1e6:.0f} MB; what waited took {seen.waiting / 1e6:.0f} MB", flush=True)
        return True


def report(there: Submissions, names: list[str]) -> None:
    seen = there.seen
    print(f"drivers at once: {seen.most}, {seen.drivers / 1e6:.0f} MB; what waits: {seen.waiting / 1e6:.0f} MB")
    print(f"let in: {' '.join(job.removeprefix('study-') for job in seen.begun)}")
    print("the queue each time that it changed:")
    for places in seen.places:
        print("   ", " ".join(job.removeprefix("study-") for job in places) or "empty")
    for name in ("large", *names):
        ends = [trial for _, _, trial in there.events(name, "ended")]
        assert there.record(name).state == "complete", name
        assert sorted(ends) == sorted(set(ends)) == sorted(there.record(name).trials), name
    large = [time for time, _, _ in there.events("large", "started")]
    for name in names:
        own = [time for time, _, _ in there.events(name, "started", "closed")]
        print(f"{name}: {len(own) - 1} trials, the large study began {sum(own[0] < at < own[-1] for at in large)} more")


if __name__ == "__main__":
    main()
