"""Which jobs are done together, and what comes of the rows of a process; a plain loop plays the processes."""

import json
import pickle
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from course import Course, outcome, score, spec_of

from study.home.folder import Home
from study.home.ledger import read
from study.sweep import stack_reports
from study.sweep.failures import PROCESS_DIED, Failure
from study.sweep.job import Job, Work
from study.sweep.kept_states import KeptStates
from study.sweep.stack_jobs import StackJobs
from study.sweep.stack_reports import StackReports
from study.sweep.stack_size import StackSize
from study.sweep.stack_words import key
from study.sweep.works import Works

RANDOM = "search.sampler=random"


class Stage:
    """A study whose processes are played here.

    Attributes:
        answers: what the driver left, by key.
        sizes: of the stacks whose epochs were reported.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *given: str) -> None:
        self.course = Course(folder / "ledger.jsonl", spec_of(*given))
        home = Home(folder / "home").create(self.course.spec)
        states = KeptStates(home, self.course.spec, self.course.record)
        self.jobs = StackJobs(self.course.agenda, Works(self.course.agenda, home, states))
        self.reports = StackReports(self.course.agenda, self.jobs, lambda number: None)
        self.answers: dict[str, bytes] = {}
        self.sizes: list[int] = []
        self.warm: set[tuple[str, int]] = set()
        self.running: dict[str, list[Any]] = {}
        self.begun: set[tuple[int, int]] = set()
        self._count = 0
        monkeypatch.setattr(stack_reports, "leave_word", self.answers.__setitem__)

    def fill(self, slots: int) -> None:
        """Have free processes take what there is."""
        while len(self.running) < slots:
            self._count += 1
            taken = self.jobs.take(name := f"process-{self._count}", slots - len(self.running))
            if taken is None or taken == "done":
                return
            job, work = taken
            self.running[name] = [job, work, 0, [*work["rows"]] if work["kind"] == "stack" else None]

    def play(self, slots: int = 2) -> None:
        """Until nothing follows."""
        self.fill(slots)
        while self.running:
            for name in list(self.running):
                self.step(name)
            self.fill(slots)
        assert self.jobs.take("last", 1) == "done"

    def step(self, name: str) -> None:
        """An epoch of each row of a process, or all of a job by itself."""
        job, _, turn, rows = self.running[name]
        if rows is None:
            self._alone(job)
            self.jobs.freed(name)
            del self.running[name]
            return
        trials = self.course.record.trials
        told = {(row["trial"], row["run"]) for row in rows if turn and not row["heard"]} | self.begun
        if begun := [row for row in rows if (row["trial"], row["run"]) not in told]:
            self.begun |= {(row["trial"], row["run"]) for row in rows}
            entries = [{"trial": row["trial"], "run": row["run"], "behind": row["heard"]} for row in begun]
            if not self._tell(name, entries):
                del self.running[name]
            return
        entries = []
        for row in self.running[name][3]:
            trial, entry = trials[row["trial"]], {"trial": row["trial"], "run": row["run"]}
            value = score(trial, trial.epochs + 1)
            figures = {"val/accuracy": value, "train/loss": 1.0}
            entries.append({**entry, "epoch": trial.epochs + 1, "metrics": figures})
        self.sizes.append(len(entries))
        if not self._tell(name, entries):
            del self.running[name]

    def seconds(self, name: str, rows: int) -> float:
        """That an epoch of so many rows takes: eight are the best, and the first together takes long."""
        first = rows > 1 and (name, rows) not in self.warm
        self.warm.add((name, rows))
        return {1: 1.0, 4: 2.0, 8: 3.0, 16: 7.0}.get(rows, rows * 0.6) * (10 if first else 1)

    def _tell(self, name: str, entries: list[dict[str, Any]]) -> bool:
        process = self.running[name]
        process[2] += 1
        trial: Any = SimpleNamespace(trial_id=name)
        report = {"turn": process[2], "rows": json.dumps(entries), "took": self.seconds(name, len(process[3]))}
        goes_on = self.reports.heard(trial, report, f"here:{name}", {})
        assert self.reports.heard(trial, report, f"here:{name}", {}) is goes_on, "a repeated report is not heard"
        answer = pickle.loads(self.answers.pop(key(name, process[2]), pickle.dumps({"leave": [], "join": []})))
        gone = set(answer["leave"])
        process[3] = [row for row in process[3] if (row["trial"], row["run"]) not in gone] + answer["join"]
        assert all(isinstance(row, Work) for row in answer["join"])
        return goes_on

    def _alone(self, job: Job) -> None:
        agenda, number = self.course.agenda, job.trial.number
        if job.kind == "test":
            agenda.tested(number, {"test/accuracy": score(job.trial, 4) or 0.0})
            return
        goes_on, epoch = agenda.started(number, "here", job.trial.epochs), job.trial.epochs
        while goes_on:
            epoch += 1
            goes_on = agenda.reported(
                number, epoch, {"val/accuracy": score(job.trial, epoch) or 0.0, "train/loss": 1.0}
            )


Make = Callable[..., Stage]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Makes a stage, and closes its ledger."""
    with ExitStack() as stack:

        def staged(*given: str) -> Stage:
            stage = Stage(tmp_path, monkeypatch, RANDOM, *given)
            stack.callback(stage.course.ledger.close)
            return stage

        yield staged


@pytest.mark.parametrize("stopping", ["none", "asha"])
def test_a_study_of_stacks_has_the_trials_of_one_without(tmp_path: Path, make: Make, stopping: str) -> None:
    rule = f"search.early_stopping={{name: {stopping}, grace: 1, reduction: 2}}"
    stage = make(rule, "resources.stack=4")
    stage.play()
    assert max(stage.sizes) == 4
    (tmp_path / "alone").mkdir()
    alone = Course(tmp_path / "alone" / "ledger.jsonl", spec_of(RANDOM, rule)).play(2)
    if stopping == "none":
        ours, theirs = outcome(stage.course.record), outcome(alone.record)
        assert [one[:6] for one in ours] == [one[:6] for one in theirs]
    assert [trial.params for trial in stage.course.record.by_stage("search")] == [
        trial.params for trial in alone.record.by_stage("search")
    ]
    started = [event for event in read(stage.course.ledger.path) if event["event"] == "started"]
    assert started[0]["stack"] == [0, 1, 2, 3]
    assert all(event["trial"] in event["stack"] for event in started if "stack" in event)


def test_what_there_is_is_shared_out_among_free_processes(make: Make) -> None:
    stage = make("search.trials=6", "resources.stack=8")
    stage.fill(2)
    assert [len(rows) for _, _, _, rows in stage.running.values()] == [3, 3]


def test_no_more_trials_are_under_way_than_the_study_allows(make: Make) -> None:
    stage = make("search.concurrency=3", "resources.stack=8")
    stage.fill(2)
    assert [len(rows) for _, _, _, rows in stage.running.values()] == [2, 1]
    stage.play()


def test_jobs_that_do_not_go_together_wait_for_a_process_of_their_own(make: Make) -> None:
    space = "search.space={method.alpha: {low: 0.1, high: 1.0}, train.batch_size: {choices: [64, 128]}}"
    given = space, "search.baseline={method.alpha: 1.0}", "resources.stack=4", "search.trials=16"
    stage = make(*given)
    stage.play()
    assert all(trial.state in ("complete", "pruned") for trial in stage.course.record.trials.values())
    sizes = {}
    for event in read(stage.course.ledger.path):
        if event["event"] == "started" and "stack" in event:
            trials = [stage.course.record.trials[number] for number in event["stack"]]
            sizes[event["trial"]] = {trial.params.get("train.batch_size", 128) for trial in trials}
    assert all(len(found) == 1 for found in sizes.values())


@pytest.mark.parametrize(
    ("failure", "sizes"),
    [(PROCESS_DIED, [2, 2]), (Failure("OOM", "full", alone=True), [2, 2]), (Failure("BUG", "broken"), [1] * 4)],
)
def test_rows_of_a_process_that_ended_run_again_among_fewer(make: Make, failure: Failure, sizes: list[int]) -> None:
    stage = make("resources.stack=4", "search.retries=0")
    stage.fill(1)
    (name,) = stage.running
    stage.step(name)
    stage.step(name)
    del stage.running[name]
    there = sorted(stage.jobs.rows(name))
    trial: Any = SimpleNamespace(trial_id=name)
    written: list[int] = []
    stage.reports.failed(trial, failure, written.append)
    assert sorted(written) == there
    again = [stage.course.record.trials[number] for number in there]
    assert {(one.state, one.losses, one.alone) for one in again} == {("waiting", 0, False)}
    found = []
    for number in range(len(sizes)):
        taken = stage.jobs.take(f"again-{number}", 1)
        assert isinstance(taken, tuple)
        found.append(len(taken[1]["rows"]) if taken[1]["kind"] == "stack" else 1)
    assert found == sizes


def test_a_row_by_itself_that_dies_counts_as_any_trial(make: Make) -> None:
    stage = make("resources.stack=4", "search.trials=1", "search.retries=0")
    stage.fill(1)
    (name,) = stage.running
    stage.step(name)
    trial: Any = SimpleNamespace(trial_id=name)
    stage.reports.failed(trial, PROCESS_DIED, lambda number: None)
    assert stage.course.record.trials[0].state == "failed"


@pytest.mark.parametrize("slots", [1, 2])
def test_the_fastest_size_is_found_by_the_studys_own_epochs(make: Make, slots: int) -> None:
    given = "search.early_stopping={name: none}", "search.trials=80", "resources.stack=auto"
    stage = make(*given)
    stage.play(slots)
    (told,) = (event for event in read(stage.course.ledger.path) if event["event"] == "stacked")
    assert (told["trials"], told["of"]) == (8, "biased_digits small_conv_net eps_sup_info_nce")
    assert told["seconds"] == {"1": 1.0, "4": 0.5, "8": 0.375, "16": 7 / 16}
    assert stage.course.record.stacked == {told["of"]: 8}
    assert stage.sizes[:2] == [1, 1]


def test_where_stacks_are_slower_trials_run_by_themselves() -> None:
    told: list[int] = []
    size = StackSize(None, lambda found, seconds: told.append(found))
    for rows in (1, 1, 1, 4, 4, 4, 4):
        size.took("a process", rows, 1.0 * rows)
    assert (told, size.now, size.most) == ([1], 1, 1)


def test_what_did_not_fit_into_memory_is_not_tried_again() -> None:
    size = StackSize(16, lambda found, seconds: None)
    size.keep_below(8)
    assert (size.now, size.most) == (8, 8)
