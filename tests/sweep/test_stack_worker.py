"""A process that trains several trials as one and the driver that answers it, without Ray between them."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from course import Course, spec_of
from helpers import timeless
from stacks import few

from study import data
from study.home.folder import Home, StudyFolder
from study.home.ledger import read
from study.home.record import TrialRecord
from study.sweep import here, stack_reports, stack_worker
from study.sweep.failures import PROCESS_DIED
from study.sweep.goes_on import goes_on_behind
from study.sweep.kept_states import KeptStates
from study.sweep.stack_jobs import StackJobs
from study.sweep.stack_reports import StackReports
from study.sweep.stack_worker import StackWorker
from study.sweep.works import Works
from study.training import Trial, TrialConfig

SMALL = ["search.sampler=random", "model.width=4", "train.epochs=3", "search.trials=5", "search.confirm.top=0"]
SMALL += ["train.batch_size=64", "train.learning_rate=0.003", "resources.stack=3"]


class Ended(BaseException):
    """As Tune ends the work of a process."""


class Killed(BaseException):
    """As SIGKILL ends the driver, and its processes with it."""


class Dead(BaseException):
    """As SIGKILL ends a process, whose driver lives on."""


class Studio:
    """A study with one process, which has the same words under the same keys as the driver.

    Attributes:
        reports: what the process told, entry by entry.
        dies_in: reports until a process dies before it is heard; 0: none does.
        deaths: how often one did.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *given: str) -> None:
        self.course = Course(folder / "ledger.jsonl", spec_of(*SMALL, *given))
        home = Home(folder / "home")
        name = self.course.spec.name
        self.folder = StudyFolder(home.path / name) if (home.path / name).exists() else home.create(self.course.spec)
        agenda, states = self.course.agenda, KeptStates(self.folder, self.course.spec, self.course.record)
        self.jobs = StackJobs(agenda, Works(agenda, self.folder, states))
        self._driver = StackReports(agenda, self.jobs, lambda number: None)
        self.reports: list[dict[str, Any]] = []
        self.dies_in = self.deaths = 0
        self._name, self._count, self._words = "", 0, dict[str, bytes]()
        monkeypatch.setattr(stack_reports, "leave_word", self._words.__setitem__)
        monkeypatch.setattr(stack_worker, "word", lambda key: self._words.pop(key, None))
        monkeypatch.setattr(stack_worker, "tune", SimpleNamespace(report=self._hear))
        monkeypatch.setattr(stack_worker, "ray", SimpleNamespace(get=lambda dataset: dataset))
        monkeypatch.setattr(stack_worker, "PAUSE", 0.0)
        monkeypatch.setattr(here, "known", lambda: False)
        monkeypatch.setattr(here, "told", lambda device: {"node": "here:1"})
        self._datasets = {data.key(self.course.spec.base["data"]): few()}

    def play(self) -> None:
        """Until nothing follows."""
        while (taken := self.jobs.take(self._next(), 1)) != "done":
            assert taken is not None
            if taken[1]["kind"] == "train":
                self._train(taken[1])
                continue
            try:
                StackWorker(taken[1], self._datasets).run()
            except Ended:
                continue
            except Dead:
                self.deaths += 1
                process: Any = SimpleNamespace(trial_id=self._name)
                self._driver.failed(process, PROCESS_DIED, lambda number: None)

    def alone(self, trial: TrialRecord) -> list[dict[str, float]]:
        """What a trial gives by itself."""
        return timeless(Trial(self.course.spec.trial_config(trial.params, trial.seed), few(), "cpu").run())

    def _train(self, work: Mapping[str, Any]) -> None:
        """A trial by itself, as `study.sweep.worker` does it."""
        trial = Trial(TrialConfig.from_document(json.loads(work["document"])), few(), "cpu")
        behind, note = goes_on_behind(trial, Path(work["checkpoint"]), work["heard"])
        goes_on = self.course.agenda.started(work["trial"], "here", behind, note)
        epochs = trial.run(Path(work["checkpoint"]), 0.0, None, Path(work["end"]))
        for epoch, metrics in enumerate(epochs, behind + 1):
            goes_on = goes_on and self.course.agenda.reported(work["trial"], epoch, metrics)
            if not goes_on:
                break
        self.jobs.freed(self._name)

    def _next(self) -> str:
        self._count += 1
        self._name = f"process-{self._count}"
        return self._name

    def _hear(self, report: Mapping[str, Any]) -> None:
        self.dies_in -= 1
        if self.dies_in == 0:
            raise Dead
        self.reports += json.loads(report["rows"])
        trial: Any = SimpleNamespace(trial_id=self._name)
        if not self._driver.heard(trial, report, "here:1", {}):
            raise Ended


Make = Callable[..., Studio]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    with ExitStack() as stack:

        def made(*given: str) -> Studio:
            studio = Studio(tmp_path, monkeypatch, *given)
            stack.callback(studio.course.ledger.close)
            return studio

        yield made


def assert_nearly_as_alone(studio: Studio, trials: int) -> None:
    record = studio.course.record
    assert len(record.trials) == trials
    for trial in record.trials.values():
        for report, expected in zip(trial.reports, studio.alone(trial), strict=False):
            near = pytest.approx(expected["train/loss"], rel=1e-4, abs=1e-6)  # float32, of terms around 1
            assert report["train/loss"] == near
            assert report.keys() - {"epoch"} >= expected.keys()


RATES = "search.space.train.learning_rate={low: 1.0e-5, high: 0.01, log: true}"


def test_trials_come_and_go_and_each_is_as_alone(make: Make) -> None:
    studio = make("search.early_stopping={name: asha, grace: 1, reduction: 2}", "search.trials=9", RATES)
    studio.play()
    states = {trial.state for trial in studio.course.record.trials.values()}
    assert states == {"complete", "pruned"}
    assert_nearly_as_alone(studio, 9)


def test_one_that_diverges_fails_and_its_place_is_taken(make: Make) -> None:
    studio = make("search.enqueue=[{train.learning_rate: 1.0e+30}]", "search.space.train.learning_rate=0.003")
    studio.play()
    failed = [trial for trial in studio.course.record.trials.values() if trial.state == "failed"]
    assert [trial.kind for trial in failed] == ["DIVERGED"]
    assert {trial.state for trial in studio.course.record.trials.values()} == {"complete", "failed"}


@pytest.mark.slow
def test_twenty_kills_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the driver before and after a write of the ledger, and of the process before a report is heard."""
    rule = "search.early_stopping={name: asha, grace: 1, reduction: 2}"
    given, chance, kills = ["search.trials=24", RATES, rule], random.Random(0), 0
    while True:
        studio = Studio(tmp_path, monkeypatch, *given)
        append, left = studio.course.ledger.append, chance.randrange(5, 12) if kills < 20 else 0
        studio.dies_in, before = chance.randrange(1, 5) if kills < 20 else 0, chance.random() < 0.5

        def deadly(event: str, before: bool = before, append: Any = append, **fields: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0 and before:
                raise Killed
            written = append(event, **fields)
            if left == 0:
                raise Killed
            return written

        monkeypatch.setattr(studio.course.ledger, "append", deadly)
        try:
            studio.play()
        except Killed:
            kills += 1
        else:
            break
        finally:
            kills += studio.deaths
            studio.course.ledger.close()
    assert kills >= 20
    record = studio.course.record
    assert all(trial.state in ("complete", "pruned") and trial.losses == 0 for trial in record.trials.values())
    heard: Counter[int] = Counter()
    for event in read(tmp_path / "ledger.jsonl"):
        if event["event"] == "started":
            assert event["epoch"] <= heard[event["trial"]]
            heard[event["trial"]] = event["epoch"]
        elif event["event"] == "report":
            heard[event["trial"]] += 1
            assert event["epoch"] == heard[event["trial"]]
    assert_nearly_as_alone(studio, 24)


def test_confirmed_trials_leave_their_weights(make: Make) -> None:
    studio = make("search.confirm={top: 1, seeds: 2}", "search.early_stopping.name=none", "train.keep_epochs=[1]")
    while (taken := studio.jobs.take(studio._next(), 1)) not in ("done", None):
        assert isinstance(taken, tuple)
        job, work = taken
        if job.kind == "test":
            studio.course.agenda.tested(job.trial.number, {"test/accuracy": 0.5})
            studio.jobs.freed(studio._name)
            continue
        with pytest.raises(Ended):
            StackWorker(work, studio._datasets).run()
    confirmed = list(studio.course.record.by_stage("confirm"))
    assert len(confirmed) == 4
    for trial in confirmed:
        config = studio.course.spec.trial_config(trial.params, trial.seed)
        again = Trial(config, few(), "cpu", begins=False)
        again.load(studio.folder.model_file(trial.number))
        assert again.evaluate("val")["val/accuracy"] == pytest.approx(trial.reports[-1]["val/accuracy"])
        assert studio.folder.model_file(trial.number, 1).exists()


def test_a_configuration_that_a_stack_cannot_hold_is_trained_by_itself(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    studio = make("search.early_stopping.name=none", "search.trials=2")
    monkeypatch.setattr(stack_worker, "apart", lambda first, second: "the second is another")
    taken = studio.jobs.take(studio._next(), 1)
    assert isinstance(taken, tuple)
    with pytest.raises(Ended):
        StackWorker(taken[1], studio._datasets).run()
    states = [trial.state for trial in studio.course.record.trials.values()]
    assert states == ["complete", "waiting"]
    (job, work) = studio.jobs.take("alone", 1)  # type: ignore[misc]
    assert (job.trial.number, work["kind"]) == (1, "train")
