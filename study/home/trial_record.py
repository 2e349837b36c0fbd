"""One trial, as the ledger of its study tells it."""

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from study.home.events import FailureKind, ParamValues, Stage, TrialState
from study.spec.objective import Objective

NAN = float("nan")

_METRIC_POSITIONS_BY_NAMES: dict[tuple[str, ...], dict[str, int]] = {}
"""Position of each metric, by the names of an epoch's metrics; the same object for most epochs of a study."""

MAX_METRIC_MAGNITUDE = 1e100
"""Larger numbers, of either sign, count as infinite, as sums of their squares are."""


def finite_metrics(metrics: Mapping[str, float]) -> dict[str, float | None]:
    """Return metrics as a ledger keeps them: None for what is not a number, or infinite, see `MAX_METRIC_MAGNITUDE`."""
    return {name: value if abs(value) <= MAX_METRIC_MAGNITUDE else None for name, value in metrics.items()}


def infinite_metrics_note(metrics: Mapping[str, float]) -> str | None:
    """Return which metrics are infinite, or count as such, and what a ledger keeps of them; None: none."""
    large = [f"{name} is {value:.4g}" for name, value in metrics.items() if abs(value) > MAX_METRIC_MAGNITUDE]
    return f"{', '.join(large)}: kept as null" if large else None


class EpochMetrics(Mapping[str, float | None]):
    """Metrics of one epoch by name, and `epoch`, from 1; None for one that is not a number.

    It is small, as a study of 10,000 trials of 50 epochs has half a million: it holds numbers alone, and shares the
    names with all epochs that have the same ones.
    """

    __slots__ = ("_places", "_values")

    def __init__(self, epoch: int, metrics: Mapping[str, float | None]) -> None:
        names = tuple(metrics)
        if names not in _METRIC_POSITIONS_BY_NAMES:
            _METRIC_POSITIONS_BY_NAMES[names] = {name: place for place, name in enumerate(("epoch", *names))}
        self._places = _METRIC_POSITIONS_BY_NAMES[names]
        self._values: array[float]
        try:
            self._values = array("d", (epoch, *metrics.values()))  # type: ignore[arg-type]
        except TypeError:  # rarely, one of them is None
            self._values = array("d", [epoch, *(NAN if value is None else value for value in metrics.values())])

    @property
    def positions_by_name(self) -> Mapping[str, int]:
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
        return f"EpochMetrics({dict(self)})"


STOPPED_BY_USER_REASON = "a user"
"""Reason of the end of a trial that a user stopped."""

SPACE_EXHAUSTED_REASON = "every configuration of the space"
"""Reason of the end of a search that has nothing left to try."""


ChosenMetricsCache = dict[Objective, tuple[EpochMetrics, Mapping[str, float | None]]]
"""Metrics at the epochs that objectives chose (`study.ranking.chosen_epoch`), with the last report at that time."""


@dataclass
class TrialRecord:
    """One trial: what it is, and its newest run.

    Attributes:
        number: from 0, in the order in which trials were decided on.
        stage: the search saw baseline and search trials, and replicates, which count with them, on further seeds;
            confirm trials repeat the best on fresh seeds, rule trials other rules' picks; ablation trials are the steps
            from the baseline to the best; final trials train an export.
        params: searched keys and their values.
        seed: `train.seed` of this trial.
        repeated_trial: number of the trial whose configuration a replicate, confirm or rule trial repeats; for an
            ablation trial the baseline or the best, where it repeats one of them.
        is_enqueued: whether a user asked for its configuration while the study ran.
        fold: on which it is validated; None: the data have no folds, or it is trained on all of them.
        attempt, n_retries_used: how often the trial was lost before its end, or failed, and ran again; losses since
            its last failure where its node had not died.
        needs_gpu_alone: whether it ran out of GPU memory, and runs again with a GPU to itself.
        node, device: where it last ran, see `study.training.device.describe_device`; empty: not known.
        reports: metrics of each epoch, in order.
        state: `complete`: it ran to its end; `pruned`: early stopping ended it; `interrupted`: it runs again when
            the study is resumed.
        reason: which rule pruned it (`STOPPED_BY_USER_REASON`: a user did), or why it failed.
        failure_kind: how it failed: PREEMPTED (its process or node died, its GPU broke), OOM (out of memory), HUNG (no
            report for too long), DIVERGED (no number), BUG (an exception in its code).
        test_metrics: metrics on the test split, None for one that is not a number; empty if it was not read.
        test_failure: why it could not be read, where it should have been; None once it was.
        started_at, ended_at: its last run, in seconds since the epoch.
        session_ended_at: end of the session in which it ran; None: it runs, has not begun or ended before that.
        seconds_asleep: seconds of its last run in which its driver, or the machine, slept; less those by which the
            clock was set back.
        stop_epoch: the epoch after which it ends because a user asked for that, None: nobody did.
        fold_predictions: its predictions for the samples of its fold, see `study.home.events.FoldPredicted`; None:
            nothing is kept.
        chosen_metrics_cache: its values at the chosen epoch by rule, until there is a further report
            (`study.ranking.chosen_epoch`).
    """

    number: int
    stage: Stage
    params: ParamValues
    seed: int
    repeated_trial: int | None = None
    is_enqueued: bool = False
    fold: int | None = None
    attempt: int = 0
    n_retries_used: int = 0
    needs_gpu_alone: bool = False
    node: str | None = None
    device: dict[str, str] = field(default_factory=dict)
    reports: list[EpochMetrics] = field(default_factory=list)
    state: TrialState = "waiting"
    reason: str | None = None
    failure_kind: FailureKind | None = None
    test_metrics: dict[str, float | int | None] = field(default_factory=dict)
    test_failure: str | None = None
    started_at: float | None = None
    ended_at: float | None = None
    session_ended_at: float | None = None
    seconds_asleep: float = 0.0
    stop_epoch: int | None = None
    fold_predictions: str | None = None
    chosen_metrics_cache: ChosenMetricsCache = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def has_started(self) -> bool:
        """Whether it ran, perhaps in an attempt before the one that waits now."""
        return self.state != "waiting" or self.attempt > 0

    @property
    def n_epochs(self) -> int:
        """Number of epochs that were reported."""
        return len(self.reports)

    @property
    def total_run_seconds(self) -> float | None:
        """Length of its last run, without what was slept meanwhile; None where it has not ended."""
        if self.ended_at is None or self.started_at is None:
            return None if self.ended_at is None else 0.0
        return self.ended_at - self.seconds_asleep - self.started_at

    @property
    def n_test_readings(self) -> int:
        """Number of times that the test split was read with its model.

        That is at its end, and in each epoch where `train.report_test` asks for it.
        """
        in_epochs = self.n_epochs if self.reports and any(name.startswith("test/") for name in self.reports[0]) else 0
        return bool(self.test_metrics) + in_epochs

    def restart(self) -> None:
        """Return to before the first epoch, as a further attempt."""
        decided = self.number, self.stage, self.params, self.seed, self.repeated_trial, self.is_enqueued, self.fold
        again = TrialRecord(*decided, self.attempt + 1, needs_gpu_alone=self.needs_gpu_alone)
        again.node, again.device = self.node, self.device
        vars(self).update(vars(again))

    @property
    def has_reached_stop_epoch(self) -> bool:
        """Whether a user asked for its end, and the report at which it ends has come."""
        return self.stop_epoch is not None and self.n_epochs >= self.stop_epoch

    @property
    def end_reason(self) -> str | None:
        """The rule that pruned the trial, or why it failed: kind and reason, or the reason alone where it says both."""
        kind, reason = self.failure_kind, self.reason
        if not kind or kind == "BUG" or (reason or "").startswith(f"{kind.lower()}: "):
            return reason
        return f"{kind}: {reason}"

    def last_metric(self, metric: str) -> float | None:
        """Return the metric at the last reported epoch, None if there is none or it is not a number."""
        return self.reports[-1].get(metric) if self.reports else None
