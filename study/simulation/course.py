"""What came of a simulated study."""

from dataclasses import dataclass, field
from typing import Any

from study.home.record import StudyRecord


@dataclass(frozen=True)
class Step:
    """The search's best changed.

    Attributes:
        seconds, epochs, money: since the study began; epochs of all trials, lost ones too.
        trial: its number.
        value: what the search knows of it.
        fresh: what it is worth on fresh seeds, None: not known.
    """

    seconds: float
    epochs: int
    money: float
    trial: int
    value: float
    fresh: float | None


@dataclass
class Course:
    """One course of a simulated study.

    Attributes:
        record: its trials, as a ledger would tell them.
        best: the search's best complete configuration, whenever it changed.
        seconds, money: of the whole study.
        search: seconds, epochs and money when the last trial of the search ended.
        epochs: of all trials, lost ones too; `lost`: those that ran again.
        state: how it ended: complete, failed.
        preempted: nodes that were taken away.
        events: how many of each the ledger would hold.
        busy: seconds that trials ran, summed.
        busiest: reports within a minute, at most.
    """

    record: StudyRecord
    best: list[Step] = field(default_factory=list)
    seconds: float = 0.0
    money: float = 0.0
    search: tuple[float, int, float] = (0.0, 0, 0.0)
    epochs: int = 0
    lost: int = 0
    state: str = "complete"
    preempted: int = 0
    events: dict[str, int] = field(default_factory=dict)
    busy: float = 0.0
    busiest: int = 0

    @property
    def trials(self) -> int:
        """Configurations that were tried."""
        return sum(1 for _ in self.record.by_stage("baseline", "search"))

    def found(self) -> Step | None:
        """The search's best at its end, None where no trial is complete."""
        return self.best[-1] if self.best else None

    def to_document(self) -> dict[str, Any]:
        """As plain values, without the trials."""
        keys = ("seconds", "money", "epochs", "lost", "state", "preempted", "trials")
        best = [vars(step) for step in self.best]
        return {key: getattr(self, key) for key in keys} | {"best": best}
