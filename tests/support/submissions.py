"""Several small studies on one real cluster of this machine."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from ray._private.authentication_test_utils import reset_auth_token_state

from study.cluster.job_client import JobClient
from study.cluster.local import LocalCluster
from study.home.events import ENDED_STATES
from study.home.folder import Home, StudyFolder
from study.home.ledger import read_entries
from study.home.record import StudyRecord
from study.spec import load_study

FILE = """\
name: small
data:   {name: biased_digits, rho: 0.9}
model:  {name: small_conv_net, width: 4}
method: {name: eps_sup_info_nce, temperature: 0.1}
train:  {epochs: 2, batch_size: 256, learning_rate: 0.003}
search:
  space: {method.alpha: {low: 0.001, high: 1.0, log: true}}
  sampler: random
  early_stopping: {}
  confirm: {top: 0}
"""


class Submissions:
    """A cluster that is up, and the studies that are submitted to it.

    Args:
        home: with a cluster of `study cluster up`.
        work: for the study file.
    """

    def __init__(self, home: Path, work: Path) -> None:
        self.home, self._file = home, work / "small.yaml"
        self._file.write_text(FILE)
        self.local = LocalCluster.of_home(Home(home))
        password = self.local.password_file.read_text(encoding="utf-8")
        os.environ.update(self.local.client_environment(), MLFLOW_TRACKING_PASSWORD=password)
        reset_auth_token_state()  # this process may have asked another cluster before, and Ray keeps mode and token
        self.jobs = JobClient(self.local.dashboard)

    def submit(self, name: str, trials: int, owner: str = "ann", epochs: int = 2) -> None:
        """Submit one more study."""
        spec = load_study(str(self._file), [f"search.trials={trials}", f"train.epochs={epochs}"], None, name)
        self.jobs.submit_study(spec, "python", {"STUDY_OWNER": owner})

    def folder(self, name: str) -> StudyFolder:
        return StudyFolder(self.home / name)

    def record(self, name: str) -> StudyRecord:
        return StudyRecord.load(self.folder(name).ledger_file)

    def events(self, name: str, *kinds: str) -> list[tuple[float, str, int | None]]:
        """Time, kind and trial of its events."""
        found = (event for event in read_entries(self.folder(name).ledger_file) if event["event"] in kinds)
        return [(event["time"], event["event"], event.get("trial")) for event in found]

    def ended(self, name: str) -> int:
        """Trials that have ended."""
        if not self.folder(name).ledger_file.exists():
            return 0
        return sum(trial.state in ENDED_STATES for trial in self.record(name).trials.values())

    def is_complete(self, name: str) -> bool:
        return self.folder(name).ledger_file.exists() and self.record(name).state == "complete"

    def until(self, condition: Callable[[], bool], patience: float = 600.0) -> None:
        """Wait until a condition holds."""
        deadline = time.monotonic() + patience
        while not condition():
            assert time.monotonic() < deadline, self.jobs.all_driver_jobs()
            time.sleep(0.2)
