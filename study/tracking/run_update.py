"""What a run in MLflow lacks."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
class RunUpdate:
    """Everything that several events of a ledger are for one run, so that it takes as few requests as can be.

    Applying it twice is the same as once.

    Attributes:
        key: of the run; see `Tracked.runs`.
        parent: key of the run that it is nested under, None for the study's.
        name: of the run, if it does not exist yet; `rename`: from now on, None: as it is.
        start: when it began, in milliseconds since the epoch, if it does not exist yet.
        inputs: data that it read; one that it has already stays.
        tags: to set; `untag`: to remove.
        status: one of MLflow's, None: as it is; a new run is RUNNING.
        end: when it ended, in milliseconds since the epoch; None while it runs.
    """

    key: str
    parent: str | None = None
    name: str = ""
    rename: str | None = None
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


# A study's data sets as MLflow's inputs: one per split.


CONTEXT = "mlflow.data.context"
"""The tag of an input that says what it was read for."""


def inputs(section: Mapping[str, Any], told: Mapping[str, Any]) -> list[Input]:
    """The splits of one data set.

    Args:
        section: the `data` section.
        told: what the ledger says of it, see `study.data.inventory`.
    """
    kind, source = _source(str(section["name"]), told["sources"])
    digest, shape = told["digest"], told.get("shape")
    return [
        Input(
            f"{told['title']}, {split}"[:MOST],
            digest[:DIGEST],
            split,
            kind,
            source,
            json.dumps({"num_rows": rows, "shape": shape}),
        )
        for split, rows in told["rows"].items()
    ]


def _source(name: str, sources: list[str]) -> tuple[str, str]:
    """Its kind and what MLflow keeps of it: the first address, and all where there are more."""
    if not sources:
        return "code", json.dumps({"tags": {"mlflow.source.name": f"study.data.sets.{name}"}})
    several = {"files": sources} if len(sources) > 1 else {}
    if sources[0].startswith(("http://", "https://")):
        return "http", json.dumps({"url": sources[0], **several})
    return "local", json.dumps({"uri": sources[0], **several})


MOST, DIGEST = 500, 36
"""Characters of a name and a digest that MLflow takes."""
