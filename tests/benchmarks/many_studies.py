"""How long small studies wait beside a large one on a small cluster of this machine.

    uv run python tests/benchmarks/many_studies.py

One large study and three small ones of three other owners on two slots, all submitted at once when the large one has
ended three trials. Printed for each: seconds from its submission until its driver began, until its first trial began
and until it was complete, and how many trials the large study began meanwhile. It fails where a trial ran twice.
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

from study.home import driver_requests  # noqa: E402
from study.home.driver_requests import DriverRequest  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=40, help="of each trial")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="study-many-") as folder:
        command = Command(Path(folder) / "home", Path(folder), patience=900)
        done = command("cluster", "up", "--nodes", "1", "--cpus-per-node", "2", MLFLOW_TRACKING_URI="")
        if done.returncode:
            sys.exit(done.stderr)
        try:
            wait(Submissions(command.home, Path(folder)), given.epochs)
        finally:
            subprocess.run([sys.executable, "-m", "study", "cluster", "down"], env=environment(command), check=True)


def environment(command: Command) -> dict[str, str]:
    return {**os.environ, "STUDY_HOME": str(command.home), "PYTHONPATH": str(ROOT)}


def wait(there: Submissions, epochs: int, large: int = 60, small: int = 4) -> None:
    """Print the table."""
    there.submit("large", large, owner="ann", epochs=epochs)
    there.until(lambda: there.ended("large") >= 3, patience=900)
    submitted = {}
    for name, owner in (("small-1", "bob"), ("small-2", "cem"), ("small-3", "dan")):
        submitted[name] = time.time()
        there.submit(name, small, owner=owner, epochs=epochs)
    there.until(lambda: all(there.is_complete(name) for name in submitted), patience=1800)
    began = [at for at, _, _ in there.events("large", "started")]
    trials = [trial for trial in there.record("large").trials.values() if trial.ended_at and trial.started_at]
    seconds = sorted(trial.ended_at - trial.started_at for trial in trials if trial.ended_at and trial.started_at)
    print(f"a trial of the large study takes {seconds[len(seconds) // 2]:.1f} s (median of {len(seconds)})\n")
    print("| study | driver began | first trial began | complete | trials that the large study began meanwhile |")
    print("|---|---|---|---|---|")
    for name, at in submitted.items():
        opened, first, closed = (there.events(name, kind)[0][0] for kind in ("opened", "started", "closed"))
        meanwhile = sum(at < one < first for one in began), sum(at < one < closed for one in began)
        told = [f"{moment - at:.0f} s" for moment in (opened, first, closed)]
        print(f"| {name} | {' | '.join(told)} | {meanwhile[0]} until its first, {meanwhile[1]} until its end |")
    driver_requests.submit_request(there.folder("large").requests_folder, DriverRequest("end"))
    there.until(lambda: all(job.is_over for job in there.jobs.all_driver_jobs()), patience=900)
    for name in ("large", *submitted):
        ends = [trial for _, _, trial in there.events(name, "ended")]
        assert sorted(ends) == sorted(set(ends)) == sorted(there.record(name).trials), name


if __name__ == "__main__":
    main()
