"""Several small studies on one real cluster of this machine, and what is seen of their drivers meanwhile."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from ray._private.authentication_test_utils import reset_auth_token_state

from study.cluster.head import Head
from study.cluster.job import Job
from study.cluster.jobs import Jobs, with_places
from study.cluster.local import LocalCluster
from study.home.driver_queue import FOLDER, Standing
from study.home.events import ENDED
from study.home.folder import Home, StudyFolder
from study.home.ledger import read
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


@dataclass
class Seen:
    """What was seen of the drivers.

    Attributes:
        begun: jobs in the order in which they were let in.
        most: drivers that ran at once, at most.
        drivers, waiting: bytes of all drivers, and of all light processes that waited, at most (PSS).
        places: the queue whenever it changed.
    """

    begun: list[str] = field(default_factory=list)
    most: int = 0
    drivers: int = 0
    waiting: int = 0
    places: list[list[str]] = field(default_factory=list)


class Submissions:
    """A cluster that is up, the studies that are submitted to it, and what is seen of them.

    Args:
        home: with a cluster of `study cluster up`.
        work: for the study file.
        sizes: whether what the processes take is looked at, too, which takes the kernel long.
    """

    def __init__(self, home: Path, work: Path, sizes: bool = False) -> None:
        self.home, self._file, self._sizes = home, work / "small.yaml", sizes
        self._file.write_text(FILE)
        self.local = LocalCluster.of(Home(home))
        password = self.local.password_file.read_text(encoding="utf-8")
        os.environ.update(self.local.environment(), MLFLOW_TRACKING_PASSWORD=password)
        reset_auth_token_state()  # this process may have asked another cluster before, and Ray keeps mode and token
        self.jobs, self.seen, self.names = Jobs(self.local.dashboard), Seen(), list[str]()

    def submit(self, name: str, trials: int, owner: str = "ann", epochs: int = 2, **standing: Any) -> None:
        """Submit one more study."""
        spec = load_study(str(self._file), [f"search.trials={trials}", f"train.epochs={epochs}"], None, name)
        self.jobs.submit(spec, "python", {"STUDY_OWNER": owner}, False, Standing(**standing))
        self.names.append(name)

    def folder(self, name: str) -> StudyFolder:
        return StudyFolder(self.home / name)

    def record(self, name: str) -> StudyRecord:
        return StudyRecord.load(self.folder(name).ledger_file)

    def events(self, name: str, *kinds: str) -> list[tuple[float, str, int | None]]:
        """Time, kind and trial of its events."""
        found = (event for event in read(self.folder(name).ledger_file) if event["event"] in kinds)
        return [(event["time"], event["event"], event.get("trial")) for event in found]

    def ended(self, name: str) -> int:
        """Trials that have ended."""
        if not self.folder(name).ledger_file.exists():
            return 0
        return sum(trial.state in ENDED for trial in self.record(name).trials.values())

    def is_complete(self, name: str) -> bool:
        return self.folder(name).ledger_file.exists() and self.record(name).state == "complete"

    def placed(self) -> list[Job]:
        """Every driver, with its place in the queue."""
        return with_places(Head(self.local.dashboard).file, self.jobs.all())

    def waiting(self) -> list[str]:
        """The queue, the next one first."""
        for path in (self.home / FOLDER).glob("state-*.json"):
            return list(json.loads(path.read_text(encoding="utf-8"))["waiting"])
        return []

    def until(self, condition: Callable[[], bool], patience: float = 600.0) -> None:
        """Look at the drivers until a condition holds."""
        deadline = time.monotonic() + patience
        while not condition():
            assert time.monotonic() < deadline, (self.waiting(), self.placed())
            self.look()
            time.sleep(0.2)

    def look(self) -> None:
        """Note who runs, who waits, and what they take."""
        sizes: dict[bool, list[int]] = {True: [], False: []}
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            waits = "study.cluster.queued_driver" in words
            if "job-study.yaml" in words and ("study" in words or waits) and words[0] != "/bin/sh":
                try:
                    if process.environ().get("STUDY_HOME") == str(self.home):
                        sizes[waits].append(process.memory_full_info().pss if self._sizes else 0)
                except psutil.Error:  # it has ended
                    continue
        seen = self.seen
        seen.most = max(seen.most, len(sizes[False]))
        seen.drivers = max(seen.drivers, sum(sizes[False]))
        seen.waiting = max(seen.waiting, sum(sizes[True]))
        if not seen.places or seen.places[-1] != self.waiting():
            seen.places.append(self.waiting())
        for path in (self.home / FOLDER / "turns").glob("*.json"):
            try:
                told = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            if told["began"] is not None and told["job"] not in seen.begun:
                seen.begun.append(told["job"])
