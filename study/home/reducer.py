"""The reduction of a ledger's events, one after the other, to a study's trials and state."""

from dataclasses import dataclass, field
from typing import Literal, assert_never

from study import __version__
from study.errors import UserError
from study.home import events
from study.home.events import Event, Groups, Opened, Params
from study.home.trial_record import Epoch, Stretch, TrialRecord

Happening = tuple[Literal["trial", "report", "ended", "enqueued"], int, int, Epoch | None]
"""An event of a trial: kind, trial, the epoch after which it came, and what it reported; for an enqueued configuration
its place among `StudyState.enqueued` instead of a trial. A report stays when its trial has to run the epoch again."""


class InvalidLedgerError(UserError):
    """A ledger has an event that this version does not know, knows in another form, or that is out of order."""


@dataclass
class StudyState:
    """A study as its ledger tells it.

    Attributes:
        id: unique to the study, whatever it is called.
        sessions: the `opened` event of each driver that ran it.
        groups: samples of each group, empty where they are not known.
        state: new, running, complete, interrupted or failed.
        story: every trial decided on, report and end, and what was enqueued, in the order in which they came: early
            stopping and Optuna depend on it. It leaves out what a trial did once it was extended, and what it did
            before it was to run again because it had failed.
        extended: the number of configurations that the search was extended to, None if it was not.
        lengthened: the extensions of trials beyond their last epoch, in order.
        placement: keys of `resources`, and `search.concurrency`, with which the last driver replaced the file's.
        confirming: `top`, `seeds`, `rules` of what was to be confirmed later, None: those of the study file.
        ablating: the ablation that was asked for last, None: nobody asked; see `study.ranking.ablation_steps`.
        joined: by trial, the metrics of its configuration on the samples of all folds together.
        enqueued, ending: the configurations that users asked for while it ran, in order; whether one ended the search.
        requests: the ids of answered requests (`study.home.driver_requests`), each with why it was refused.
        unusable: the nodes on which the last driver placed no more trials, each with why and the remedy.
        references: the newest event of each, by name.
        evaluations: how often a trained model was evaluated on the test split afterwards.
        enough: which limit had ended the search when the last driver closed it: trials, time, gpu_hours, plateau ...
        worked, busy: seconds that drivers were at work, and that processes ran trials, all together, without those in
            which the machine slept.
    """

    id: str = ""
    trials: dict[int, TrialRecord] = field(default_factory=dict)
    sessions: list[Opened] = field(default_factory=list)
    groups: Groups = field(default_factory=Groups)
    state: str = "new"
    story: list[Happening] = field(default_factory=list)
    extended: int | None = None
    lengthened: list[events.TrialsLengthened] = field(default_factory=list)
    placement: Params = field(default_factory=dict)
    confirming: tuple[int, int, bool] | None = None
    ablating: events.Ablating | None = None
    joined: dict[int, events.Joined] = field(default_factory=dict)
    enqueued: list[Params] = field(default_factory=list)
    ending: bool = False
    requests: dict[str, str | None] = field(default_factory=dict)
    unusable: dict[str, str] = field(default_factory=dict)
    references: dict[str, events.Referenced] = field(default_factory=dict)
    evaluations: int = 0
    enough: str | None = None
    worked: float = 0.0
    busy: float = 0.0
    _busy: list[tuple[Params, float]] = field(default_factory=list)
    _last: float = 0.0
    _repeats: dict[int, list[int]] = field(default_factory=dict)
    _stages: dict[str, list[TrialRecord]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def apply(self, event: Event) -> None:
        """Apply one event.

        Raises:
            InvalidLedgerError: it cannot follow those before it.
        """
        if not self.id and not isinstance(event, events.Created):
            raise self._unreadable(event.event, "a study is created once, by its first event")
        is_closed = isinstance(event, events.Closed)
        if self.state == "running" and not is_closed:  # the next driver writes `Closed` for a dead one, later
            self.worked += max(0.0, event.time - self._last - event.asleep)
            self._last = event.time
            for trial in self.trials.values() if event.asleep else ():
                trial.now.asleep += event.asleep if trial.state == "running" else 0.0
        match event:
            case events.Report():  # first, as nearly all are
                self._report(event)
            case events.Started():
                self._started(event)
            case events.Ended():
                self._ended(event)
            case events.Decided():
                self._decided(event)
            case events.Lost():
                self._lost(event)
            case events.Created():
                if self.id:
                    raise self._unreadable("created", "a study is created once, by its first event")
                self.id = event.id
            case events.Opened():
                self._opened(event)
            case events.SearchExtended():
                self.extended, self.enough, self.ending, self.state = event.trials, None, False, "interrupted"
            case events.TrialsLengthened():
                self.lengthened.append(event)
                for trial in self._known(event, *event.trials):
                    trial.stretches.append(trial.now.lengthened(event.epochs))
                self.state = "interrupted"
            case events.Retried():
                self._retried(event)
            case events.Confirming():
                self.confirming, self.state = (event.top, event.seeds, event.rules), "interrupted"
            case events.Ablating():
                self._known(event, event.trial)
                self.ablating, self.state = event, "interrupted"
            case events.Evaluated():
                self.evaluations += event.split == "test"
            case events.Unusable():
                self.unusable[event.node] = event.reason
            case events.SplitTested():
                stretch = self._known(event, event.trial)[0].now
                stretch.tested, stretch.untested = event.metrics, None
            case events.Judged():
                self._known(event, event.trial)[0].now.predicted = event.predicted
            case events.Joined():
                self._known(event, event.trial, *event.runs)
                self.joined[event.trial] = event
            case events.Untested():
                self._known(event, event.trial)[0].now.untested = event.reason
            case events.Referenced():
                self.references[event.name] = event
            case events.Enqueued():
                self.requests[event.request] = None
                self.story.append(("enqueued", len(self.enqueued), 0, None))
                self.enqueued.append(event.params)
            case events.Stopping():
                (trial,) = self._known(event, event.trial)
                self.requests[event.request], trial.now.stops_at = None, trial.epochs + 1
            case events.Ending():
                self.requests[event.request], self.ending = None, True
            case events.Refused():
                self.requests[event.request] = event.reason
            case events.Closed():
                self._closed(event)
            case _:
                assert_never(event)

    def _known(self, event: Event, *numbers: int) -> list[TrialRecord]:
        """Return the trials of an event; raise InvalidLedgerError where one was not decided on."""
        try:
            return [self.trials[number] for number in numbers]
        except KeyError as unknown:
            raise self._unreadable(event.event, f"there is no trial {unknown} yet") from None

    def _unreadable(self, kind: str, fault: str) -> InvalidLedgerError:
        return self._foreign(f"{kind!r} that study {__version__} cannot read: {fault}")

    def _foreign(self, what: str) -> InvalidLedgerError:
        wrote = f"study {self.sessions[-1].version or ''}".strip() if self.sessions else "a newer study"
        return InvalidLedgerError(f"has an event {what}. Use what wrote it: {wrote}")

    def _opened(self, event: events.Opened) -> None:
        self.groups = Groups.of(event.groups) if event.groups else self.groups
        self.placement = event.placement or {}
        self.sessions.append(event)
        self.state, self._last, self.unusable = "running", event.time, {}

    def _retried(self, event: events.Retried) -> None:
        """Make trials run anew; the search knows no more of them than that they were decided on."""
        trials = self._known(event, *event.trials)
        if odd := [trial for trial in trials if trial.state not in ("failed", "pruned")]:
            raise self._unreadable("retried", f"trial {odd[0].number} is {odd[0].state}")
        again = {trial.number for trial in trials if not trial.is_extended}
        self.story = [one for one in self.story if one[0] in ("trial", "enqueued") or one[1] not in again]
        for trial in trials:
            trial.stretches[-1] = trial.now.anew()
        self.state = "interrupted"

    def _decided(self, event: events.Decided) -> None:
        number, repeats = event.trial, event.repeats
        if number in self.trials:
            raise self._unreadable("trial", f"trial {number} was decided on before")
        if repeats is not None and repeats not in self.trials:
            raise self._unreadable("trial", f"there is no trial {repeats} to repeat")
        like = self.ablating.trial if event.stage == "ablation" and self.ablating else repeats
        first = Stretch(None if like is None else self.trials[like].until)
        enqueued = bool(event.enqueued)
        trial = TrialRecord(number, event.stage, event.params, event.seed, repeats, enqueued, event.fold, [first])
        self.trials[number] = trial
        self._stages.setdefault(event.stage, []).append(trial)
        if repeats is not None:
            self._repeats.setdefault(repeats, []).append(number)
        self.story.append(("trial", number, 0, None))

    def _started(self, event: events.Started) -> None:
        stretch = self._known(event, event.trial)[0].now
        stretch.state, stretch.node, stretch.started = "running", event.node, event.time
        stretch.device, stretch.asleep = event.device or {}, 0.0
        stretch.reason = stretch.kind = stretch.ended = stretch.left = None
        del stretch.reports[event.epoch or 0 :]  # a trial that runs again goes on from its checkpoint

    def _lost(self, event: events.Lost) -> None:
        stretch = self._known(event, event.trial)[0].now
        self._stop_clock(stretch, event.time)
        stretch.state, stretch.attempt = "waiting", event.attempt
        stretch.alone = stretch.alone if event.alone is None else event.alone
        stretch.losses += not event.node_died

    def _report(self, event: events.Report) -> None:
        trial = self.trials.get(event.trial)
        if trial is None:
            raise self._unreadable("report", f"there is no trial {event.trial} yet")
        reports = trial.stretches[-1].reports
        if event.epoch != len(reports) + 1:
            raise self._unreadable("report", f"epoch {event.epoch} follows epoch {len(reports)}")
        try:
            epoch = Epoch(event.epoch, event.metrics)
        except (TypeError, OverflowError):
            raise self._unreadable("report", "its metrics are not all numbers") from None
        reports.append(epoch)
        if len(trial.stretches) == 1:
            self.story.append(("report", event.trial, event.epoch, epoch))

    def _ended(self, event: events.Ended) -> None:
        (trial,) = self._known(event, event.trial)
        stretch = trial.now
        self._stop_clock(stretch, event.time)
        stretch.state, stretch.reason, stretch.kind = event.state, event.reason, event.kind
        stretch.ended = event.time if stretch.left is None else stretch.left
        if not trial.is_extended:
            self.story.append(("ended", trial.number, trial.epochs, None))

    def _closed(self, event: events.Closed) -> None:
        self.state, self.enough = event.state, event.enough
        for stretch in (trial.now for trial in self.trials.values()):
            self._stop_clock(stretch, self._last)
            if stretch.state == "running":
                stretch.state, stretch.left = "interrupted", self._last

    def _stop_clock(self, stretch: Stretch, now: float) -> None:
        if stretch.state == "running" and stretch.started is not None:
            self.busy += (ran := max(0.0, now - stretch.started - stretch.asleep))
            self._busy.append((self.placement, ran))
