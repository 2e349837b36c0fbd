"""One trial, as the ledger of its study tells it."""

from dataclasses import dataclass, field
from typing import Any

from study.home.epoch import Epoch
from study.home.events import Kind, Stage, State

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
        state: `complete`: it ran to its end; `pruned`: early stopping ended it; `interrupted`: it runs again when the
            study is resumed.
        reason: which rule pruned the trial (`BY_HAND`: a user did), or why it failed.
        kind: how a failed trial failed: PREEMPTED (its process or node died, its GPU broke), OOM (out of memory), HUNG
            (no report for too long), DIVERGED (no number), BUG (an exception in its code).
        attempt, losses: how often it was lost before its end and ran again; those where its node had not died.
        alone: it ran out of GPU memory, and runs again with a GPU to itself.
        reports: metrics of each epoch, in order.
        tested: metrics on the test split, empty if it was not read.
        untested: why it could not be read, where it should have been.
        enqueued: a user asked for its configuration while the study ran.
        stops_at: the epoch after which it ends because a user asked for that, None: nobody did.
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
    reports: list[Epoch] = field(default_factory=list)
    tested: dict[str, float] = field(default_factory=dict)
    untested: str | None = None
    started: float | None = None
    ended: float | None = None
    enqueued: bool = False
    stops_at: int | None = None
    computed: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def epochs(self) -> int:
        """Epochs that were reported."""
        return len(self.reports)

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
