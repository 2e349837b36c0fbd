"""What a real study took besides its epochs, read from its ledger."""

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from study.home.line import Event


@dataclass(frozen=True)
class Overheads:
    """Of the last driver of a study that ran a trial, in seconds.

    Attributes:
        begins: from its driver's start to the first trial's.
        process: from there to the first trial of each further slot.
        trial: between two trials of a slot.
        ends: from the last trial's end to the study's.
        slots: processes that ran trials.
    """

    begins: float
    process: float
    trial: float
    ends: float
    slots: int


def overheads(events: Sequence[Event]) -> Overheads | None:
    """Read them from a ledger; None where none of its drivers ran a trial."""
    opened = [place for place, event in enumerate(events) if event["event"] == "opened"]
    sittings = (events[begin:end] for begin, end in itertools.pairwise([*opened, len(events)]))
    return next(filter(None, map(_of_sitting, reversed(list(sittings)))), None)


def _of_sitting(own: Sequence[Event]) -> Overheads | None:
    starts = [event for event in own if event["event"] == "started" and event.get("node")]
    ends = {event["trial"]: event["time"] for event in own if event["event"] == "ended"}
    if not starts or not ends:
        return None
    first = starts[0]["time"]
    by_slot: dict[str, list[Event]] = defaultdict(list)
    for event in starts:
        by_slot[event["node"]].append(event)
    gaps = [
        later["time"] - ends[before["trial"]]
        for slot in by_slot.values()
        for before, later in itertools.pairwise(slot)
        if before["trial"] in ends and later["time"] >= ends[before["trial"]]
    ]
    closed = next((event["time"] for event in reversed(own) if event["event"] == "closed"), max(ends.values()))
    return Overheads(
        first - own[0]["time"],
        median([slot[0]["time"] - first for slot in by_slot.values()]),
        median(gaps) if gaps else 0.0,
        max(0.0, closed - max(ends.values())),
        len(by_slot),
    )
