"""A study's trials and state, folded from its ledger."""

import gc
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, assert_never

from study import __version__
from study.errors import UserError
from study.home import ledger
from study.home.events import (
    STATES,
    Ablating,
    Closed,
    Confirming,
    Created,
    Decided,
    Ended,
    Ending,
    Enqueued,
    Evaluated,
    Event,
    Kind,
    Lost,
    Opened,
    Refused,
    Report,
    Retried,
    SearchExtended,
    SplitTested,
    Stage,
    Started,
    State,
    Stopping,
    TrialsLengthened,
    Unknown,
    Untested,
    Unusable,
    entry_of,
    event_of,
)
from study.home.line import Entry

# One trial, as the ledger of its study tells it.


# What a trial reported after one epoch, small in memory: a study of 10,000 trials of 50 epochs has half a million.

NAN = float("nan")

_PLACES: dict[tuple[str, ...], dict[str, int]] = {}
"""The position of each metric, by the names of an epoch's metrics; the same for most epochs of a study."""


LARGEST = 1e100
"""A number beyond it, either way, counts as infinite: sums of squares of such are."""


def finite(metrics: Mapping[str, float]) -> dict[str, float | None]:
    """Metrics as a ledger keeps them: None for what is not a number, or infinite, see `LARGEST`."""
    return {name: value if abs(value) <= LARGEST else None for name, value in metrics.items()}


def infinite(metrics: Mapping[str, float]) -> str | None:
    """Return which metrics are infinite, or count as such, and what a ledger keeps of them; None: none."""
    large = [f"{name} is {value:.4g}" for name, value in metrics.items() if abs(value) > LARGEST]
    return f"{', '.join(large)}: kept as null" if large else None


class Epoch(Mapping[str, Any]):
    """Metrics by name, and `epoch`, from 1; None for one that is not a number.

    A mapping that holds numbers alone: the names are shared by all epochs that have the same ones.
    """

    __slots__ = ("_places", "_values")

    def __init__(self, epoch: int, metrics: Mapping[str, float | None]) -> None:
        names = tuple(metrics)
        if names not in _PLACES:
            _PLACES[names] = {name: place for place, name in enumerate(("epoch", *names))}
        self._places = _PLACES[names]
        self._values: array[float]
        try:
            self._values = array("d", (epoch, *metrics.values()))  # type: ignore[arg-type]
        except TypeError:  # rare: one of them is None
            self._values = array("d", [epoch, *(NAN if value is None else value for value in metrics.values())])

    @property
    def names(self) -> Mapping[str, int]:
        """The names, in order; one object for all epochs that have the same ones."""
        return self._places

    def __getitem__(self, name: str) -> Any:
        value = self._values[self._places[name]]
        if name == "epoch":
            return int(value)
        return value if value == value else None  # nan is not itself

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return f"Epoch({dict(self)})"


BY_HAND = "a user"
"""The reason of a trial that a user stopped."""

EVERY_CONFIGURATION = "every configuration of the space"
"""The reason of the end of a search that has nothing left to try."""


@dataclass
class TrialRecord:
    """One trial.

    Attributes:
        number: from 0, in the order in which trials were decided on.
        stage: the search saw baseline and search trials, and replicates, which count with them, on further seeds;
            confirm trials repeat the best on fresh seeds, rule trials other rules' picks; ablation trials are the steps
            from the baseline to the best; final trials train an export.
        params: searched keys and their values.
        seed: `train.seed` of this trial.
        repeats: number of the trial whose configuration a replicate, confirm or rule trial repeats; of an ablation
            trial where it repeats the baseline or the best.
        state: `complete`: it ran to its end; `pruned`: early stopping ended it; `interrupted`: it runs again when
            the study is resumed.
        reason: which rule pruned the trial (`BY_HAND`: a user did), or why it failed.
        kind: how a failed trial failed: PREEMPTED (its process or node died, its GPU broke), OOM (out of memory), HUNG
            (no report for too long), DIVERGED (no number), BUG (an exception in its code).
        attempt, losses: how often it was lost before its end, or failed, and ran again; losses since its last failure
            where its node had not died.
        alone: it ran out of GPU memory, and runs again with a GPU to itself.
        device: that it last ran on, see `study.training.device.facts`; empty: not known.
        earlier: start and end of each run before it was extended, in seconds since the epoch.
        reports: metrics of each epoch, in order.
        tested: metrics on the test split, None for one that is not a number; empty if it was not read.
        untested: why it could not be read, where it should have been; None once it was.
        enqueued: a user asked for its configuration while the study ran.
        stops_at: the epoch after which it ends because a user asked for that, None: nobody did.
        until: the epoch that it was extended to, or its configuration before it was decided on; None: the study's.
        before: the trial as it had ended when it was extended last, None: it was not.
        left: when the session ended in which it ran, None: it runs, has not begun or ended before that.
        asleep: seconds of its last run in which its driver, or the machine, slept.
        computed: its values at the chosen epoch by rule, until there is a further report (`study.ranking.epochs`).
    """

    number: int
    stage: Stage
    params: dict[str, Any]
    seed: int
    repeats: int | None = None
    state: State = "waiting"
    reason: str | None = None
    kind: Kind | None = None
    attempt: int = 0
    losses: int = 0
    alone: bool = False
    node: str | None = None
    device: dict[str, str] = field(default_factory=dict)
    earlier: list[tuple[float, float]] = field(default_factory=list)
    reports: list[Epoch] = field(default_factory=list)
    tested: dict[str, float | None] = field(default_factory=dict)
    untested: str | None = None
    started: float | None = None
    ended: float | None = None
    left: float | None = None
    asleep: float = 0.0
    enqueued: bool = False
    stops_at: int | None = None
    until: int | None = None
    before: "TrialRecord | None" = field(default=None, repr=False)
    computed: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def epochs(self) -> int:
        """Epochs that were reported."""
        return len(self.reports)

    def spans(self, now: float) -> list[tuple[float, float]]:
        """Start and end of its last run and of those before it was extended; one that has not ended ends `now`. Where
        its driver slept meanwhile it ends sooner by that."""
        began = self.started
        if began is None or (self.earlier and self.earlier[-1][0] == began):
            return self.earlier
        return [*self.earlier, (began, (now if self.ended is None else self.ended) - self.asleep)]

    @property
    def seconds(self) -> float | None:
        """The length of these runs; None where it has not ended."""
        if self.ended is None:
            return None
        return sum(end - begin for begin, end in self.spans(self.ended))

    def total(self, planned: int) -> int:
        """Epochs that it runs in full, where the study's trials run `planned` ones."""
        return self.until or planned

    @property
    def test_readings(self) -> int:
        """The number of times that the test split was read with its model: at each of its ends, and in each epoch where
        `train.report_test` asks for that."""
        in_epochs = self.epochs if self.reports and any(name.startswith("test/") for name in self.reports[0]) else 0
        return sum(bool(version.tested) for version in self.versions) + in_epochs

    @property
    def versions(self) -> "Iterator[TrialRecord]":
        """The trial as it is, and as it had ended each time that it was extended, the latest first."""
        version: TrialRecord | None = self
        while version is not None:
            yield version
            version = version.before

    @property
    def searched(self) -> "TrialRecord":
        """The trial as the search ended it: itself where it was not extended."""
        *_, first = self.versions
        return first

    def lengthen(self, epochs: int) -> None:
        """Let it go on to this epoch, and know how it had ended."""
        self.before = replace(self)
        self.earlier = self.spans(self.ended or 0.0)
        self.reports, self.until, self.state = list(self.reports), epochs, "waiting"
        self.reason = self.kind = self.ended = self.left = self.untested = self.stops_at = None
        self.tested, self.losses = {}, 0
        if self.epochs > 1:  # what is measured in the last epoch alone is measured in the new last one
            known, last = self.reports[0], self.reports[-1]
            metrics = {name: last[name] for name in last if name in known and name != "epoch"}
            self.reports[-1] = Epoch(self.epochs, metrics)

    def retry(self) -> None:
        """Let it run again from its start, though it had failed."""
        self.reports, self.earlier, self.state, self.tested, self.asleep = [], [], "waiting", {}, 0.0
        self.reason = self.kind = self.started = self.ended = self.left = self.untested = self.stops_at = None
        self.attempt, self.losses = self.attempt + 1, 0
        self.computed.clear()

    @property
    def run(self) -> int:
        """The number of its newest run, from 0: each is ended by a loss."""
        return self.attempt

    @property
    def is_stopped(self) -> bool:
        """Return whether a user asked for its end, and the report at which it comes has come."""
        return self.stops_at is not None and self.epochs >= self.stops_at

    @property
    def why(self) -> str | None:
        """The rule that pruned a trial; how and why a failed one failed."""
        return f"{self.kind}: {self.reason}" if self.kind else self.reason

    def last(self, metric: str) -> float | None:
        """The metric at the last reported epoch, None if there is none or it is not a number."""
        return self.reports[-1].get(metric) if self.reports else None


# Python's garbage collection, held back while very many objects are made that all stay.


@contextmanager
def uncollected() -> Iterator[None]:
    """Without garbage collection: it would look again and again at a million new objects, none of them garbage."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


__all__ = ["Foreign", "StudyRecord", "TrialRecord"]

Happening = tuple[Literal["trial", "report", "ended", "enqueued"], int, int, Epoch | None]
"""The events of trials: which trial, behind which of its epochs, and what it reported; of what was enqueued its place
among `StudyRecord.enqueued` instead of a trial. A report stays when its trial has to run the epoch again."""


class Foreign(UserError):
    """A ledger has an event that this version does not know, knows in another form, or that cannot follow the ones
    before it."""


@dataclass
class StudyRecord:
    """A study as its ledger tells it.

    Attributes:
        id: unique to the study, whatever it is called.
        sessions: the `opened` event of each driver that ran it; but `groups`, see `study.data.cells`, by itself.
        state: new, running, complete, interrupted or failed.
        story: every trial decided on, report and end, and what was enqueued, in the order in which they came: early
            stopping and Optuna depend on it. What a trial does once it was extended is no part of it, nor what it did
            before it was to run again because it had failed.
        extended: the number of configurations that the search was extended to, None if it was not.
        lengthened: the extensions of trials beyond their last epoch, in order.
        placement: keys of `resources`, and `search.concurrency`, that the last driver was told in the file's place.
        confirming: `top`, `seeds`, `rules` of what was to be confirmed later, None: those of the study file.
        ablating: whose way from the baseline is measured, None: nobody asked; see `study.ranking.ablation`.
        enqueued, ending: the configurations that users asked for while it ran, in order; whether one ended the search.
        requests: the ids of the requests that were answered (`study.home.requests`), each with why it was refused.
        unusable: the nodes on which the last driver placed no more trials, each with why and the remedy.
        evaluations: how often a trained model was evaluated on the test split afterwards.
        enough: which limit had ended the search when the last driver closed it: trials, time, gpu_hours, plateau ...
        worked, busy: seconds that drivers were at work, and that processes ran trials, all together, without those in
            which the machine slept.
        computed: rankings of it, kept while it does not change; None: none are kept (`study.ranking.ranked_once`).
    """

    id: str = ""
    trials: dict[int, TrialRecord] = field(default_factory=dict)
    sessions: list[dict[str, Any]] = field(default_factory=list)
    groups: dict[str, Any] | None = None
    state: str = "new"
    story: list[Happening] = field(default_factory=list)
    extended: int | None = None
    lengthened: list[TrialsLengthened] = field(default_factory=list)
    placement: dict[str, Any] = field(default_factory=dict)
    confirming: tuple[int, int, bool] | None = None
    ablating: Ablating | None = None
    enqueued: list[dict[str, Any]] = field(default_factory=list)
    ending: bool = False
    requests: dict[str, str | None] = field(default_factory=dict)
    unusable: dict[str, str] = field(default_factory=dict)
    evaluations: int = 0
    enough: str | None = None
    worked: float = 0.0
    busy: float = 0.0
    computed: dict[Any, Any] | None = field(default=None, init=False, repr=False, compare=False)
    _busy: list[tuple[dict[str, Any], float]] = field(default_factory=list)
    _last: float = 0.0
    _repeats: dict[int, list[int]] = field(default_factory=dict)
    _stages: dict[str, list[TrialRecord]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def load(cls, path: Path) -> "StudyRecord":
        """Read a ledger. A study whose driver died without a word reads as interrupted, and so do its running trials;
        raises as `told`."""
        record = cls.told(path)
        if record.state == "running" and not ledger.is_open(path):
            record.apply(Closed("interrupted"))
        return record

    @classmethod
    def told(cls, path: Path) -> "StudyRecord":
        """Return what a ledger says: for its driver, who knows that one which reads as running is not. Raises
        UserError: it is damaged, or another version of this package wrote it.
        """
        tail, record, begin = ledger.Tail(path), cls(), 0
        try:
            with uncollected():
                for line in tail.new():
                    record.take(line)
                    begin = tail.offset
        except Foreign as error:
            raise UserError(f"{path}: {error}. It stands at byte {begin}") from None
        if not begin:
            raise UserError(ledger.empty(path))
        return record

    @classmethod
    def fold(cls, entries: Iterable[Entry]) -> "StudyRecord":
        record = cls()
        for one in entries:
            record.take(one)
        return record

    def take(self, entry: Entry) -> Event:
        """Take in an event as it stands in the ledger, and give it; raises Foreign: another version wrote it, or it
        cannot follow those before it."""
        try:
            event = event_of(entry)
        except Unknown:
            raise self._foreign(f"{entry['event']!r}, which study {__version__} does not know") from None
        except ValueError as fault:
            raise self._unreadable(entry["event"], str(fault)) from None
        self.apply(event)
        return event

    def apply(self, event: Event) -> None:
        """Take one event in; raises Foreign: it cannot follow those before it."""
        if not self.id and not isinstance(event, Created):
            raise self._unreadable(event.event, "a study is created once, by its first event")
        if self.state == "running" and not isinstance(event, Closed):  # that of a dead driver comes with the next one
            self.worked += max(0.0, event.time - self._last - event.asleep)
            self._last = event.time
            for trial in self.trials.values() if event.asleep else ():
                trial.asleep += event.asleep if trial.state == "running" else 0.0
        match event:
            case Report():  # first, as nearly all are
                self._report(event)
            case Started():
                self._started(event)
            case Ended():
                self._ended(event)
            case Decided():
                self._decided(event)
            case Lost():
                self._lost(event)
            case Created():
                if self.id:
                    raise self._unreadable("created", "a study is created once, by its first event")
                self.id = event.id
            case Opened():
                self._opened(event)
            case SearchExtended():
                self.extended, self.enough, self.ending, self.state = event.trials, None, False, "interrupted"
            case TrialsLengthened():
                self.lengthened.append(event)
                for trial in self._known(event, *event.trials):
                    trial.lengthen(event.epochs)
                self.state = "interrupted"
            case Retried():
                self._retried(event)
            case Confirming():
                self.confirming, self.state = (event.top, event.seeds, event.rules), "interrupted"
            case Ablating():
                self._known(event, event.trial)
                self.ablating, self.state = event, "interrupted"
            case Evaluated():
                self.evaluations += event.split == "test"
            case Unusable():
                self.unusable[event.node] = event.reason
            case SplitTested():
                (trial,) = self._known(event, event.trial)
                trial.tested, trial.untested = event.metrics, None
            case Untested():
                (trial,) = self._known(event, event.trial)
                trial.untested = event.reason
            case Enqueued():
                self.requests[event.request] = None
                self.story.append(("enqueued", len(self.enqueued), 0, None))
                self.enqueued.append(event.params)
            case Stopping():
                (trial,) = self._known(event, event.trial)
                self.requests[event.request], trial.stops_at = None, trial.epochs + 1
            case Ending():
                self.requests[event.request], self.ending = None, True
            case Refused():
                self.requests[event.request] = event.reason
            case Closed():
                self._closed(event)
            case _:
                assert_never(event)

    def _known(self, event: Event, *numbers: int) -> list[TrialRecord]:
        """The trials of an event; raises Foreign: one was not decided on."""
        try:
            return [self.trials[number] for number in numbers]
        except KeyError as unknown:
            raise self._unreadable(event.event, f"there is no trial {unknown} yet") from None

    def _unreadable(self, kind: str, fault: str) -> Foreign:
        return self._foreign(f"{kind!r} that study {__version__} cannot read: {fault}")

    def _foreign(self, what: str) -> Foreign:
        wrote = f"study {self.sessions[-1].get('version', '')}".strip() if self.sessions else "a newer study"
        return Foreign(f"has an event {what}. Use what wrote it: {wrote}")

    @property
    def heard(self) -> float:
        """When the last event came of a driver that was at work."""
        return self._last

    @property
    def owner(self) -> str | None:
        """Whose study it is, whoever goes on with it; None before its first driver."""
        return self.sessions[0]["owner"] if self.sessions else None

    def by_stage(self, *stages: Stage) -> Iterator[TrialRecord]:
        """Trials of these stages, by number."""
        if sum(map(len, self._stages.values())) != len(self.trials):  # of a record that was given its trials
            return (trial for trial in list(self.trials.values()) if trial.stage in stages)
        found = [trial for stage in stages for trial in list(self._stages.get(stage, ()))]
        return iter(found if len(stages) == 1 else sorted(found, key=lambda trial: trial.number))

    def repeats_of(self, number: int, stage: Stage = "confirm") -> list[TrialRecord]:
        """The trials of a stage that repeat a trial's configuration."""
        return [trial for repeat in self._repeats.get(number, []) if (trial := self.trials[repeat]).stage == stage]

    def limit(self, planned: int) -> int:
        """Return how many configurations the search may try, of `planned` ones by its file."""
        return self.extended or planned

    @property
    def tried(self) -> int:
        """The number of configurations that were tried, the baseline's among them."""
        return sum(1 for _ in self.by_stage("baseline", "search"))

    def search_is_over(self, planned: int, asked_for: int = 0) -> bool:
        """Return whether the search tries nothing beyond what it has and so many configurations that were asked for.

        Args:
            planned: how many it may try by its file.
        """
        ended = self.ending or self.enough not in (None, "trials")  # of "trials" the numbers tell
        return ended or self.tried + asked_for >= self.limit(planned)

    def counts(self) -> dict[str, int]:
        """Return how many trials are in each state, in the order of a trial's life."""
        states = [trial.state for trial in list(self.trials.values())]
        return {state: states.count(state) for state in STATES}

    @property
    def test_readings(self) -> int:
        """The count of readings of the test split: at a trial's end, in `report_test`'s epochs, by evaluation."""
        return sum(trial.test_readings for trial in list(self.trials.values())) + self.evaluations

    def taken(self, key: Literal["cpu", "gpu"], planned: float) -> float:
        """Seconds of a CPU core or GPU that trials took, where the study file gives `planned` to each."""
        return sum(told.get(f"resources.{key}", planned) * busy for told, busy in self._busy)

    def _opened(self, event: Opened) -> None:
        self.groups = self.groups if event.groups is None else event.groups
        self.placement = event.placement or {}
        self.sessions.append({name: value for name, value in entry_of(event).items() if name != "groups"})
        self.state, self._last, self.unusable = "running", event.time, {}

    def _retried(self, event: Retried) -> None:
        """To the search these are trials that were decided on, and no more is known of them."""
        trials = self._known(event, *event.trials)
        if odd := [trial for trial in trials if trial.state not in ("failed", "pruned")]:
            raise self._unreadable("retried", f"trial {odd[0].number} is {odd[0].state}")
        again = {trial.number for trial in trials if trial.before is None}
        self.story = [one for one in self.story if one[0] in ("trial", "enqueued") or one[1] not in again]
        for trial in trials:
            trial.retry()
        self.state = "interrupted"

    def _decided(self, event: Decided) -> None:
        number, repeats = event.trial, event.repeats
        if number in self.trials:
            raise self._unreadable("trial", f"trial {number} was decided on before")
        if repeats is not None and repeats not in self.trials:
            raise self._unreadable("trial", f"there is no trial {repeats} to repeat")
        trial = self.trials[number] = TrialRecord(number, event.stage, event.params, event.seed, repeats)
        self._stages.setdefault(event.stage, []).append(trial)
        trial.enqueued = bool(event.enqueued)
        like = self.ablating.trial if event.stage == "ablation" and self.ablating else repeats
        trial.until = None if like is None else self.trials[like].until
        if repeats is not None:
            self._repeats.setdefault(repeats, []).append(number)
        self.story.append(("trial", number, 0, None))

    def _started(self, event: Started) -> None:
        (trial,) = self._known(event, event.trial)
        trial.state, trial.node, trial.started = "running", event.node, event.time
        trial.device, trial.asleep = event.device or {}, 0.0
        trial.reason = trial.kind = trial.ended = trial.left = None
        del trial.reports[event.epoch or 0 :]  # a trial that runs again goes on from its checkpoint

    def _lost(self, event: Lost) -> None:
        (trial,) = self._known(event, event.trial)
        self._stop_clock(trial, event.time)
        trial.state, trial.attempt = "waiting", event.attempt
        trial.alone = trial.alone if event.alone is None else event.alone
        trial.losses += not event.node_died

    def _report(self, event: Report) -> None:
        trial = self.trials.get(event.trial)
        if trial is None:
            raise self._unreadable("report", f"there is no trial {event.trial} yet")
        if event.epoch != trial.epochs + 1:
            raise self._unreadable("report", f"epoch {event.epoch} follows epoch {trial.epochs}")
        try:
            epoch = Epoch(event.epoch, event.metrics)
        except (TypeError, OverflowError):
            raise self._unreadable("report", "its metrics are not all numbers") from None
        trial.reports.append(epoch)
        if trial.before is None:
            self.story.append(("report", event.trial, event.epoch, epoch))

    def _ended(self, event: Ended) -> None:
        (trial,) = self._known(event, event.trial)
        self._stop_clock(trial, event.time)
        trial.state, trial.reason, trial.kind = event.state, event.reason, event.kind
        trial.ended = event.time if trial.left is None else trial.left
        if trial.before is None:
            self.story.append(("ended", trial.number, trial.epochs, None))

    def _closed(self, event: Closed) -> None:
        self.state, self.enough = event.state, event.enough
        for trial in self.trials.values():
            self._stop_clock(trial, self._last)
            if trial.state == "running":
                trial.state, trial.left = "interrupted", self._last

    def _stop_clock(self, trial: TrialRecord, now: float) -> None:
        if trial.state == "running" and trial.started is not None:
            self.busy += (ran := max(0.0, now - trial.started - trial.asleep))
            self._busy.append((self.placement, ran))


# A study as its search ended it.


def as_searched(record: StudyRecord) -> StudyRecord:
    """A record without what trials did once they were extended, so that what tells of the search compares trials of as
    many epochs. It shares the trials that were not, and is not to be changed; the record itself where none was."""
    if not record.lengthened:
        return record
    trials = {number: trial.searched for number, trial in record.trials.items()}
    searched = replace(record, trials=trials, lengthened=[])
    searched.computed = None if record.computed is None else {}
    return searched
