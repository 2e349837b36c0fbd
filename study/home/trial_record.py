"""One trial, as the ledger of its study tells it."""

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from study.home.events import Kind, Params, Stage, State
from study.spec.objective import Objective

NAN = float("nan")

_PLACES: dict[tuple[str, ...], dict[str, int]] = {}
"""Position of each metric, by the names of an epoch's metrics; the same object for most epochs of a study."""

LARGEST = 1e100
"""Larger numbers, of either sign, count as infinite, as sums of their squares are."""


def finite(metrics: Mapping[str, float]) -> dict[str, float | None]:
    """Return metrics as a ledger keeps them: None for what is not a number, or infinite, see `LARGEST`."""
    return {name: value if abs(value) <= LARGEST else None for name, value in metrics.items()}


def infinite(metrics: Mapping[str, float]) -> str | None:
    """Return which metrics are infinite, or count as such, and what a ledger keeps of them; None: none."""
    large = [f"{name} is {value:.4g}" for name, value in metrics.items() if abs(value) > LARGEST]
    return f"{', '.join(large)}: kept as null" if large else None


class Epoch(Mapping[str, float | None]):
    """Metrics of one epoch by name, and `epoch`, from 1; None for one that is not a number.

    It is small, as a study of 10,000 trials of 50 epochs has half a million: it holds numbers alone, and shares the
    names with all epochs that have the same ones.
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
        except TypeError:  # rarely, one of them is None
            self._values = array("d", [epoch, *(NAN if value is None else value for value in metrics.values())])

    @property
    def names(self) -> Mapping[str, int]:
        """Names with their places, in order; one object for all epochs that have the same ones."""
        return self._places

    def __getitem__(self, name: str) -> float | None:
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
"""Reason of the end of a trial that a user stopped."""

EVERY_CONFIGURATION = "every configuration of the space"
"""Reason of the end of a search that has nothing left to try."""


T = TypeVar("T")

Span = tuple[float, float]
"""Start and end, in seconds since the epoch."""


Computed = dict[Objective, tuple[Epoch, Mapping[str, float | None]]]
"""Metrics at the epochs that objectives chose (`study.ranking.epochs`), each with the last report at that time."""


@dataclass
class Stretch:
    """The part of a trial from its beginning, or from where it was extended, to an end. One that failed may begin anew.

    Attributes:
        until: its last epoch; None: the study's.
        earlier: the runs that ended the stretches before it.
        attempt, losses: how often the trial was lost before its end, or failed, and ran again; losses since its last
            failure where its node had not died.
        alone: whether it ran out of GPU memory, and runs again with a GPU to itself.
        node, device: where it last ran, see `study.training.device.facts`; empty: not known.
        reports: metrics of each epoch, in order, also those before this stretch.
        state: `complete`: it ran to its end; `pruned`: early stopping ended it; `interrupted`: it runs again when
            the study is resumed.
        reason: which rule pruned it (`BY_HAND`: a user did), or why it failed.
        kind: how it failed: PREEMPTED (its process or node died, its GPU broke), OOM (out of memory), HUNG (no report
            for too long), DIVERGED (no number), BUG (an exception in its code).
        tested: metrics on the test split, None for one that is not a number; empty if it was not read.
        untested: why it could not be read, where it should have been; None once it was.
        started, ended: its last run, in seconds since the epoch.
        left: end of the session in which it ran; None: it runs, has not begun or ended before that.
        asleep: seconds of its last run in which its driver, or the machine, slept.
        stops_at: the epoch after which it ends because a user asked for that, None: nobody did.
        predicted: its predictions for the samples of its fold, see `study.home.events.Judged`; None: nothing is kept.
        computed: its values at the chosen epoch by rule, until there is a further report (`study.ranking.epochs`).
    """

    until: int | None = None
    earlier: tuple[Span, ...] = ()
    attempt: int = 0
    losses: int = 0
    alone: bool = False
    node: str | None = None
    device: dict[str, str] = field(default_factory=dict)
    reports: list[Epoch] = field(default_factory=list)
    state: State = "waiting"
    reason: str | None = None
    kind: Kind | None = None
    tested: dict[str, float | int | None] = field(default_factory=dict)
    untested: str | None = None
    started: float | None = None
    ended: float | None = None
    left: float | None = None
    asleep: float = 0.0
    stops_at: int | None = None
    predicted: str | None = None
    computed: Computed = field(default_factory=dict, init=False, repr=False, compare=False)

    def spans(self, now: float) -> list[Span]:
        """Return the last run and those of the stretches before; a run that has not ended counts until `now`.

        Where its driver slept meanwhile, the last run is shortened by that.
        """
        if self.started is None:
            return [*self.earlier]
        return [*self.earlier, (self.started, (now if self.ended is None else self.ended) - self.asleep)]

    def lengthened(self, epochs: int) -> "Stretch":
        """Return the next stretch, from this one's end to an epoch.

        Metrics that only a last epoch has are dropped: they are measured in the new last epoch.
        """
        reports = list(self.reports)
        if len(reports) > 1:
            known, last = reports[0], reports[-1]
            metrics = {name: last[name] for name in last if name in known and name != "epoch"}
            reports[-1] = Epoch(len(reports), metrics)
        spans = tuple(self.spans(self.ended or 0.0))
        return Stretch(epochs, spans, self.attempt, 0, self.alone, self.node, self.device, reports)

    def anew(self) -> "Stretch":
        """Return a stretch from the trial's first epoch, as a further attempt."""
        return Stretch(self.until, (), self.attempt + 1, 0, self.alone, self.node, self.device)


class _Now(Generic[T]):
    """Descriptor of a field of a trial's last stretch, under the same name."""

    def __set_name__(self, trial: type, name: str) -> None:
        self._name = name

    def __get__(self, trial: "TrialRecord", of: type) -> T:
        found: T = getattr(trial.stretches[-1], self._name)
        return found


@dataclass
class TrialRecord:
    """One trial: what it is, and the stretches that it has run.

    Attributes:
        number: from 0, in the order in which trials were decided on.
        stage: the search saw baseline and search trials, and replicates, which count with them, on further seeds;
            confirm trials repeat the best on fresh seeds, rule trials other rules' picks; ablation trials are the steps
            from the baseline to the best; final trials train an export.
        params: searched keys and their values.
        seed: `train.seed` of this trial.
        repeats: number of the trial whose configuration a replicate, confirm or rule trial repeats; for an ablation
            trial the baseline or the best, where it repeats one of them.
        enqueued: whether a user asked for its configuration while the study ran.
        fold: on which it is validated; None: the data have no folds, or it is trained on all of them.
        stretches: the first one, and one for each time that it was extended.
    """

    number: int
    stage: Stage
    params: Params
    seed: int
    repeats: int | None = None
    enqueued: bool = False
    fold: int | None = None
    stretches: list[Stretch] = field(default_factory=lambda: [Stretch()])

    @property
    def now(self) -> Stretch:
        """Last stretch, whose fields the trial has too."""
        return self.stretches[-1]

    state = _Now[State]()
    reason = _Now[str | None]()
    kind = _Now[Kind | None]()
    losses = _Now[int]()
    alone = _Now[bool]()
    node = _Now[str | None]()
    device = _Now[dict[str, str]]()
    reports = _Now[list[Epoch]]()
    tested = _Now[dict[str, float | int | None]]()
    untested = _Now[str | None]()
    ended = _Now[float | None]()
    stops_at = _Now[int | None]()
    until = _Now[int | None]()
    attempt = _Now[int]()
    predicted = _Now[str | None]()
    computed = _Now[Computed]()

    @property
    def started(self) -> float | None:
        """Start of its last run; before a stretch has begun, that of the one before."""
        now = self.now
        return now.earlier[-1][0] if now.started is None and now.earlier else now.started

    @property
    def epochs(self) -> int:
        """Number of epochs that were reported."""
        return len(self.stretches[-1].reports)

    def spans(self, now: float) -> list[Span]:
        """Return the runs of its last stretch and before, see `Stretch.spans`."""
        return self.now.spans(now)

    @property
    def seconds(self) -> float | None:
        """Total length of its runs; None where it has not ended."""
        if self.ended is None:
            return None
        return sum(end - begin for begin, end in self.spans(self.ended))

    def total(self, planned: int) -> int:
        """Return the epochs that it runs in full, where the study's trials run `planned` ones."""
        return self.until or planned

    @property
    def test_readings(self) -> int:
        """Number of times that the test split was read with its model.

        That is at each of its ends, and in each epoch where `train.report_test` asks for it.
        """
        in_epochs = self.epochs if self.reports and any(name.startswith("test/") for name in self.reports[0]) else 0
        return sum(bool(each.tested) for each in self.stretches) + in_epochs

    @property
    def is_extended(self) -> bool:
        """Whether it was to go on beyond its end."""
        return len(self.stretches) > 1

    @property
    def versions(self) -> "Iterator[TrialRecord]":
        """The trial as it is, and as it had ended each time that it was extended, the latest first."""
        yield self
        for count in range(len(self.stretches) - 1, 0, -1):
            yield replace(self, stretches=self.stretches[:count])

    @property
    def searched(self) -> "TrialRecord":
        """The trial as the search ended it: itself where it was not extended."""
        return replace(self, stretches=self.stretches[:1]) if self.is_extended else self

    @property
    def run(self) -> int:
        """Number of its newest run, from 0: each is ended by a loss."""
        return self.attempt

    @property
    def is_stopped(self) -> bool:
        """Whether a user asked for its end, and the report at which it ends has come."""
        return self.stops_at is not None and self.epochs >= self.stops_at

    @property
    def why(self) -> str | None:
        """The rule that pruned the trial, or how and why it failed."""
        return f"{self.kind}: {self.reason}" if self.kind else self.reason

    def last(self, metric: str) -> float | None:
        """Return the metric at the last reported epoch, None if there is none or it is not a number."""
        return self.reports[-1].get(metric) if self.reports else None
