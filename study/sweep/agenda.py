"""What runs next, and what came of it: the ledger is its memory, Optuna its adviser.

A study runs in stages: the baseline and the search; then the best configurations again on fresh seeds (confirm);
then the test split, read only for what was chosen and for the baseline. A final training has one stage, its seeds,
and reads the test split for each.
"""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from study import ranking
from study.ledger import Ledger
from study.record import ENDED, Stage, State, StudyRecord, TrialRecord
from study.spec import StudySpec
from study.sweep.early_stopping import EarlyStopping
from study.sweep.sampler import Sampler, Told

HOPELESS = 3
"""A study stops when its first so many trials have all failed."""


@dataclass(frozen=True)
class Job:
    """One thing for a worker to do: train a trial, or read the test split with a trained one."""

    kind: Literal["train", "test"]
    trial: TrialRecord

    @property
    def needs_model_file(self) -> bool:
        """Whether weights are written (confirm and final trials) or read (tests)."""
        return self.trial.stage in ("confirm", "final")


class Agenda:
    """The course of one study.

    Args:
        spec: the study.
        ledger: open for appending.
        record: what the ledger says so far; kept up to date here.
        rule: early stopping of searched trials; it hears all that the record holds.
    """

    def __init__(self, spec: StudySpec, ledger: Ledger, record: StudyRecord, rule: EarlyStopping) -> None:
        self.spec, self.record, self._ledger, self._rule = spec, record, ledger, rule
        self.stopping: str | None = None
        self._sampler = Sampler(spec)
        self._testing: set[int] = set()
        self._done = False
        self._recall()
        self._unfinished = deque(
            trial
            for trial in record.trials.values()
            if trial.state not in ENDED or (trial.stage == "final" and trial.state == "failed")
        )

    def next(self) -> Job | Literal["done"] | None:
        """The next job; None: wait for one that runs; "done": nothing will follow."""
        if self.stopping:
            return "done"
        if self._unfinished:
            return Job("train", self._unfinished.popleft())
        trial = self._next_searched() or self._next_confirm() or self._next_final()
        if trial is not None:
            return Job("train", trial)
        for trial in self._to_test():
            if not trial.tested and trial.number not in self._testing:
                self._testing.add(trial.number)
                return Job("test", trial)
        self._done = not self._any_running("baseline", "search", "confirm", "final")
        return "done" if self._done else None

    @property
    def outcome(self) -> str:
        """How the study ended: stopped, failed (nothing is complete, or a final seed is missing) or complete."""
        trials = list(self.record.by_stage("baseline", "search", "final"))
        finals = [trial.state == "complete" for trial in trials if trial.stage == "final"]
        fine = all(finals) if finals else any(trial.state == "complete" for trial in trials)
        return self.stopping or ("complete" if fine else "failed")

    @property
    def is_over(self) -> bool:
        """Whether the study is stopped, or no job is left or under way."""
        trials = self.record.trials
        waiting = any(not trials[number].tested and not trials[number].untested for number in self._testing)
        return self.stopping is not None or (self._done and not waiting)

    def started(self, number: int, node: str) -> None:
        """A trial begins, from its first epoch."""
        self._write("started", trial=number, node=node)

    def reported(self, number: int, epoch: int, metrics: Mapping[str, float]) -> bool:
        """A trial's epoch is over. Says whether the trial goes on; if not, its end is in the ledger."""
        trial = self.record.trials[number]
        if trial.state != "running" or epoch != trial.epochs + 1:
            return trial.state == "running"  # Tune repeats the last result when a trial returns
        self._write("report", trial=number, epoch=epoch, metrics=_finite(metrics))
        if epoch == self.spec.epochs:
            self._complete(trial)
        elif self._stops(trial, epoch):
            self._end(trial, "pruned", self._rule.name)
        return trial.state == "running"

    def failed(self, number: int, reason: str) -> None:
        """A trial ended before its last epoch and was not stopped; nothing if it had ended, its worker died later."""
        if self.record.trials[number].state in ENDED:
            return
        self._end(self.record.trials[number], "failed", reason)
        trials = self.record.trials.values()
        ended = [trial for trial in trials if trial.state in ENDED]
        if len(ended) >= HOPELESS and all(trial.state == "failed" for trial in ended):
            self.stopping = "failed"

    def tested(self, number: int, metrics: Mapping[str, float]) -> None:
        """The test split was read with a trial's model."""
        if not self.record.trials[number].tested:
            self._write("tested", trial=number, metrics=_finite(metrics))

    def untested(self, number: int, reason: str) -> None:
        """The test split could not be read with a trial's model."""
        self._write("untested", trial=number, reason=reason)

    def _recall(self) -> None:
        """Bring early stopping and Optuna to where the ledger is, and end what was cut off before its end was noted."""
        for trial in list(self.record.by_stage("baseline", "search")):
            self._sampler.adopt(trial.number, trial.params)
        stopped: dict[int, bool] = {}
        for number, epoch in self.record.heard:
            trial = self.record.trials[number]
            if epoch <= min(trial.epochs, self.spec.epochs - 1):
                stopped[number] = self._stops(trial, epoch)
        for trial in list(self.record.trials.values()):
            if trial.state in ENDED:
                self._tell(trial)
            elif trial.epochs == self.spec.epochs:
                self._complete(trial)
            elif stopped.get(trial.number):  # by its last epoch: one that went on behind a rung was let through
                self._end(trial, "pruned", self._rule.name)

    def _stops(self, trial: TrialRecord, epoch: int) -> bool:
        score = self.spec.objective.score(trial.reports[epoch - 1])
        return trial.stage == "search" and score is not None and self._rule.stops(trial.number, epoch, score)

    def _complete(self, trial: TrialRecord) -> None:
        if self.spec.objective.score(trial.reports[-1]) is None:
            self._end(trial, "failed", f"{' or '.join(self.spec.objective.needed)} is not a number")
        else:
            self._end(trial, "complete")

    def _end(self, trial: TrialRecord, state: State, reason: str | None = None) -> None:
        self._write("ended", trial=trial.number, state=state, reason=reason)
        self._tell(trial)

    def _tell(self, trial: TrialRecord) -> None:
        scored = [(int(report["epoch"]), self.spec.objective.score(report)) for report in trial.reports]
        course = [(epoch, score) for epoch, score in scored if score]
        self._sampler.tell(Told(trial.number, trial.state, course, scored[-1][1] if scored else None))

    def _write(self, event: str, **fields: Any) -> None:
        self.record.apply(self._ledger.append(event, **fields))

    def _add(self, stage: Stage, params: Mapping[str, Any], seed: int, repeats: int | None = None) -> TrialRecord:
        number = len(self.record.trials)
        self._write("trial", trial=number, stage=stage, params=dict(params), seed=seed, repeats=repeats)
        return self.record.trials[number]

    def _next_searched(self) -> TrialRecord | None:
        search = self.spec.search
        given = ([search.baseline] if search.baseline is not None else []) + search.enqueue
        position, number = len(list(self.record.by_stage("baseline", "search"))), len(self.record.trials)
        if position >= self.spec.trials or self.spec.final_seeds is not None:
            return None
        if position >= len(given):
            return self._add("search", self._sampler.ask(number), self.spec.seed)
        self._sampler.adopt(number, given[position])
        stage: Stage = "baseline" if search.baseline is not None and position == 0 else "search"
        return self._add(stage, given[position], self.spec.seed)

    def _next_confirm(self) -> TrialRecord | None:
        """The baseline's repeats can run while the last searched trials do, those of the best only after them."""
        chosen = ranking.to_confirm(self.record, self.spec, top=not self._any_running("baseline", "search"))
        have = {(trial.repeats, trial.seed) for trial in self.record.by_stage("confirm")}
        for trial in chosen:
            for seed in range(self.spec.seed + 1, self.spec.seed + 1 + self.spec.search.confirm.seeds):
                if (trial.number, seed) not in have:
                    return self._add("confirm", trial.params, seed, repeats=trial.number)
        return None

    def _next_final(self) -> TrialRecord | None:
        have = {trial.seed for trial in self.record.by_stage("final")}
        seed = next((seed for seed in self.spec.final_seeds or () if seed not in have), None)
        return None if seed is None else self._add("final", {}, seed)

    def _to_test(self) -> list[TrialRecord]:
        """Trials whose configuration is final: final ones, the baseline's repeats, at the end those of the best."""
        chosen = [ranking.baseline(self.record, self.spec)]
        if not self._any_running("baseline", "search", "confirm"):
            chosen.append(ranking.best(self.record, self.spec))
        repeats = [trial for one in chosen if one for trial in one.repeats]
        return repeats + [trial for trial in self.record.by_stage("final") if trial.state == "complete"]

    def _any_running(self, *stages: Stage) -> bool:
        return any(trial.state not in ENDED for trial in self.record.by_stage(*stages))


def _finite(metrics: Mapping[str, float]) -> dict[str, float | None]:
    return {key: value if math.isfinite(value) else None for key, value in metrics.items()}
