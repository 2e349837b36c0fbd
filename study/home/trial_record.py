"""One trial, as the ledger of its study tells it."""

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from study.home.events import Kind, Stage, State

# What a trial reported after one epoch, small in memory: a study of 10,000 trials of 50 epochs has half a million.

NAN = float("nan")

_PLACES: dict[tuple[str, ...], dict[str, int]] = {}
"""Where each metric stands, by the names of an epoch's metrics; the same for most epochs of a study."""


LARGEST = 1e100
"""A number beyond it, either way, counts as infinite: sums of squares of such are."""


def finite(metrics: Mapping[str, float]) -> dict[str, float | None]:
    """Metrics as a ledger keeps them: None for what is not a number, or infinite, see `LARGEST`."""
    return {name: value if abs(value) <= LARGEST else None for name, value in metrics.items()}


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
"""What pruned a trial that a user stopped."""


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
        tested: metrics on the test split, empty if it was not read.
        untested: why it could not be read, where it should have been.
        enqueued: a user asked for its configuration while the study ran.
        stops_at: the epoch after which it ends because a user asked for that, None: nobody did.
        until: the epoch that it was extended to, or its configuration before it was decided on; None: the study's.
        before: the trial as it had ended when it was extended last, None: it was not.
        left: when the session ended in which it ran, None: it runs, has not begun or ended before that.
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
    tested: dict[str, float] = field(default_factory=dict)
    untested: str | None = None
    started: float | None = None
    ended: float | None = None
    left: float | None = None
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
        """Start and end of its last run and of those before it was extended; one that has not ended ends `now`."""
        began = self.started
        if began is None or (self.earlier and self.earlier[-1][0] == began):
            return self.earlier
        return [*self.earlier, (began, now if self.ended is None else self.ended)]

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
        """How often the test split was read with its model: at each of its ends, and in each epoch where
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
        self.reports, self.earlier, self.state, self.tested = [], [], "waiting", {}
        self.reason = self.kind = self.started = self.ended = self.left = self.untested = self.stops_at = None
        self.attempt, self.losses = self.attempt + 1, 0
        self.computed.clear()

    @property
    def run(self) -> int:
        """Which of its runs is the newest, from 0: each is ended by a loss."""
        return self.attempt

    @property
    def is_stopped(self) -> bool:
        """Whether a user asked for its end, and the report at which it comes has come."""
        return self.stops_at is not None and self.epochs >= self.stops_at

    @property
    def why(self) -> str | None:
        """Which rule pruned a trial; how and why a failed one failed."""
        return f"{self.kind}: {self.reason}" if self.kind else self.reason

    def last(self, metric: str) -> float | None:
        """The metric at the last reported epoch, None if there is none or it is not a number."""
        return self.reports[-1].get(metric) if self.reports else None
