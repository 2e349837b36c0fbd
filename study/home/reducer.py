"""The reduction of a ledger's events, one after the other, to a study's trials and state."""

from dataclasses import dataclass, field
from typing import Literal, assert_never

from study import __version__
from study.errors import UserError
from study.home import events
from study.home.events import Event, GroupSampleCounts, ParamValues, SessionOpened
from study.home.trial_record import EpochMetrics, TrialRecord

HistoryEntry = tuple[Literal["trial", "report", "ended", "enqueued"], int, int, EpochMetrics | None]
"""An event of a trial: kind, trial, the epoch after which it came, and what it reported; for an enqueued configuration
its place among `StudyState.enqueued_configurations` instead of a trial. A report stays when its trial has to run the
epoch again."""


class InvalidLedgerError(UserError):
    """A ledger has an event that this version does not know, knows in another form, or that is out of order."""


@dataclass
class StudyState:
    """A study as its ledger tells it.

    Attributes:
        id: unique to the study, whatever it is called.
        sessions: the `opened` event of each driver that ran it.
        group_sample_counts: samples of each group, empty where they are not known.
        state: new, running, complete, interrupted or failed.
        history: every trial decided on, report and end, and what was enqueued, in the order in which they came: early
            stopping and Optuna depend on it. It leaves out what a trial did before it was to run again because it had
            failed.
        extended_n_configurations: the number of configurations that the search was extended to, None if it was not.
        placement: keys of `resources`, and `search.concurrency`, with which the last driver replaced the file's.
        confirm_request: `top`, `seeds`, `rules` of what was to be confirmed later, None: those of the study file.
        ablation_request: the ablation that was asked for last, None: nobody asked; see `study.ranking.ablation_steps`.
        joined_folds: by trial, the metrics of its configuration on the samples of all folds together.
        ensemble: the networks of a final training's seeds as one model; None before two of them are complete.
        enqueued_configurations, has_search_end_request: the configurations that users asked for while it ran, in order;
            whether one ended the search.
        request_refusals: the ids of answered requests (`study.home.driver_requests`), each with why it was refused.
        unusable_nodes: the nodes on which the last driver placed no more trials, each with why and the remedy.
        reference_events: the newest event of each, by name.
        n_test_evaluations: how often a trained model was evaluated on the test split afterwards.
        search_ended_by: which limit had ended the search when the last driver closed it: trials, time, gpu_hours.
        total_driver_seconds, total_trial_seconds: seconds that drivers were at work, and that processes ran trials, all
            together, without those in which the machine slept.
        total_start_seconds: of these of drivers, those before the first trial of a session began.
    """

    id: str = ""
    trials: dict[int, TrialRecord] = field(default_factory=dict)
    sessions: list[SessionOpened] = field(default_factory=list)
    group_sample_counts: GroupSampleCounts = field(default_factory=GroupSampleCounts)
    state: str = "new"
    history: list[HistoryEntry] = field(default_factory=list)
    extended_n_configurations: int | None = None
    placement: ParamValues = field(default_factory=dict)
    confirm_request: tuple[int, int, bool] | None = None
    ablation_request: events.AblationRequested | None = None
    joined_folds: dict[int, events.FoldsJoined] = field(default_factory=dict)
    ensemble: events.EnsembleMeasured | None = None
    enqueued_configurations: list[ParamValues] = field(default_factory=list)
    has_search_end_request: bool = False
    request_refusals: dict[str, str | None] = field(default_factory=dict)
    unusable_nodes: dict[str, str] = field(default_factory=dict)
    reference_events: dict[str, events.ReferenceFitted] = field(default_factory=dict)
    n_test_evaluations: int = 0
    search_ended_by: str | None = None
    total_driver_seconds: float = 0.0
    total_trial_seconds: float = 0.0
    total_start_seconds: float = 0.0
    _is_before_first_trial: bool = False
    _run_seconds: list[tuple[ParamValues, float]] = field(default_factory=list)
    _last_event_time: float = 0.0
    _repeats_by_trial: dict[int, list[int]] = field(default_factory=dict)
    _trials_by_stage: dict[str, list[TrialRecord]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def apply(self, event: Event) -> None:
        """Apply one event.

        Raises:
            InvalidLedgerError: it cannot follow those before it.
        """
        if not self.id and not isinstance(event, events.StudyCreated):
            raise self._inconsistent_event_error(event.event, "a study is created once, by its first event")
        is_closed = isinstance(event, events.SessionClosed)
        if self.state == "running" and not is_closed:  # the next driver writes `SessionClosed` for a dead one, later
            passed = event.time - self._last_event_time
            worked = max(0.0, passed - event.asleep)
            self.total_driver_seconds += worked
            self.total_start_seconds += worked * self._is_before_first_trial
            self._last_event_time = event.time
            asleep = event.asleep + min(0.0, passed)  # less than nothing where the clock was set back
            for trial in self.trials.values() if asleep else ():
                trial.seconds_asleep += asleep if trial.state == "running" else 0.0
        match event:
            case events.EpochReported():  # first, as nearly all are
                self._apply_epoch_report(event)
            case events.TrialStarted():
                self._apply_trial_started(event)
            case events.TrialEnded():
                self._apply_trial_ended(event)
            case events.TrialDecided():
                self._apply_trial_decided(event)
            case events.RunLost():
                self._apply_run_lost(event)
            case events.StudyCreated():
                if self.id:
                    raise self._inconsistent_event_error("created", "a study is created once, by its first event")
                self.id = event.id
            case events.SessionOpened():
                self._apply_session_opened(event)
            case events.SearchExtended():
                self.extended_n_configurations, self.search_ended_by = event.trials, None
                self.has_search_end_request, self.state = False, "interrupted"
            case events.TrialsRetried():
                self._apply_trials_retried(event)
            case events.ConfirmRequested():
                self.confirm_request, self.state = (event.top, event.seeds, event.rules), "interrupted"
            case events.AblationRequested():
                self._trials_of_event(event, event.trial)
                self.ablation_request, self.state = event, "interrupted"
            case events.ModelEvaluated():
                self.n_test_evaluations += event.split == "test"
            case events.NodeExcluded():
                self.unusable_nodes[event.node] = event.reason
            case events.TrialTested():
                (trial,) = self._trials_of_event(event, event.trial)
                trial.test_metrics, trial.test_failure = event.metrics, None
            case events.FoldPredicted():
                self._trials_of_event(event, event.trial)[0].fold_predictions = event.predicted
            case events.FoldsJoined():
                self._trials_of_event(event, event.trial, *event.runs)
                self.joined_folds[event.trial] = event
            case events.EnsembleMeasured():
                self._trials_of_event(event, *event.trials)
                self.ensemble = event
            case events.TrialUntested():
                self._trials_of_event(event, event.trial)[0].test_failure = event.reason
            case events.ReferenceFitted():
                self.reference_events[event.name] = event
            case events.ConfigurationEnqueued():
                self.request_refusals[event.request] = None
                self.history.append(("enqueued", len(self.enqueued_configurations), 0, None))
                self.enqueued_configurations.append(event.params)
            case events.TrialStopRequested():
                (trial,) = self._trials_of_event(event, event.trial)
                self.request_refusals[event.request], trial.stop_epoch = None, trial.n_epochs + 1
            case events.SearchEndRequested():
                self.request_refusals[event.request], self.has_search_end_request = None, True
            case events.RequestRefused():
                self.request_refusals[event.request] = event.reason
            case events.SessionClosed():
                self._apply_session_closed(event)
            case _:
                assert_never(event)

    def _trials_of_event(self, event: Event, *numbers: int) -> list[TrialRecord]:
        """Return the trials of an event; raise InvalidLedgerError where one was not decided on."""
        try:
            return [self.trials[number] for number in numbers]
        except KeyError as unknown:
            raise self._inconsistent_event_error(event.event, f"there is no trial {unknown} yet") from None

    def _inconsistent_event_error(self, kind: str, fault: str) -> InvalidLedgerError:
        return self._unknown_event_error(f"{kind!r} that study {__version__} cannot read: {fault}")

    def _unknown_event_error(self, what: str) -> InvalidLedgerError:
        wrote = f"study {self.sessions[-1].version or ''}".strip() if self.sessions else "a newer study"
        return InvalidLedgerError(f"has an event {what}. Use what wrote it: {wrote}")

    def _apply_session_opened(self, event: events.SessionOpened) -> None:
        if event.groups:
            self.group_sample_counts = GroupSampleCounts.from_sizes(event.groups)
        self.placement = event.placement or {}
        self.sessions.append(event)
        self._is_before_first_trial = True
        self.state, self._last_event_time, self.unusable_nodes = "running", event.time, {}

    def _apply_trials_retried(self, event: events.TrialsRetried) -> None:
        """Make trials run anew; the search knows no more of them than that they were decided on."""
        trials = self._trials_of_event(event, *event.trials)
        if odd := [trial for trial in trials if trial.state not in ("failed", "pruned")]:
            raise self._inconsistent_event_error("retried", f"trial {odd[0].number} is {odd[0].state}")
        again = {trial.number for trial in trials}
        self.history = [one for one in self.history if one[0] in ("trial", "enqueued") or one[1] not in again]
        for trial in trials:
            trial.restart()
        self.state = "interrupted"

    def _apply_trial_decided(self, event: events.TrialDecided) -> None:
        number, repeats = event.trial, event.repeats
        if number in self.trials:
            raise self._inconsistent_event_error("trial", f"trial {number} was decided on before")
        if repeats is not None and repeats not in self.trials:
            raise self._inconsistent_event_error("trial", f"there is no trial {repeats} to repeat")
        trial = TrialRecord(number, event.stage, event.params, event.seed, repeats, bool(event.enqueued), event.fold)
        self.trials[number] = trial
        self._trials_by_stage.setdefault(event.stage, []).append(trial)
        if repeats is not None:
            self._repeats_by_trial.setdefault(repeats, []).append(number)
        self.history.append(("trial", number, 0, None))

    def _apply_trial_started(self, event: events.TrialStarted) -> None:
        (trial,) = self._trials_of_event(event, event.trial)
        self._is_before_first_trial = False
        trial.state, trial.node, trial.started_at = "running", event.node, event.time
        trial.device, trial.seconds_asleep = event.device or {}, 0.0
        trial.reason = trial.failure_kind = trial.ended_at = trial.session_ended_at = None
        del trial.reports[event.epoch or 0 :]  # a trial that runs again goes on from its checkpoint

    def _apply_run_lost(self, event: events.RunLost) -> None:
        (trial,) = self._trials_of_event(event, event.trial)
        self._stop_trial_clock(trial, event.time)
        trial.state, trial.attempt = "waiting", event.attempt
        trial.needs_gpu_alone = trial.needs_gpu_alone if event.alone is None else event.alone
        trial.n_retries_used += not event.node_died

    def _apply_epoch_report(self, event: events.EpochReported) -> None:
        trial = self.trials.get(event.trial)
        if trial is None:
            raise self._inconsistent_event_error("report", f"there is no trial {event.trial} yet")
        if event.epoch != trial.n_epochs + 1:
            raise self._inconsistent_event_error("report", f"epoch {event.epoch} follows epoch {trial.n_epochs}")
        try:
            epoch = EpochMetrics(event.epoch, event.metrics)
        except (TypeError, OverflowError):
            raise self._inconsistent_event_error("report", "its metrics are not all numbers") from None
        trial.reports.append(epoch)
        self.history.append(("report", event.trial, event.epoch, epoch))

    def _apply_trial_ended(self, event: events.TrialEnded) -> None:
        (trial,) = self._trials_of_event(event, event.trial)
        self._stop_trial_clock(trial, event.time)
        trial.state, trial.reason, trial.failure_kind = event.state, event.reason, event.kind
        trial.ended_at = event.time if trial.session_ended_at is None else trial.session_ended_at
        self.history.append(("ended", trial.number, trial.n_epochs, None))

    def _apply_session_closed(self, event: events.SessionClosed) -> None:
        self.state, self.search_ended_by = event.state, event.enough
        for trial in self.trials.values():
            self._stop_trial_clock(trial, self._last_event_time)
            if trial.state == "running":
                trial.state, trial.session_ended_at = "interrupted", self._last_event_time

    def _stop_trial_clock(self, trial: TrialRecord, now: float) -> None:
        if trial.state == "running" and trial.started_at is not None:
            self.total_trial_seconds += (ran := max(0.0, now - trial.started_at - trial.seconds_asleep))
            self._run_seconds.append((self.placement, ran))
