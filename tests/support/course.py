"""A study's course without Ray: a plain loop plays the workers."""

import math
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from helpers import quickstart
from numpy.typing import NDArray

from study.home.events import Event, SessionClosed, SessionOpened
from study.home.ledger import Ledger, read_entries
from study.home.record import StudyRecord, TrialRecord
from study.spec import StudySpec
from study.sweep.agenda import Agenda, FoldJoinFunction, TrialJob
from study.sweep.early_stopping import EarlyStopping
from study.sweep.failures import TrialFailure
from study.sweep.job_payload import JobPayload
from study.sweep.joined_folds import FoldPredictions

BROKEN, DIED = TrialFailure("BUG", "broken"), TrialFailure("PREEMPTED", "its process died")

Score = Callable[[TrialRecord, int], float | TrialFailure | None]
"""The metric of a trial at an epoch, or how it ends there; None: by an exception."""


def spec_of(*assignments: str) -> StudySpec:
    """Four epochs, rungs at 1 and 2; baseline and 11 searched trials (TPE models from the eleventh on); confirm."""
    stopping = "search.early_stopping={name: asha, grace: 1, reduction: 2}"
    given = ("train.epochs=4", "search.trials=12", "search.confirm={top: 2, seeds: 2}", stopping)
    return quickstart(*given, *assignments)


def score(trial: TrialRecord, epoch: int) -> float | None:
    """Better with lambda near 1, a little luck by seed, more with each epoch."""
    luck = random.Random(f"{sorted(trial.params.items())} {trial.seed}").uniform(-0.05, 0.05)
    return (0.5 + 0.4 * math.exp(-((trial.params.get("method.lambda", 0.0) - 1.0) ** 2)) + luck) * epoch / 4


def failing(trial: TrialRecord, epoch: int) -> float | None:
    """Every fifth trial fails in its second epoch, every seventh gives no number."""
    if trial.number % 7 == 6:
        return math.nan
    return None if trial.number % 5 == 3 and epoch == 2 else score(trial, epoch)


class Course:
    """An agenda on a ledger, and workers that do its jobs.

    Args:
        checkpoints: trials that were cut off go on behind the last epoch but one that was heard, not from the start.
        joins, predict: of data with folds, what joins them and the classes of a trial's fold.
        further: more metrics of a trial, the same at each epoch and on test, by name without their split.
    """

    def __init__(
        self,
        path: Path,
        spec: StudySpec,
        score: Score = score,
        checkpoints: bool = False,
        further: Callable[[TrialRecord], Mapping[str, float]] = lambda trial: {},
        joins: FoldJoinFunction | None = None,
        predict: Callable[[TrialRecord], NDArray[np.int64]] | None = None,
    ) -> None:
        if not path.exists():
            Ledger.create(path)
        self.spec, self.score, self.ledger, self.checkpoints = spec, score, Ledger(path), checkpoints
        self.further, self.predict = further, predict
        self.record = StudyRecord.from_entries(read_entries(path))
        if self.record.state == "running":
            self._write(SessionClosed("interrupted"))
        self._write(SessionOpened(owner="ada", version="1"))
        self.agenda = Agenda(spec, self.ledger, self.record, EarlyStopping(spec), joins)

    def play(self, slots: int = 1, pick: Callable[[int], int] = lambda count: 0) -> "Course":
        """Do jobs, `slots` at once, one step of one of them at a time, until nothing follows."""
        running: list[list[Any]] = []
        while True:
            while len(running) < slots and isinstance(job := self.agenda.next_job(), TrialJob):
                assert self.record.trials[job.trial.number] is job.trial
                running.append([job, 0])
            if not running:
                assert self.agenda.next_job() == "done", "the agenda waits, and nothing runs"
                assert self.agenda.is_over
                self._write(SessionClosed(self.agenda.stopping or "complete", self.agenda.reached_limit))
                self.ledger.close()
                return self
            assert self.agenda.stopping or not self.agenda.is_over, "a job is under way"
            place = pick(len(running))
            if not self._step(running[place]):
                del running[place]

    def _step(self, work: list[Any]) -> bool:
        (job, epoch), number = work, work[0].trial.number
        work[1] += 1
        if job.kind == "test":
            assert job.trial.state == "complete"
            assert job.needs_model_file
            value = self.score(job.trial, 4)
            metrics = {"accuracy": value if isinstance(value, float) else math.nan, **self.further(job.trial)}
            self.agenda.record_test_metrics(number, {f"test/{name}": figure for name, figure in metrics.items()})
            return False
        if epoch == 0:
            work[1] += max(0, job.trial.n_epochs - 1) if self.checkpoints else 0
            return self.agenda.record_trial_start(number, "here", work[1] - 1)
        value = self.score(job.trial, epoch)
        if value is None or isinstance(value, TrialFailure):
            self.agenda.record_trial_failure(number, value or BROKEN)
            return False
        if self.predict and epoch == self.spec.epochs and job.trial.stage == "confirm":
            self.agenda.record_fold_predictions(number, FoldPredictions(self.predict(job.trial)).to_text())
        further = {f"val/{name}": figure for name, figure in self.further(job.trial).items()}
        return self.agenda.record_epoch(number, epoch, {"val/accuracy": value, "train/loss": 1.0, **further})

    def _write(self, event: Event) -> None:
        self.record.apply(self.ledger.append(event))


def outcome(record: StudyRecord) -> list[Any]:
    """What came of every trial, without when and where."""
    return [
        (
            trial.number,
            trial.stage,
            trial.params,
            trial.seed,
            trial.repeated_trial,
            trial.state,
            trial.reason,
            reports,
            tested,
        )
        for trial in record.trials.values()
        for reports, tested in [([dict(one) for one in trial.reports], dict(trial.test_metrics))]
    ]


def prefixes(course: Course) -> list[bytes]:
    """What a ledger had held whenever its driver could have died."""
    lines = course.ledger.path.read_bytes().splitlines(keepends=True)
    return [b"".join(lines[:count]) for count in range(1, len(lines))]


def payload(**fields: Any) -> JobPayload:
    """What a worker is told of a job: to train trial 0 from its first epoch, unless said otherwise."""
    job: dict[str, Any] = {
        "kind": "train",
        "trial": 0,
        "n_earlier_starts": 0,
        "n_reported_epochs": 0,
        "sections_json": "{}",
        "device": "cpu",
    }
    job |= {"gpu_share": 0.0, "gets_gpu_alone": False, "has_whole_gpu": False}
    job |= {"checkpoint_file": Path("checkpoint"), "model_file": None}
    return JobPayload(**job | {"objective_json": None, "function": None, "required_metrics": ()} | fields)
