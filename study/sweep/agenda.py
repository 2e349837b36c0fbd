"""What runs next, and what came of it: the ledger is its memory.

A study runs in stages: the baseline and the search; then the best configurations again on fresh seeds (confirm) and,
where that is asked for, what other selection rules would have picked (rule) and the steps from the baseline to the best
(ablation); then the test split, read only for what was chosen, for the baseline, and for these picks and steps. A final
training has one stage, its seeds, and reads the test split for each.
"""

import math
from collections import Counter, deque
from collections.abc import Mapping
from typing import Any, Literal, get_args

from study import ranking
from study.home.events import ENDED, Kind, Stage, State
from study.home.ledger import Ledger, TakenOver
from study.home.record import StudyRecord, TrialRecord
from study.home.requests import Request
from study.home.trial_record import BY_HAND
from study.ranking import ablation
from study.ranking.picks import fresh_trials, picked
from study.spec import StudySpec
from study.sweep.early_stopping import EarlyStopping
from study.sweep.failures import Failure
from study.sweep.job import CannotGoOn, Job
from study.sweep.search_stage import Decision, SearchStage

__all__ = ["HOPELESS", "Agenda", "CannotGoOn", "Job"]

HOPELESS = 3
"""A study stops when its first so many trials have all failed, and in the same way."""


class Agenda:
    """The course of one study.

    Args:
        spec: the study.
        ledger: open for appending.
        record: what the ledger says so far; kept up to date here.
        rule: early stopping of searched trials; it hears all that the record holds.
    """

    def __init__(self, spec: StudySpec, ledger: Ledger, record: StudyRecord, rule: EarlyStopping) -> None:
        self.spec, self.record, self._ledger = spec, record, ledger
        self.stopping: str | None = None
        self.by_hand = False  # whether Ctrl-C stops it
        self._search = SearchStage(spec, record, rule)
        self._testing: set[int] = set()  # under way
        self._untestable: set[int] = set()
        self._test_losses: Counter[int] = Counter()
        self._picked: list[TrialRecord] | None = None
        self._done = False
        self._finish_what_was_cut_off()
        self._unfinished = deque(
            trial
            for trial in record.trials.values()
            if trial.state not in ENDED or (trial.stage == "final" and trial.state == "failed")
        )

    def next(self) -> Job | Literal["done"] | None:
        """The next job; None: wait for one that runs; "done": nothing will follow."""
        if self.stopping:
            return "done"
        if trial := self._next_unfinished(alone=False):
            return Job("train", trial)
        decision = self._search.next()
        if decision is None and (trial := self._next_unfinished(alone=True)):
            return Job("train", trial)
        decision = decision or self._next_confirm() or self._next_ablation() or self._next_final()
        if decision is not None:
            return Job("train", self._decide(decision))
        for trial in self._to_test():
            if not trial.tested and trial.number not in self._testing | self._untestable:
                self._testing.add(trial.number)
                return Job("test", trial)
        self._done = not self._any_running(*get_args(Stage)) and not self._testing
        return "done" if self._done else None

    @property
    def enough(self) -> str | None:
        """Which limit ended the search, None while it goes on or where there is none."""
        return None if self.spec.final_seeds is not None else self._search.over

    @property
    def outcome(self) -> str:
        """How the study ended: stopped, failed (nothing is complete, or a final seed is missing) or complete."""
        trials = list(self.record.by_stage("baseline", "search", "final"))
        finals = [trial.state == "complete" for trial in trials if trial.stage == "final"]
        fine = all(finals) if finals else any(trial.state == "complete" for trial in trials)
        return self.stopping or ("complete" if fine else "failed")

    @property
    def is_over(self) -> bool:
        """Whether the study is stopped, or no job is left or under way.

        Raises:
            CannotGoOn: it is another driver's now.
        """
        try:
            self._ledger.check()
        except TakenOver as problem:
            raise CannotGoOn(problem, self._ledger.path) from problem
        return self.stopping is not None or self._done

    def started(self, number: int, node: str, epoch: int = 0, note: str | None = None) -> bool:
        """A trial begins, or goes on behind an epoch; `note`: why not behind a later one. Says whether it is to."""
        trial = self.record.trials[number]
        if trial.state in ENDED and trial.stage != "final":
            return False  # a replicate, whose first seed ended meanwhile
        self._write("started", trial=number, node=node, epoch=epoch, note=note)
        return True

    def reported(self, number: int, epoch: int, metrics: Mapping[str, float]) -> bool:
        """A trial's epoch is over. Says whether the trial goes on; if not, its end is in the ledger."""
        trial = self.record.trials[number]
        if trial.state != "running" or epoch != trial.epochs + 1:
            return trial.state == "running"  # Tune repeats the last result when a trial returns
        self._write("report", trial=number, epoch=epoch, metrics=_finite(metrics))
        if epoch == self.spec.epochs:
            self._complete(trial)
        elif self._search.prunes(trial, epoch):
            self._end(trial, "pruned", self._search.rule.name)
        elif trial.is_stopped:
            self._end(trial, "pruned", BY_HAND)
        return trial.state == "running"

    def obey(self, request: Request) -> None:
        """Do what a user asks for, or refuse it; the answer is in the ledger. Nothing if it is there already."""
        if request.id in self.record.requests:
            return
        if why := self._search.refuses(request) or ("the study is over" if self._done else None):
            self._write("refused", request=request.id, reason=why)
        elif request.kind == "enqueue":
            self._write("enqueued", request=request.id, params=dict(request.params))
            self._search.enqueued(request.params)
        elif request.kind == "stop":
            self._write("stopping", request=request.id, trial=request.trial)
        else:
            self._write("ending", request=request.id)

    def failed(self, number: int, failure: Failure) -> None:
        """A trial was cut off before its last epoch: it runs again where that can help, else it has failed.

        Nothing if it had ended, its worker died later.
        """
        trial = self.record.trials[number]
        if trial.state in ENDED:
            return
        if failure.may_run_again(trial, self.spec, before=trial.losses):
            cause = {"kind": failure.kind, "reason": failure.reason, "alone": failure.alone or None}
            cause["node_died"] = failure.node_died or None
            self._write("lost", trial=number, attempt=trial.attempt + 1, **cause)
            self._unfinished.append(trial)
            return
        self._end(trial, "failed", failure.reason, failure.kind)
        trials = self.record.by_stage("baseline", "search", "confirm", "rule", "ablation", "final")
        ended = [other for other in trials if other.state in ENDED]
        if len(ended) >= HOPELESS and all(other.state == "failed" and other.kind == failure.kind for other in ended):
            self.stopping = "failed"

    def tested(self, number: int, metrics: Mapping[str, float]) -> None:
        """The test split was read with a trial's model."""
        self._testing.discard(number)
        if not self.record.trials[number].tested:
            self._write("tested", trial=number, metrics=_finite(metrics))

    def untested(self, number: int, failure: Failure) -> None:
        """The test split could not be read with a trial's model: it is tried again where that can help."""
        trial = self.record.trials[number]
        self._testing.discard(number)
        if failure.may_run_again(trial, self.spec, before=self._test_losses[number]):
            self._test_losses[number] += 1
        else:
            self._untestable.add(number)
            self._write("untested", trial=number, reason=failure.reason)

    def _finish_what_was_cut_off(self) -> None:
        """End the trials whose driver died between their last report and the note of their end."""
        for trial in list(self.record.trials.values()):
            if trial.state in ENDED:
                self._end_replicates(trial)
            elif trial.epochs == self.spec.epochs:
                self._complete(trial)
            elif self._search.pruned_last.get(trial.number):  # by its last epoch: behind a rung it was let through
                self._end(trial, "pruned", self._search.rule.name)
            elif trial.is_stopped:
                self._end(trial, "pruned", BY_HAND)

    def _complete(self, trial: TrialRecord) -> None:
        validated = not self.spec.base["train"]["with_val"]
        if validated and ranking.mean_score(self.spec.objective, [trial]) is None:
            self._end(trial, "failed", f"{' or '.join(self.spec.objective.needed)} is not a number", "DIVERGED")
        else:
            self._end(trial, "complete")

    def _end(self, trial: TrialRecord, state: State, reason: str | None = None, kind: Kind | None = None) -> None:
        self._write("ended", trial=trial.number, state=state, kind=kind, reason=reason)
        self._search.ended(trial)
        self._end_replicates(trial)

    def _end_replicates(self, leader: TrialRecord) -> None:
        """What ended a configuration's first seed before its last epoch ends its other seeds."""
        if leader.stage in ("baseline", "search") and leader.state in ("pruned", "failed"):
            for trial in self.record.repeats_of(leader.number, "replicate"):
                if trial.state not in ENDED:
                    self._end(trial, "pruned", f"trial {leader.number}, its first seed, was {leader.state}")

    def _write(self, event: str, **fields: Any) -> None:
        try:
            entry = self._ledger.append(event, **fields)
        except (OSError, TakenOver) as problem:
            raise CannotGoOn(problem, self._ledger.path) from problem
        self.record.apply(entry)

    def _next_unfinished(self, alone: bool) -> TrialRecord | None:
        """A trial that is to run again. One that needs a GPU to itself comes after the search's others: as long as
        shares of a GPU are handed out, it would wait for ever."""
        for trial in list(self._unfinished):
            if trial.alone == alone:
                self._unfinished.remove(trial)
                if trial.state not in ENDED or trial.stage == "final":
                    return trial
        return None

    def _decide(self, decision: Decision) -> TrialRecord:
        number = len(self.record.trials)
        fields = {"stage": decision.stage, "params": dict(decision.params), "seed": decision.seed}
        self._write("trial", trial=number, **fields, repeats=decision.repeats, enqueued=decision.enqueued or None)
        self._search.decided(self.record.trials[number])
        return self.record.trials[number]

    def _next_confirm(self) -> Decision | None:
        """The baseline's repeats can run while the last searched trials do, those of the best only after them, and
        those of the rules' picks at last."""
        best = ranking.to_confirm(self.record, self.spec, top=not self._any_running("baseline", "search", "replicate"))
        return self._next_repeat("confirm", best, "confirm") or self._next_repeat(
            "rule", self._rule_picks(), "confirm", "rule"
        )

    def _next_repeat(self, stage: Stage, chosen: list[TrialRecord], *counted: Stage) -> Decision | None:
        """The first fresh seed on which a chosen configuration has no trial of these stages."""
        have = {(trial.repeats, trial.seed) for trial in self.record.by_stage(*counted)}
        seeds = ranking.confirm_seeds(self.record, self.spec)
        wanted = ((trial, seed) for trial in chosen for seed in seeds if (trial.number, seed) not in have)
        repeat = next(wanted, None)
        return Decision(stage, repeat[0].params, repeat[1], repeats=repeat[0].number) if repeat else None

    def _rule_picks(self) -> list[TrialRecord]:
        """What the rules pick, where the picks are to run again; known once the search has ended for good."""
        asked = ranking.confirm(self.record, self.spec).rules
        if self._picked is None and asked and not self._any_running("baseline", "search", "replicate"):
            self._picked = picked(self.record, self.spec)
        return self._picked or []

    def _next_ablation(self) -> Decision | None:
        asked = ablation.asked(self.record)
        step = next(ablation.missing(self.record, self.spec, asked), None)
        if asked is None or step is None:
            return None
        repeated, params = asked.repeated(step[0]), asked.params(self.spec, step[0])
        return Decision("ablation", params, step[1], repeats=repeated.number if repeated else None)

    def _next_final(self) -> Decision | None:
        have = {trial.seed for trial in self.record.by_stage("final")}
        seed = next((seed for seed in self.spec.final_seeds or () if seed not in have), None)
        return None if seed is None else Decision("final", {}, seed)

    def _to_test(self) -> list[TrialRecord]:
        """Trials whose configuration is final: final ones, the baseline's repeats, at the end those of the best, of
        the rules' picks and of an ablation."""
        chosen = [ranking.baseline(self.record, self.spec)]
        if not self._any_running("baseline", "search", "replicate", "confirm"):
            chosen.append(ranking.best(self.record, self.spec))
        repeats = [trial for choice in chosen if choice for trial in choice.repeats]
        repeats += [trial for pick in self._rule_picks() for trial in fresh_trials(self.record, pick.number)]
        repeats += ablation.to_test(self.record, self.spec)
        return repeats + [trial for trial in self.record.by_stage("final") if trial.state == "complete"]

    def _any_running(self, *stages: Stage) -> bool:
        return any(trial.state not in ENDED for trial in self.record.by_stage(*stages))


def _finite(metrics: Mapping[str, float]) -> dict[str, float | None]:
    return {key: value if math.isfinite(value) else None for key, value in metrics.items()}
