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
from study.home.events import ENDED_STATES, Event, FailureKind, Stage, StudyOutcome, TrialOutcome
from study.home.ledger import LeaseLostError, Ledger
from study.home.record import (
    MAX_METRIC_MAGNITUDE,
    STOPPED_BY_USER_REASON,
    StudyRecord,
    TrialRecord,
    finite_metrics,
    infinite_metrics_note,
)
from study.ranking import Results, ablation_steps
from study.ranking.rule_picks import fresh_seed_trials
from study.spec import StudySpec
from study.sweep.early_stopping import EarlyStopping
from study.sweep.failures import StudyCannotContinueError, TrialFailure
from study.sweep.search_stage import NextTrial, SearchStage


@dataclass(frozen=True)
class TrialJob:
    """What a worker is to run next: train a trial, or read the test split with a trained one."""

    kind: Literal["train", "test"]
    trial: TrialRecord

    @property
    def needs_model_file(self) -> bool:
        """Whether weights are written (confirm, rule, ablation and final trials) or read (tests)."""
        return self.trial.stage in ("confirm", "rule", "ablation", "final")

    def needs_chosen_weights(self, spec: StudySpec) -> bool:
        """Return whether a trial needs the weights of a chosen epoch: for its model, or for `train.final`."""
        return spec.objective.epoch_window is not None and (self.needs_model_file or bool(spec.train.final))


FoldJoinFunction = Callable[[StudyRecord], Iterable[events.FoldsJoined]]
"""Function that yields events for configurations that have run on all folds since its last call."""


class StagesAfterSearch:
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

    def next_trial(self) -> NextTrial | None:
        """Return the next trial to decide on; None: there is none, as far as is known."""
        return (
            self._next_confirm_trial()
            or next_ablation_trial(self._results)
            or next_final_trial(self._spec, self._record)
        )

    def trials_to_test(self) -> list[TrialRecord]:
        """Return the trials with whose models the test split is to be read.

        These are final ones and the baseline's repeats; at the end also the repeats of the best or the front, those of
        the rules' picks, and an ablation's.
        """
        results = self._results
        chosen = [results.baseline]
        if not self.has_running_trial("baseline", "search", "replicate", "confirm"):
            chosen += results.candidates_to_test
        repeats = [trial for choice in chosen if choice for trial in choice.confirm_trials]
        repeats += [trial for pick in self._rule_picks() for trial in fresh_seed_trials(self._record, pick.number)]
        repeats += ablation_steps.ablation_trials_to_test(results)
        return repeats + [trial for trial in self._record.trials_of_stages("final") if trial.state == "complete"]

    def has_running_trial(self, *stages: Stage) -> bool:
        """Return whether a trial of these stages has not ended, looking at the newest first."""
        newest = (trial for stage in stages for trial in reversed(list(self._record.trials_of_stages(stage))))
        return any(trial.state not in ENDED_STATES for trial in newest)

    def _next_confirm_trial(self) -> NextTrial | None:
        """Return the next repeat: of the baseline (even while the search runs), of the best, of the rules' picks."""
        results = self._results
        best = results.confirmation.trials_to_confirm(top=not self.has_running_trial("baseline", "search", "replicate"))
        return next_fresh_seed_trial(results, "confirm", best, "confirm") or next_fresh_seed_trial(
            results, "rule", self._rule_picks(), "confirm", "rule"
        )

    def _rule_picks(self) -> list[TrialRecord]:
        """Return the rules' picks, where they are to run again; empty until the search has ended for good."""
        results = self._results
        asked = results.confirmation.settings.rules
        if self._picked is None and asked and not self.has_running_trial("baseline", "search", "replicate"):
            self._picked = results.rule_picked_trials
        return self._picked or []


def next_fresh_seed_trial(
    results: Results, stage: Stage, chosen: Iterable[TrialRecord], *counted: Stage
) -> NextTrial | None:
    """Return the first fresh seed that a chosen configuration lacks in the `counted` stages; None: it lacks none."""
    have = {(trial.repeated_trial, trial.seed) for trial in results.record.trials_of_stages(*counted)}
    seeds = results.confirmation.seeds
    wanted = ((trial, seed) for trial in chosen for seed in seeds if (trial.number, seed) not in have)
    found = next(wanted, None)
    if found is None:
        return None
    trial, seed = found
    return NextTrial(stage, trial.params, seed, repeated_trial=trial.number, fold=results.spec.fresh_fold(seed))


def next_ablation_trial(results: Results) -> NextTrial | None:
    """Return the next step of the ablation that was asked for, on one of its seeds; None: there is none."""
    asked = ablation_steps.requested_ablation(results.record)
    step = next(ablation_steps.missing_ablation_trials(results, asked), None)
    if asked is None or step is None:
        return None
    repeated, params = asked.endpoint_trial(step[0]), asked.params_of(results.spec, step[0])
    of = repeated.number if repeated else None
    return NextTrial("ablation", params, step[1], repeated_trial=of, fold=results.spec.fresh_fold(step[1]))


def next_final_trial(spec: StudySpec, record: StudyRecord) -> NextTrial | None:
    """Return the next seed of a final training; None: there is none."""
    have = {trial.seed for trial in record.trials_of_stages("final")}
    seed = next((seed for seed in spec.final_seeds or () if seed not in have), None)
    return None if seed is None else NextTrial("final", {}, seed)


@contextmanager
def _end_study_on_ledger_error(ledger: Ledger) -> Iterator[None]:
    """End the study where the block's use of its ledger fails.

    Raises:
        StudyCannotContinueError: the disk fails or has no room, or another driver has the study.
    """
    try:
        yield
    except (OSError, LeaseLostError) as problem:
        raise StudyCannotContinueError(problem, ledger.path) from problem


__all__ = ["N_ALIKE_FAILURES_TO_STOP", "Agenda", "StudyCannotContinueError", "TrialJob"]

N_ALIKE_FAILURES_TO_STOP = 3
"""A study stops when the first `N_ALIKE_FAILURES_TO_STOP` or more of its trials to end have all failed alike."""


class Agenda:
    """The plan of one study: gives out its jobs, and writes what came of them to the ledger.

    Args:
        spec: the study.
        ledger: open for appending.
        record: what the ledger says so far; kept up to date here.
        rule: early stopping of searched trials; it hears all that the record holds.
        joins: yields events for configurations that have run on all folds; None: there are no folds.

    Attributes:
        stopping: how the study ends where it has to stop; None: it goes on.
        refusal: why no trial of the study can run, where the first one has told that; None: none has.
    """

    def __init__(
        self,
        spec: StudySpec,
        ledger: Ledger,
        record: StudyRecord,
        rule: EarlyStopping,
        joins: FoldJoinFunction | None = None,
    ) -> None:
        self._joins = joins
        self.spec, self.record, self._ledger = spec, record, ledger
        self.stopping: StudyOutcome | None = None
        self.refusal: str | None = None
        self._search, self._later = SearchStage(spec, record, rule), StagesAfterSearch(spec, record)
        self._testing: set[int] = set()  # under way
        self._untestable: set[int] = set()
        self._test_losses: Counter[int] = Counter()
        self._done = False
        self._changed, self._waits = 0, -1  # number of changes but reports; that number when there was nothing to do
        self._end_interrupted_trials()
        # trials that a lost node, a killed process or the end of a driver cut off: they run again, in this order
        self._requeued = deque(
            trial
            for trial in record.trials.values()
            if trial.state not in ENDED_STATES or (trial.stage == "final" and trial.state == "failed")
        )

    def next_job(self) -> TrialJob | Literal["done"] | None:
        """Return the next job; None: wait for one that runs; "done": nothing will follow."""
        if self.stopping:
            return "done"
        if self._waits == self._changed:  # asked after each report, though no report leads to a job
            return "done" if self._done else None
        if trial := self._take_requeued_trial(alone=False):
            return TrialJob("train", trial)
        next_trial = self._search.next_trial()
        if next_trial is None:
            if trial := self._take_requeued_trial(alone=True):
                return TrialJob("train", trial)
            next_trial = self._later.next_trial()
        if next_trial is not None:
            return TrialJob("train", self._add_trial(next_trial))
        for trial in self._later.trials_to_test():
            if not trial.test_metrics and trial.number not in self._testing | self._untestable:
                self._testing.add(trial.number)
                return TrialJob("test", trial)
        self._done = not self._later.has_running_trial(*get_args(Stage)) and not self._testing
        self._waits = self._changed
        return "done" if self._done else None

    def _take_requeued_trial(self, alone: bool) -> TrialRecord | None:
        """Take a trial that is to run again out of the queue; None: there is none.

        One that needs a GPU to itself comes after the rest of the search: as long as shares of a GPU are handed out, it
        would wait for ever.

        Args:
            alone: whether one that needs a GPU to itself.
        """
        for trial in list(self._requeued):
            if trial.needs_gpu_alone == alone:
                self._requeued.remove(trial)
                if trial.state not in ENDED_STATES or trial.stage == "final":
                    return trial
        return None

    @property
    def reached_limit(self) -> str | None:
        """Limit that ended the search; None while it goes on or where there is none."""
        return None if self.spec.final_seeds is not None else self._search.end_reason

    @property
    def outcome(self) -> StudyOutcome:
        """End of the study: stopped, failed (nothing is complete, or a final seed is missing) or complete."""
        trials = list(self.record.trials_of_stages("baseline", "search", "final"))
        finals = [trial.state == "complete" for trial in trials if trial.stage == "final"]
        fine = all(finals) if finals else any(trial.state == "complete" for trial in trials)
        return self.stopping or ("complete" if fine else "failed")

    @property
    def is_over(self) -> bool:
        """Whether the study is stopped, or no job is left or under way.

        Raises:
            StudyCannotContinueError: it is another driver's now.
        """
        with _end_study_on_ledger_error(self._ledger):
            self._ledger.check_lease()
        return self.stopping is not None or self._done

    def record_trial_start(
        self, number: int, node: str, epoch: int = 0, note: str | None = None, device: Mapping[str, str] | None = None
    ) -> bool:
        """Write that a trial begins on a device, or goes on after an epoch; return whether it is to run.

        Args:
            note: why it does not go on after a later epoch.
        """
        trial = self.record.trials[number]
        if trial.state in ENDED_STATES and trial.stage != "final":
            return False  # a replicate, whose first seed ended meanwhile
        self.append_event(events.TrialStarted(number, node, epoch, note, None if device is None else dict(device)))
        return True

    def record_epoch(self, number: int, epoch: int, metrics: Mapping[str, float]) -> bool:
        """Write a trial's epoch; return whether the trial goes on. If not, its end is in the ledger."""
        trial = self.record.trials[number]
        if trial.state != "running" or epoch != trial.n_epochs + 1:
            return trial.state == "running"  # Tune repeats the last result when a trial returns
        self.append_event(events.EpochReported(number, epoch, finite_metrics(metrics), infinite_metrics_note(metrics)))
        if epoch == self.spec.epochs:
            infinite = {name: value for name, value in metrics.items() if abs(value) > MAX_METRIC_MAGNITUDE}
            self._complete_trial(trial, infinite)
        else:
            self._end_if_pruned_or_stopped(trial, self._search.should_prune(trial, epoch))
        return trial.state == "running"

    def record_fold_predictions(self, number: int, predicted: str) -> None:
        """Write the predictions of a trial's network for the samples of its fold."""
        if self.record.trials[number].state == "running":
            self.append_event(events.FoldPredicted(number, predicted))

    def _write_joined_folds(self) -> None:
        """Write the joined metrics of configurations that have run on all folds by now."""
        for joined in self._joins(self.record) if self._joins else ():
            self.append_event(joined)

    def _end_if_pruned_or_stopped(self, trial: TrialRecord, prune: bool) -> None:
        """End a trial before its last epoch if early stopping or a user wants that."""
        if prune:
            self._end_trial(trial, "pruned", self._search.rule.name)
        elif trial.has_reached_stop_epoch:
            self._end_trial(trial, "pruned", STOPPED_BY_USER_REASON)

    def obey_request(self, request: DriverRequest) -> None:
        """Do what a user asks for, or refuse it; the answer is in the ledger. Answer each request once."""
        if request.id in self.record.request_refusals:
            return
        if why := self._search.request_refusal_reason(request) or ("the study is over" if self._done else None):
            self.append_event(events.RequestRefused(request.id, why))
        elif request.kind == "enqueue":
            self.append_event(events.ConfigurationEnqueued(request.id, dict(request.params)))
            self._search.queue_configuration(request.params)
        elif request.kind == "stop":
            self.append_event(events.TrialStopRequested(request.id, request.trial))
        else:
            self.append_event(events.SearchEndRequested(request.id))

    def refuse_request(self, request: str, reason: str) -> None:
        """Refuse what cannot be read as a request, by its id; do nothing if it was answered."""
        if request not in self.record.request_refusals:
            self.append_event(events.RequestRefused(request, reason))

    def record_trial_failure(self, number: int, failure: TrialFailure) -> None:
        """Make a trial that was cut off run again where that can help, else write that it has failed.

        Stop the study, and write nothing, where no trial of it could run, and none has reported an epoch. Do nothing if
        the trial had ended before its worker died.
        """
        trial = self.record.trials[number]
        if trial.state in ENDED_STATES:
            return
        if failure.affects_all_trials and not any(other.reports for other in self.record.trials.values()):
            self.stopping, self.refusal = "interrupted", failure.reason
            return
        if failure.may_run_again(trial, self.spec, before=trial.n_retries_used):
            self._requeued.append(trial)
            alone, node_died = failure.needs_whole_gpu or None, failure.node_died or None
            lost = number, trial.attempt + 1, failure.kind, failure.reason, alone, node_died
            self.append_event(events.RunLost(*lost))
            return
        self._end_trial(trial, "failed", failure.reason, failure.kind)
        trials = self.record.trials_of_stages("baseline", "search", "confirm", "rule", "ablation", "final")
        tried = [other for other in trials if other.state in ENDED_STATES]
        are_alike = all(other.state == "failed" and other.failure_kind == failure.kind for other in tried)
        if are_alike and len(tried) >= N_ALIKE_FAILURES_TO_STOP:
            self.stopping = "failed"

    def record_test_metrics(self, number: int, metrics: Mapping[str, float]) -> None:
        """Write the metrics that a trial's model has on the test split."""
        self._changed += 1
        self._testing.discard(number)
        if not self.record.trials[number].test_metrics:
            self.append_event(events.TrialTested(number, {**finite_metrics(metrics)}, infinite_metrics_note(metrics)))

    def record_test_failure(self, number: int, failure: TrialFailure) -> None:
        """Retry reading the test split with a trial's model where that can help, else write why it cannot be read."""
        trial = self.record.trials[number]
        self._changed += 1
        self._testing.discard(number)
        if failure.may_run_again(trial, self.spec, before=self._test_losses[number]):
            self._test_losses[number] += 1
        else:
            self._untestable.add(number)
            self.append_event(events.TrialUntested(number, failure.reason))

    def _end_interrupted_trials(self) -> None:
        """End the trials whose driver died after their last report, before it wrote their end."""
        for trial in list(self.record.trials.values()):
            if trial.state in ENDED_STATES:
                self._end_replicates(trial)
            elif trial.n_epochs == self.spec.epochs:
                self._complete_trial(trial)
            else:
                self._end_if_pruned_or_stopped(trial, self._search.to_prune.get(trial.number, False))
        self._write_joined_folds()

    def _complete_trial(self, trial: TrialRecord, beyond: Mapping[str, float] | None = None) -> None:
        """End a trial after its last epoch; `beyond`: its metrics that are too large to compute with."""
        validated, needed = not self.spec.train.with_val, self.spec.objective.needed_metrics
        if validated and ranking.mean_score(self.spec.objective, [trial]) is None:
            large = [f"{name} is {value:.4g}" for name, value in (beyond or {}).items() if name in needed]
            allowed = f"the largest that a metric may be is {MAX_METRIC_MAGNITUDE:g}, in size"
            reason = f"{large[0]}: {allowed}" if large else f"{' or '.join(needed)} is not a number"
            self._end_trial(trial, "failed", reason, "DIVERGED")
        else:
            self._end_trial(trial, "complete")
            if trial.stage == "confirm":
                self._write_joined_folds()

    def _end_trial(
        self, trial: TrialRecord, state: TrialOutcome, reason: str | None = None, kind: FailureKind | None = None
    ) -> None:
        self.append_event(events.TrialEnded(trial.number, state, kind, reason))
        self._search.note_ended_trial(trial)
        self._end_replicates(trial)

    def _end_replicates(self, leader: TrialRecord) -> None:
        """End a configuration's other seeds where its first one was pruned or failed."""
        if leader.stage in ("baseline", "search") and leader.state in ("pruned", "failed"):
            for trial in self.record.repeat_trials(leader.number, "replicate"):
                if trial.state not in ENDED_STATES:
                    self._end_trial(trial, "pruned", f"trial {leader.number}, its first seed, was {leader.state}")

    def append_event(self, event: Event) -> None:
        """Write an event; those that are not of a trial, as a fitted reference, the search does not learn of.

        Raises:
            StudyCannotContinueError: the ledger cannot be written.
        """
        with _end_study_on_ledger_error(self._ledger):
            written = self._ledger.append(event)
        self.record.apply(written)
        self._changed += not isinstance(event, events.EpochReported)

    def _add_trial(self, next_trial: NextTrial) -> TrialRecord:
        number, params, enqueued = len(self.record.trials), dict(next_trial.params), next_trial.is_enqueued or None
        of = next_trial.stage, params, next_trial.seed, next_trial.repeated_trial, enqueued, next_trial.fold
        self.append_event(events.TrialDecided(number, *of))
        self._search.note_decided_trial(self.record.trials[number])
        return self.record.trials[number]
