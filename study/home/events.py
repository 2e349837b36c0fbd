"""The events of a ledger: one class for each kind, with checked fields.

Each is an entry of the ledger: `event`, its kind, `time`, then its fields in the order in which they stand here, and
`asleep`. What is None is left out.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, dataclass_transform, get_args

from annotated_types import Ge, Lt, MinLen
from pydantic import ConfigDict, InstanceOf, Strict, TypeAdapter, ValidationError, with_config

from study.data.dataset import DatasetSummary, GroupSizes, ShortcutColumn, aligned_cells
from study.files import FileDigest
from study.home.lease import MAX_TIMESTAMP
from study.home.ledger_line import Entry
from study.text import shorten_text

Stage = Literal["baseline", "search", "replicate", "confirm", "rule", "ablation", "final"]
TrialState = Literal["waiting", "running", "complete", "pruned", "failed", "interrupted"]
TrialOutcome = Literal["complete", "pruned", "failed"]
StudyOutcome = Literal["complete", "interrupted", "failed"]
FailureKind = Literal["PREEMPTED", "OOM", "DIVERGED", "BUG", "HUNG"]
TRIAL_STATES: tuple[TrialState, ...] = get_args(TrialState)
ENDED_STATES: tuple[TrialState, ...] = get_args(TrialOutcome)

INT64_BOUND = 2**63
"""Bound of whole numbers."""

MAX_SHOWN_VALUE_CHARACTERS = 60
"""Most characters of a value that a message shows."""

NonNegativeInteger = Annotated[int, Strict(), Ge(0), Lt(INT64_BOUND)]
StrictBool = Annotated[bool, Strict()]
Seconds = Annotated[float, Strict(), Ge(0), Lt(MAX_TIMESTAMP)]
MetricValues = dict[str, Annotated[float, Strict()] | Annotated[int, Strict()] | None]
ParamValues = dict[str, bool | int | float | str | None]
UncheckedMetrics = InstanceOf[dict[str, float | None]]
"""Metrics of a report; `study.home.record.EpochMetrics` checks the values, as there are so many."""


for _described in (DatasetSummary, FileDigest, GroupSizes, ShortcutColumn):  # further keys of later versions are kept
    with_config(ConfigDict(extra="allow", strict=True))(_described)


@dataclass(frozen=True)
class GroupSampleCounts:
    """Groups of a study's data, empty where they are not known, see `study.data.dataset.GroupSizes`.

    Attributes:
        cells: by split, a list per class with the number of samples of each bias class; with folds, `val` is that
            of all samples outside test.
        classes, biases: names in the order of their numbers.
        aligned_cells: for each class whether it goes with each bias class; None: no sample is aligned.
        val_by_fold: the cells of each fold; empty without folds, and where groups are not counted.
    """

    cells: Mapping[str, Sequence[Sequence[int]]] = field(default_factory=dict)
    classes: Sequence[str] = ()
    biases: Sequence[str] = ()
    aligned_cells: Sequence[Sequence[bool]] | None = None
    val_by_fold: Sequence[Sequence[Sequence[int]]] = ()

    @classmethod
    def from_sizes(cls, sizes: GroupSizes) -> "GroupSampleCounts":
        """Return the groups of an `opened` event."""
        by_fold = sizes.get("val_by_fold", [])
        val = _sum_cell_counts(by_fold) if by_fold else sizes.get("val")
        cells = {split: of for split, of in (("val", val), ("test", sizes.get("test"))) if of}
        aligned, any_split = sizes.get("aligned"), next(iter(cells.values()), [])
        pairs = None if aligned is None else aligned_cells(aligned, len(any_split))
        return cls(cells, sizes.get("classes", ()), sizes.get("biases", ()), pairs, by_fold)

    def cells_of_folds(self, folds: Collection[int]) -> Sequence[Sequence[int]] | None:
        """Return the cells of these folds together; None where they are not known."""
        known = [self.val_by_fold[fold] for fold in folds if fold < len(self.val_by_fold)]
        return _sum_cell_counts(known) if known and len(known) == len(folds) else None


def _sum_cell_counts(parts: Sequence[Sequence[Sequence[int]]]) -> list[list[int]]:
    return [[sum(sizes) for sizes in zip(*rows, strict=True)] for rows in zip(*parts, strict=True)]


NonEmptyKeys = Annotated[tuple[str, ...], MinLen(1)]


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True, kw_only=True)
class BaseEvent:
    """Base of all events, each a frozen dataclass. Two are equal that say the same, at whatever time.

    Attributes:
        time: when it was written, in seconds since the epoch; 0: not yet, the ledger sets it.
        asleep: seconds since the event before in which its driver did not run (`study.home.ledger`).
    """

    event: ClassVar[str]
    time: Seconds = field(default=0.0, compare=False)
    asleep: Seconds = field(default=0.0, compare=False)

    def __init_subclass__(cls, kind: str, kw_only: bool = False) -> None:
        """Make a dataclass of it, and set the name of the kind in a ledger."""
        cls.event = kind
        dataclass(frozen=True, kw_only=kw_only)(cls)


class StudyCreated(BaseEvent, kind="created"):
    """The study exists.

    Attributes:
        id: unique to it, whatever it is called.
    """

    id: str


class SessionOpened(BaseEvent, kind="opened", kw_only=True):
    """A driver took the study up. Further fields of other versions are kept.

    Attributes:
        version, commit, dirty, python, libraries, node, gpus: of package and machine, see `study.home.provenance`.
        owner: of the study.
        data, dataset, datasets: fingerprint, titles and inventory of its data.
        spec: hash of its file.
        weights, function: the files that trials begin from, and that they run.
        placement: keys of `resources`, and `search.concurrency`, that differ from the study file.
        groups: samples of each group.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="allow")
    version: str | None = None
    commit: str | None = None
    dirty: StrictBool | None = None
    python: str | None = None
    libraries: dict[str, str] | None = None
    node: str | None = None
    gpus: list[str] | None = None
    owner: str
    data: str | None = None
    dataset: str | None = None
    spec: str | None = None
    datasets: dict[str, DatasetSummary] | None = None
    weights: list[FileDigest] | None = None
    function: list[FileDigest] | None = None
    placement: ParamValues | None = None
    groups: GroupSizes | None = None

    @property
    def data_fingerprints(self) -> list[str]:
        """Fingerprint of each data set."""
        return [one["digest"] for one in (self.datasets or {}).values()]

    @property
    def environment_fields(self) -> Entry:
        """Fields on package, machine and data: no times, no hash of the study file, no groups."""
        return {name: value for name, value in event_to_entry(self).items() if name not in NON_ENVIRONMENT_FIELDS}


NON_ENVIRONMENT_FIELDS = ("event", "time", "asleep", "spec", "groups")


class SearchExtended(BaseEvent, kind="extended"):
    """The search may try more configurations: `study resume --trials`.

    Attributes:
        trials: their total number from now on.
    """

    trials: NonNegativeInteger


class TrialsRetried(BaseEvent, kind="retried"):
    """Trials that failed, or whose first seed did, run again from their start, as a further attempt.

    Attributes:
        trials: their numbers.
    """

    trials: tuple[NonNegativeInteger, ...]


class ConfirmRequested(BaseEvent, kind="confirming"):
    """The best configurations run again on fresh seeds: `study confirm`.

    Attributes:
        top, seeds: how many of them, on how many seeds.
        rules: whether other rules' picks do, too.
    """

    top: NonNegativeInteger
    seeds: NonNegativeInteger
    rules: StrictBool = False


class AblationRequested(BaseEvent, kind="ablating"):
    """The steps from the baseline to a trial are to be measured, see `study.ranking.ablation_steps`.

    Attributes:
        trial: number of the trial whose configuration they lead to.
        steps: the keys that each step moves, in order.
        first, seeds: its training seeds: `seeds` of them, from `first` on.
    """

    trial: NonNegativeInteger
    steps: Annotated[tuple[NonEmptyKeys, ...], MinLen(1)]
    first: NonNegativeInteger
    seeds: NonNegativeInteger


class ModelEvaluated(BaseEvent, kind="evaluated", kw_only=True):
    """A trained model was evaluated after the study.

    Attributes:
        trial: whose model.
        split: on which split.
        by: the command.
    """

    trial: NonNegativeInteger | None = None
    split: str
    by: str | None = None


class TrialDecided(BaseEvent, kind="trial"):
    """A configuration was decided on, and is a trial.

    Attributes:
        trial: its number, from 0.
        stage: see `study.home.record.TrialRecord`, also for the other fields.
        enqueued: whether a user asked for it while the study ran.
        fold: on which it is validated, where the data have folds; it is no part of the configuration.
    """

    trial: NonNegativeInteger
    stage: Stage
    params: ParamValues
    seed: NonNegativeInteger
    repeats: NonNegativeInteger | None = None
    enqueued: StrictBool | None = None
    fold: NonNegativeInteger | None = None


class TrialStarted(BaseEvent, kind="started"):
    """A trial runs.

    Attributes:
        trial: its number.
        node: its HOST:PID.
        epoch: epoch of its checkpoint, after which it goes on; 0: from its first.
        note: why not after a later one.
        device: what it runs on, see `study.training.device.describe_device`.
    """

    trial: NonNegativeInteger
    node: str | None = None
    epoch: NonNegativeInteger | None = None
    note: str | None = None
    device: dict[str, str] | None = None


class NodeExcluded(BaseEvent, kind="unusable"):
    """No more trials are placed on a node.

    Attributes:
        reason: why, and the remedy.
    """

    node: str
    reason: str


class EpochReported(BaseEvent, kind="report"):
    """A trial's epoch is over.

    Attributes:
        trial: its number.
        epoch: from 1.
        metrics: by name, in the unit that the name says; None for one that is not a number.
        note: which of them are infinite.
    """

    trial: NonNegativeInteger
    epoch: NonNegativeInteger
    metrics: UncheckedMetrics
    note: str | None = None


class FoldPredicted(BaseEvent, kind="judged"):
    """The predictions of a trial's network for the samples of its fold, on which it was not trained.

    Attributes:
        trial: its number.
        predicted: the class of each and its log loss, in the data's order, see
            `study.sweep.joined_folds.FoldPredictions`.
    """

    trial: NonNegativeInteger
    predicted: str


class FoldsJoined(BaseEvent, kind="joined"):
    """A configuration has run on all folds: the metrics of all samples together.

    Attributes:
        trial: the trial whose configuration it is.
        runs: the trials on the folds.
        metrics: by name, with standard errors, see `study.sweep.joined_folds`.
        draws: the study's metrics of samples drawn anew, the same ones for every configuration.
    """

    trial: NonNegativeInteger
    runs: tuple[NonNegativeInteger, ...]
    metrics: MetricValues
    draws: dict[str, list[float]]


class EnsembleMeasured(BaseEvent, kind="ensemble"):
    """The networks of a final training's seeds as one model: the mean of their probabilities.

    Attributes:
        trials: the complete trials of its networks, two or more.
        metrics: by name, with standard errors, of the splits on which every one of them was measured; empty: none was
            left.
    """

    trials: tuple[NonNegativeInteger, ...]
    metrics: MetricValues


class RunLost(BaseEvent, kind="lost"):
    """A trial's run was cut off, and it waits for a new one.

    Attributes:
        trial: its number.
        attempt: of the new run: the `attempt`-th after the first.
        kind, reason: how and why it was cut off.
        alone: whether it runs again with a GPU to itself.
        node_died: whether its node had died.
    """

    trial: NonNegativeInteger
    attempt: NonNegativeInteger
    kind: FailureKind
    reason: str
    alone: StrictBool | None = None
    node_died: StrictBool | None = None


class TrialEnded(BaseEvent, kind="ended"):
    """A trial ended.

    Attributes:
        trial: its number.
        state: how.
        kind: how it failed, where it did.
        reason: which rule pruned it, or why it failed.
    """

    trial: NonNegativeInteger
    state: TrialOutcome
    kind: FailureKind | None = None
    reason: str | None = None


class TrialTested(BaseEvent, kind="tested"):
    """The test split was read with a trial's model.

    Attributes:
        trial: its number.
        metrics: as of a report.
        note: which of them are infinite.
    """

    trial: NonNegativeInteger
    metrics: MetricValues
    note: str | None = None


class TrialUntested(BaseEvent, kind="untested"):
    """The test split should have been read with a trial's model, and could not be.

    Attributes:
        trial: its number.
        reason: why.
    """

    trial: NonNegativeInteger
    reason: str


class ReferenceFitted(BaseEvent, kind="reference"):
    """A reference was fitted beside the search, or could not be; a later event of the same name replaces it.

    Attributes:
        name: see `study.spec.reference_models`.
        metrics: by name, of the validation split, and of test where that was read.
        seconds: of one core, of fitting and judging; for the first also of loading data and libraries.
        reason: why it could not be fitted.
        draws: where it was judged on all folds, as in `FoldsJoined`.
    """

    name: str
    metrics: MetricValues | None = None
    seconds: Seconds | None = None
    reason: str | None = None
    draws: dict[str, list[float]] | None = None


class ConfigurationEnqueued(BaseEvent, kind="enqueued"):
    """A user asked for a configuration, which the search tries next.

    Attributes:
        request: id of the request (`study.home.driver_requests`).
        params: searched keys and their values.
    """

    request: str
    params: ParamValues


class TrialStopRequested(BaseEvent, kind="stopping"):
    """A user stopped a trial, which ends at its next report.

    Attributes:
        request: id of the request.
        trial: its number.
    """

    request: str
    trial: NonNegativeInteger


class SearchEndRequested(BaseEvent, kind="ending"):
    """A user ended the search; running trials go on.

    Attributes:
        request: id of the request.
    """

    request: str


class RequestRefused(BaseEvent, kind="refused"):
    """A user's request could not be met.

    Attributes:
        request: id of the request.
        reason: why.
    """

    request: str
    reason: str


class SessionClosed(BaseEvent, kind="closed"):
    """The driver let go of the study.

    Attributes:
        state: how it ended.
        enough: which limit ended the search.
    """

    state: StudyOutcome
    enough: str | None = None


Event = (
    StudyCreated
    | SessionOpened
    | SearchExtended
    | TrialsRetried
    | ConfirmRequested
    | AblationRequested
    | ModelEvaluated
    | TrialDecided
    | TrialStarted
    | NodeExcluded
    | EpochReported
    | FoldPredicted
    | FoldsJoined
    | EnsembleMeasured
    | RunLost
    | TrialEnded
    | TrialTested
    | TrialUntested
    | ReferenceFitted
    | ConfigurationEnqueued
    | TrialStopRequested
    | SearchEndRequested
    | RequestRefused
    | SessionClosed
)
"""All events that this version writes, and that a record is folded from."""

EVENT_CLASSES: Mapping[str, type[Event]] = {kind.event: kind for kind in get_args(Event)}


class UnknownEventError(ValueError):
    """An event is of a kind that this version does not know."""


def event_to_entry(event: Event) -> Entry:
    """Return the entry that is written for an event."""
    known = {name: value for name, value in vars(event).items() if value is not None}
    asleep = {"asleep": slept} if (slept := known.pop("asleep")) else {}
    return {"event": event.event, "time": event.time, **known, **asleep}


def entry_to_event(entry: Entry) -> Event:
    """Return the event of an entry, whose `event` is known to be text.

    Raises:
        UnknownEventError: it is of a kind that this version does not know.
        ValueError: a field of it is not what it has to be; says which.
    """
    try:
        event = (_CACHED_EVENT_VALIDATORS.get(kind := str(entry["event"])) or _event_validator(kind))(entry)
    except ValidationError as error:
        raise ValueError(_invalid_fields_message(entry, error)) from None
    if "time" not in entry:
        raise ValueError("its time is None")
    if type(event) is BaseEvent:
        raise UnknownEventError
    return event


_CACHED_EVENT_VALIDATORS: dict[str, Callable[[Entry], Event]] = {}
"""Readers of the kinds that were read so far, as making one takes a millisecond."""


def _event_validator(kind: str) -> Callable[[Entry], Event]:
    reader: Callable[[Entry], Event] = TypeAdapter(EVENT_CLASSES.get(kind, BaseEvent)).validator.validate_python
    return _CACHED_EVENT_VALIDATORS.setdefault(kind, reader) if kind in EVENT_CLASSES else reader


def _invalid_fields_message(entry: Entry, error: ValidationError) -> str:
    """Return what is wrong with the fields of an event: its times, what is missing, or the first one."""
    found = {str(one["loc"][0]): one["type"] for one in error.errors(include_url=False, include_input=False)}
    missing = sorted(name for name, problem in found.items() if problem == "missing")
    times = found.keys() & {"time", "asleep"}
    if missing and not times:
        return f"it has no {missing[0]}"
    name = max(times, default=next(iter(found)))
    return f"its {name} is {shorten_text(repr(entry.get(name)), MAX_SHOWN_VALUE_CHARACTERS)}"
