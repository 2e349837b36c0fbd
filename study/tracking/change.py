"""What a run in MLflow lacks."""

from dataclasses import dataclass, field
from typing import NamedTuple

from study.home.ledger import Event


class Point(NamedTuple):
    """One value of a metric.

    Attributes:
        time: in milliseconds since the epoch.
        step: the epoch of training; for results of a whole study, how many trials had ended.
    """

    name: str
    value: float
    time: int
    step: int


class Input(NamedTuple):
    """One split of a data set that a run read.

    Attributes:
        name, digest: together one data set of MLflow's; `digest` is that of all splits.
        context: the split's name.
        kind: what MLflow calls the source: `http`, `local` or `code`.
        source, profile: JSON.
    """

    name: str
    digest: str
    context: str
    kind: str
    source: str
    profile: str


@dataclass
class Change:
    """Everything that several events of a ledger are for one run, so that it takes as few requests as can be.

    Applying it twice is the same as once.

    Attributes:
        key: of the run; see `Tracked.runs`.
        parent: key of the run that it is nested under, None for the study's.
        name: of the run, if it does not exist yet.
        start: when it began, in milliseconds since the epoch, if it does not exist yet.
        inputs: data that it read; one that it has already stays.
        tags: to set; `untag`: to remove.
        status: one of MLflow's, None: as it is; a new run is RUNNING.
        end: when it ended, in milliseconds since the epoch; None while it runs.
    """

    key: str
    parent: str | None = None
    name: str = ""
    start: int = 0
    tags: dict[str, str] = field(default_factory=dict)
    untag: set[str] = field(default_factory=set)
    params: dict[str, str] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    status: str | None = None
    end: int | None = None


def milliseconds(event: Event) -> int:
    """When an event was, since the epoch."""
    return int(event["time"] * 1000)
