"""The sbatch script on a real Slurm of two nodes: requeued, or cancelled and submitted anew, no trial runs twice."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster_files import CLUSTER
from command import Command
from ended import assert_nothing_was_lost
from helpers import ROOT
from slurm import NODES, Slurm, missing

from study.home.record import StudyRecord

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(bool(missing()), reason="needs Slurm: apt-get install slurm-wlm munge"),
]

STUDY = """\
name: queued
data:   {name: biased_digits, rho: 0.9}
model:  {name: small_conv_net, width: 4}
method: {name: eps_sup_info_nce, temperature: 0.1}
train:  {epochs: 80, batch_size: 128, learning_rate: 0.003}
search:
  space:
    method.alpha: {low: 0.001, high: 1.0, log: true}
  trials: 4
  concurrency: 2
"""

ASK = """\
import json, ray
ray.init("auto")
print(json.dumps([int(ray.cluster_resources().get(name, 0)) for name in ("CPU", "GPU")]))
"""


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    found = Slurm()
    yield found
    found.remove()


@pytest.fixture
def job(tmp_path: Path, slurm: Slurm) -> "Iterator[Job]":
    (tmp_path / "queued.yaml").write_text(STUDY)
    yield Job(slurm, Command(tmp_path / "home", tmp_path, patience=500))
    for log in tmp_path.glob("study-*.log"):  # a job that was killed leaves its Ray's folder
        shutil.rmtree(f"/tmp/ray-{log.stem.removeprefix('study-')}", ignore_errors=True)


class Job:
    """The script as a user submits it, in a folder of its own."""

    def __init__(self, slurm: Slurm, command: Command) -> None:
        self.slurm, self.command = slurm, command

    def submit(self) -> str:
        """As with the package's environment activated, for all CPUs and GPUs of both nodes."""
        programs = Path(sys.executable).parent
        options = ["--cpus-per-task=2", "--mem=2G", "--gpus-per-node=1", f"--chdir={self.command.work}"]
        return self.slurm.submit(
            *options,
            str(CLUSTER / "slurm" / "study.sbatch"),
            "queued.yaml",
            PATH=f"{programs}:{os.environ['PATH']}",
            PYTHONPATH=str(ROOT),
            STUDY_HOME=str(self.command.home),
        )

    def wait(self, number: str, condition: Callable[[dict[str, str]], object]) -> dict[str, str]:
        """Until a condition holds of the job."""
        deadline = time.monotonic() + 500
        while not condition(found := self.slurm.job(number)):
            assert time.monotonic() < deadline, f"{found}\n{self.log(number)}"
            time.sleep(0.5)
        return found

    def log(self, number: str) -> str:
        return (self.command.work / f"study-{number}.log").read_text(errors="replace")

    def wait_for_mid_study(self) -> None:
        """A trial has ended, another is in the middle."""

        def is_in_the_middle(record: StudyRecord) -> bool:
            counts = record.trials_by_state()
            running = [trial for trial in record.trials.values() if trial.state == "running"]
            return counts["complete"] >= 1 and any(2 <= trial.n_epochs < 78 for trial in running)

        self.command.wait_for("queued", is_in_the_middle)

    def assert_complete(self) -> None:
        """Nothing was lost or done twice, in two sessions: the one before the cut and the one after."""
        record = assert_nothing_was_lost(self.command.folder("queued"))
        assert len(record.trials) == 4
        assert {trial.state for trial in record.trials.values()} == {"complete"}
        assert {trial.n_epochs for trial in record.trials.values()} == {80}
        assert len(record.sessions) == 2


def assert_ray_has_both_nodes(job: Job, number: str) -> None:
    """All CPUs and GPUs of the job, for who has the token; it is asked before the study begins, which is short."""
    token = job.command.home / f".ray-token-{number}"
    environment = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token), "RAY_TMPDIR": f"/tmp/ray-{number}"}
    deadline, there = time.monotonic() + 400, None
    while there != [2 * len(NODES), len(NODES)]:
        assert time.monotonic() < deadline, f"{there}\n{job.log(number)}"
        done = subprocess.run(
            [sys.executable, "-c", ASK], env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
        )
        there = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else done.stderr[-500:]
    assert token.stat().st_mode & 0o777 == 0o600
    assert token.read_text() not in job.log(number)


def test_a_job_near_its_time_limit_has_itself_requeued(job: Job) -> None:
    """At the signal that it asks Slurm for, three minutes before; the study stops in good order first."""
    assert "\n#SBATCH --signal=B:USR1@180\n" in (CLUSTER / "slurm" / "study.sbatch").read_text(encoding="utf-8")
    number = job.submit()
    assert_ray_has_both_nodes(job, number)
    job.wait_for_mid_study()
    job.slurm("scancel", "--batch", "--signal=USR1", number)
    assert_goes_on(job, number)
    assert "go on with it: study resume queued" in job.log(number)


def assert_goes_on(job: Job, number: str) -> None:
    """In the queue again, and from there to its end."""
    job.wait(number, lambda found: found["JobState"] == "PENDING")
    job.slurm("scontrol", "update", f"JobId={number}", "StartTime=now")  # Slurm waits two minutes
    found = job.wait(number, lambda found: found["JobState"] in {"COMPLETED", "FAILED"})
    assert found["JobState"] == "COMPLETED", job.log(number)
    assert found["Restarts"] == "1"
    job.assert_complete()
    assert not list(job.command.home.glob(".ray-token-*"))


def test_a_cancelled_job_that_is_submitted_anew_goes_on(job: Job) -> None:
    number = job.submit()
    job.wait_for_mid_study()
    job.slurm("scancel", number)
    job.wait(number, lambda found: found["JobState"] == "CANCELLED")
    again = job.submit()
    found = job.wait(again, lambda found: found["JobState"] in {"COMPLETED", "FAILED"})
    assert found["JobState"] == "COMPLETED", job.log(again)
    job.assert_complete()
