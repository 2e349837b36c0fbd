"""The jobs of a study: which runs next, and what came of each; the ledger is its memory.

A study runs in stages: the baseline and the search; then the best configurations again on fresh seeds (confirm) and,
where that is asked for, what other selection rules would have picked (rule) and the steps from the baseline to the best
(ablation); then the test split, read only for what was chosen (of several metrics the front), for the baseline, and for
these picks and steps. A final training has one stage, its seeds, and reads the test split for each.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, get_args

from study import ranking
from study.home import events
from study.home.driver_requests import DriverRequest
from study.home.events import ENDED, End, Event, Kind, Outcome, Stage
from study.home.ledger import LeaseLostError, Ledger
from study.home.record import BY_HAND, LARGEST, StudyRecord, TrialRecord, finite, infinite
from study.ranking import Results, ablation_steps
from study.ranking.picks import fresh_trials
from study.spec import StudySpec
from study.sweep.early_stopping import EarlyStopping
from study.sweep.failures import Failure, StudyCannotContinueError
from study.sweep.search_stage import Decision, SearchStage


@dataclass(frozen=True)
class Job:
    """What a worker is to run next: train a trial, or read the test split with a trained one."""

    kind: Literal["train", "test"]
    trial: TrialRecord

    @property
    def needs_model_file(self) -> bool:
        """Whether weights are written (confirm, rule, ablation and final trials) or read (tests)."""
        return self.trial.stage in ("confirm", "rule", "ablation", "final")

    def needs_chosen_weights(self, spec: StudySpec) -> bool:
        """Return whether a trial needs the weights of a chosen epoch: for its model, or for `train.final`."""
        return spec.objective.window is not None and (self.needs_model_file or bool(spec.train.final))


NewJoined = Callable[[StudyRecord], Iterable[events.Joined]]
"""Function that yields events for configurations that have run on all folds since its last call."""


class LaterStages:
    """Planner of what follows the search: repeats, rules' picks, ablation, final seeds, and the trials to test.

    It changes neither ledger nor record.
    """

    def __init__(self, spec: StudySpec, record: StudyRecord) -> None:
        self._spec, self._record = spec, record
        self._picked: list[TrialRecord] | None = None

    @property
    def _results(self) -> Results:
        """Results of the study so far, made anew as its record grows."""
        return Results(self._spec, self._record)

    def next(self) -> Decision | None:
        """Return the next trial to decide on; None: there is none, as far as is known."""
        return self._next_confirm() or ablation_step(self._results) or final_seed(self._spec, self._record)

    def to_test(self) -> list[TrialRecord]:
        """Return the trials with whose models the test split is to be read.

        These are final ones and the baseline's repeats; at the end also the repeats of the best or the front, those of
        the rules' picks, and an ablation's.
        """
        results = self._results
        chosen = [results.baseline]
        if not self.under_way("baseline", "search", "replicate", "confirm"):
            chosen += results.tested
        repeats = [trial for choice in chosen if choice for trial in choice.repeats]
        repeats += [trial for pick in self._rule_picks() for trial in fresh_trials(self._record, pick.number)]
        repeats += ablation_steps.to_test(results)
        return repeats + [trial for trial in self._record.by_stage("final") if trial.state == "complete"]

    def under_way(self, *stages: Stage) -> bool:
        """Return whether a trial of these stages has not ended, looking at the newest first."""
        newest = (trial for stage in stages for trial in reversed(list(self._record.by_stage(stage))))
        return any(trial.state not in ENDED for trial in newest)

    def _next_confirm(self) -> Decision | None:
        """Return the next repeat: of the baseline (even while the search runs), of the best, of the rules' picks."""
        results = self._results
        best = results.to_confirm(top=not self.under_way("baseline", "search", "replicate"))
        return repeat(results, "confirm", best, "confirm") or repeat(
            results, "rule", self._rule_picks(), "confirm", "rule"
        )

    def _rule_picks(self) -> list[TrialRecord]:
        """Return the rules' picks, where they are to run again; empty until the search has ended for good."""
        results = self._results
        asked = results.confirm.rules
        if self._picked is None and asked and not self.under_way("baseline", "search", "replicate"):
            self._picked = results.picked
        return self._picked or []


def repeat(results: Results, stage: Stage, chosen: Iterable[TrialRecord], *counted: Stage) -> Decision | None:
    """Return the first fresh seed that a chosen configuration lacks in the `counted` stages; None: it lacks none."""
    have = {(trial.repeats, trial.seed) for trial in results.record.by_stage(*counted)}
    seeds = results.confirm_seeds
    wanted = ((trial, seed) for trial in chosen for seed in seeds if (trial.number, seed) not in have)
    found = next(wanted, None)
    if found is None:
        return None
    trial, seed = found
    return Decision(stage, trial.params, seed, repeats=trial.number, fold=results.spec.fresh_fold(seed))


def ablation_step(results: Results) -> Decision | None:
    """Return the next step of the ablation that was asked for, on one of its seeds; None: there is none."""
    asked = ablation_steps.asked(results.record)
    step = next(ablation_steps.missing(results, asked), None)
    if asked is None or step is None:
        return None
    repeated, params = asked.repeated(step[0]), asked.params(results.spec, step[0])
    of = repeated.number if repeated else None
    return Decision("ablation", params, step[1], repeats=of, fold=results.spec.fresh_fold(step[1]))


def final_seed(spec: StudySpec, record: StudyRecord) -> Decision | None:
    """Return the next seed of a final training; None: there is none."""
    have = {trial.seed for trial in record.by_stage("final")}
    seed = next((seed for seed in spec.final_seeds or () if seed not in have), None)
    return None if seed is None else Decision("final", {}, seed)


class StoppingLedger:
    """A study's ledger, where a failure ends the study.

    Each method raises `StudyCannotContinueError` where the disk fails or has no room, or another driver has the study.

    Args:
        ledger: open for appending.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def append(self, event: Event) -> Event:
        """Append an event, see `Ledger.append`."""
        with self._ends_the_study():
            return self._ledger.append(event)

    def check(self) -> None:
        """Check that this driver still has the study, see `Ledger.check`."""
        with self._ends_the_study():
            self._ledger.check()

    @contextmanager
    def _ends_the_study(self) -> Iterator[None]:
        try:
            yield
        except (OSError, LeaseLostError) as problem:
            raise StudyCannotContinueError(problem, self._ledger.path) from problem


__all__ = ["HOPELESS", "Agenda", "Job", "StudyCannotContinueError"]

HOPELESS = 3
"""A study stops when the first `HOPELESS` or more of its trials to end have all failed in the same way."""


class Agenda:
    """The plan of one study: gives out its jobs, and writes what came of them to the ledger.

    Args:
        spec: the study.
        ledger: open for appending.
        record: what the ledger says so far; kept up to date here.
        rule: early stopping of searched trials; it hears all that the record holds.
        joins: yields events for configurations that have run on all folds; None: there are no folds.
    """

    def __init__(
        self, spec: StudySpec, ledger: Ledger, record: StudyRecord, rule: EarlyStopping, joins: NewJoined | None = None
    ) -> None:
        self._joins = joins
        self.spec, self.record, self.journal = spec, record, StoppingLedger(ledger)
        self.stopping: Outcome | None = None
        self._search, self._later = SearchStage(spec, record, rule), LaterStages(spec, record)
        self._testing: set[int] = set()  # under way
        self._untestable: set[int] = set()
        self._test_losses: Counter[int] = Counter()
        self._done = False
        self._changed, self._waits = 0, -1  # number of changes but reports; that number when there was nothing to do
        self._finish_what_was_cut_off()
        self._unfinished = deque(
            trial
            for trial in record.trials.values()
            if trial.state not in ENDED or (trial.stage == "final" and trial.state == "failed")
        )

    def next(self) -> Job | Literal["done"] | None:
        """Return the next job; None: wait for one that runs; "done": nothing will follow."""
        if self.stopping:
            return "done"
        if self._waits == self._changed:  # asked after each report, though no report leads to a job
            return "done" if self._done else None
        if trial := self._next_unfinished(alone=False):
            return Job("train", trial)
        decision = self._search.next()
        if decision is None:
            if trial := self._next_unfinished(alone=True):
                return Job("train", trial)
            decision = self._later.next()
        if decision is not None:
            return Job("train", self._decide(decision))
        for trial in self._later.to_test():
            if trial is not self.record.trials[trial.number]:
                continue  # its state before it was extended, whose weights will change
            if not trial.tested and trial.number not in self._testing | self._untestable:
                self._testing.add(trial.number)
                return Job("test", trial)
        self._done = not self._later.under_way(*get_args(Stage)) and not self._testing
        self._waits = self._changed
        return "done" if self._done else None

    @property
    def enough(self) -> str | None:
        """Limit that ended the search; None while it goes on or where there is none."""
        return None if self.spec.final_seeds is not None else self._search.over

    @property
    def outcome(self) -> Outcome:
        """End of the study: stopped, failed (nothing is complete, or a final seed is missing) or complete."""
        trials = list(self.record.by_stage("baseline", "search", "final"))
        finals = [trial.state == "complete" for trial in trials if trial.stage == "final"]
        fine = all(finals) if finals else any(each.state == "complete" for trial in trials for each in trial.versions)
        return self.stopping or ("complete" if fine else "failed")

    @property
    def is_over(self) -> bool:
        """Whether the study is stopped, or no job is left or under way.

        Raises:
            StudyCannotContinueError: it is another driver's now.
        """
        self.journal.check()
        return self.stopping is not None or self._done

    def started(
        self,
        number: int,
        node: str,
        epoch: int = 0,
        note: str | None = None,
        device: Mapping[str, str] | None = None,
    ) -> bool:
        """Write that a trial begins on a device, or goes on after an epoch; return whether it is to run.

        Args:
            note: why it does not go on after a later epoch.
        """
        trial = self.record.trials[number]
        if trial.state in ENDED and trial.stage != "final":
            return False  # a replicate, whose first seed ended meanwhile
        self._write(events.Started(number, node, epoch, note, None if device is None else dict(device)))
        return True

    def unusable(self, node: str, reason: str) -> None:
        """Write that no more trials are placed on a node; `reason`: why, and the remedy."""
        self._write(events.Unusable(node, reason))

    def reported(self, number: int, epoch: int, metrics: Mapping[str, float]) -> bool:
        """Write a trial's epoch; return whether the trial goes on. If not, its end is in the ledger."""
        trial = self.record.trials[number]
        if trial.state != "running" or epoch != trial.epochs + 1:
            return trial.state == "running"  # Tune repeats the last result when a trial returns
        self._write(events.Report(number, epoch, finite(metrics), infinite(metrics)))
        if epoch == trial.total(self.spec.epochs):
            self._complete(trial, {name: value for name, value in metrics.items() if abs(value) > LARGEST})
        else:
            self._follow(trial, self._search.should_prune(trial, epoch))
        return trial.state == "running"

    def judged(self, number: int, predicted: str) -> None:
        """Write the predictions of a trial's network for the samples of its fold."""
        if self.record.trials[number].state == "running":
            self._write(events.Judged(number, predicted))

    def _join(self) -> None:
        """Write the joined metrics of configurations that have run on all folds by now."""
        for joined in self._joins(self.record) if self._joins else ():
            self._write(joined)

    def _follow(self, trial: TrialRecord, prune: bool) -> None:
        """End a trial before its last epoch if early stopping or a user wants that."""
        if prune:
            self._end(trial, "pruned", self._search.rule.name)
        elif trial.is_stopped:
            self._end(trial, "pruned", BY_HAND)

    def obey(self, request: DriverRequest) -> None:
        """Do what a user asks for, or refuse it; the answer is in the ledger. Answer each request once."""
        if request.id in self.record.requests:
            return
        if why := self._search.refuses(request) or ("the study is over" if self._done else None):
            self._write(events.Refused(request.id, why))
        elif request.kind == "enqueue":
            self._write(events.Enqueued(request.id, dict(request.params)))
            self._search.enqueued(request.params)
        elif request.kind == "stop":
            self._write(events.Stopping(request.id, request.trial))
        else:
            self._write(events.Ending(request.id))

    def refuse(self, request: str, reason: str) -> None:
        """Refuse what cannot be read as a request, by its id; do nothing if it was answered."""
        if request not in self.record.requests:
            self._write(events.Refused(request, reason))

    def failed(self, number: int, failure: Failure) -> None:
        """Make a trial that was cut off run again where that can help, else write that it has failed.

        Do nothing if it had ended before its worker died.
        """
        trial = self.record.trials[number]
        if trial.state in ENDED:
            return
        if failure.may_run_again(trial, self.spec, before=trial.losses):
            alone, node_died = failure.alone or None, failure.node_died or None
            self._write(events.Lost(number, trial.attempt + 1, failure.kind, failure.reason, alone, node_died))
            self._unfinished.append(trial)
            return
        self._end(trial, "failed", failure.reason, failure.kind)
        trials = self.record.by_stage("baseline", "search", "confirm", "rule", "ablation", "final")
        tried = [other for other in trials if other.state in ENDED or other.is_extended]
        if len(tried) >= HOPELESS and all(
            other.searched.state == "failed" and other.kind == failure.kind for other in tried
        ):
            self.stopping = "failed"

    def tested(self, number: int, metrics: Mapping[str, float]) -> None:
        """Write the metrics that a trial's model has on the test split."""
        self._changed += 1
        self._testing.discard(number)
        if not self.record.trials[number].tested:
            self._write(events.SplitTested(number, {**finite(metrics)}, infinite(metrics)))

    def referenced(self, event: events.Referenced) -> None:
        """Write that a reference was fitted, or could not be; the search does not learn of it."""
        self._write(event)

    def untested(self, number: int, failure: Failure) -> None:
        """Retry reading the test split with a trial's model where that can help, else write why it cannot be read."""
        trial = self.record.trials[number]
        self._changed += 1
        self._testing.discard(number)
        if failure.may_run_again(trial, self.spec, before=self._test_losses[number]):
            self._test_losses[number] += 1
        else:
            self._untestable.add(number)
            self._write(events.Untested(number, failure.reason))

    def _finish_what_was_cut_off(self) -> None:
        """End the trials whose driver died after their last report, before it wrote their end."""
        for trial in list(self.record.trials.values()):
            if trial.state in ENDED:
                self._end_replicates(trial)
            elif trial.epochs == trial.total(self.spec.epochs):
                self._complete(trial)
            else:
                self._follow(trial, not trial.until and self._search.to_prune.get(trial.number, False))
        self._join()

    def _complete(self, trial: TrialRecord, beyond: Mapping[str, float] | None = None) -> None:
        """End a trial after its last epoch; `beyond`: its metrics that are too large to compute with."""
        validated, needed = not self.spec.train.with_val, self.spec.objective.needed
        if validated and ranking.mean_score(self.spec.objective, [trial]) is None:
            large = [f"{name} is {value:.4g}" for name, value in (beyond or {}).items() if name in needed]
            allowed = f"the largest that a metric may be is {LARGEST:g}, in size"
            reason = f"{large[0]}: {allowed}" if large else f"{' or '.join(needed)} is not a number"
            self._end(trial, "failed", reason, "DIVERGED")
        else:
            self._end(trial, "complete")
            if trial.stage == "confirm":
                self._join()

    def _end(self, trial: TrialRecord, state: End, reason: str | None = None, kind: Kind | None = None) -> None:
        self._write(events.Ended(trial.number, state, kind, reason))
        self._search.ended(trial)
        self._end_replicates(trial)

    def _end_replicates(self, leader: TrialRecord) -> None:
        """End a configuration's other seeds where its first one was pruned or failed."""
        if leader.stage in ("baseline", "search") and leader.state in ("pruned", "failed"):
            for trial in self.record.repeats_of(leader.number, "replicate"):
                if trial.state not in ENDED:
                    self._end(trial, "pruned", f"trial {leader.number}, its first seed, was {leader.state}")

    def _write(self, event: Event) -> None:
        self.record.apply(self.journal.append(event))
        self._changed += not isinstance(event, events.Report)

    def _next_unfinished(self, alone: bool) -> TrialRecord | None:
        """Return a trial that is to run again; None: there is none.

        One that needs a GPU to itself comes after the rest of the search: as long as shares of a GPU are handed out, it
        would wait for ever.
        """
        for trial in list(self._unfinished):
            if trial.alone == alone:
                self._unfinished.remove(trial)
                if trial.state not in ENDED or trial.stage == "final":
                    return trial
        return None

    def _decide(self, decision: Decision) -> TrialRecord:
        number, params, enqueued = len(self.record.trials), dict(decision.params), decision.enqueued or None
        of = decision.stage, params, decision.seed, decision.repeats, enqueued, decision.fold
        self._write(events.Decided(number, *of))
        self._search.decided(self.record.trials[number])
        return self.record.trials[number]
