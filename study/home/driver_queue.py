"""The queue of drivers that were submitted to a cluster, in the home that its nodes share; a driver's standing.

Each driver has an entry from before it loads anything: a light process waits until it is the first in order and there
is room for one more (`study.cluster.queued_driver`). The order is by priority; within a priority the owner who has the
fewest drivers is next, then the one who was served the longest ago, then what came first.
"""

import json
import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from study.files import read_json, write_whole
from study.home.presence import members

FOLDER = ".queue"
"""Its name in a home."""

ENTRY = "STUDY_TURN"
"""Variable that names, for a driver that was let in, the file of its entry that it has to touch."""

CLOCKS = 600.0
"""Seconds that the clock of who submits may differ from that of the cluster."""


@dataclass(frozen=True)
class Turn:
    """A driver's place.

    Attributes:
        id: of its entry.
        job: Ray's name for it.
        cluster: of whose drivers it is one.
        machine: where it is.
        came: when it was submitted, in seconds since the epoch.
        began: when it was let in; None: it waits.
    """

    id: str
    job: str
    owner: str
    cluster: str
    machine: str
    priority: int
    came: float
    began: float | None = None


def moment_of(submitted: str | None) -> float:
    """When a driver came: by the clock of who submitted it, as far as that can be believed."""
    now = time.time()
    try:
        told = float(submitted or "")
    except ValueError:
        return now
    return now if math.isnan(told) else min(max(told, now - CLOCKS), now)


def turns(queue: Path, cluster: str) -> list[Turn]:
    """The living drivers of a cluster, and those that wait."""
    return [turn for turn in members(queue / "turns", Turn) if turn.cluster == cluster]


def in_order(there: Iterable[Turn], served: Mapping[str, int]) -> list[Turn]:
    """Those that wait, the next one first.

    Args:
        there: all, those that run among them.
        served: a number for each owner that grows from one that is served to the next.
    """
    there = list(there)
    has = Counter(turn.owner for turn in there if turn.began is not None)
    last = dict(served)
    waiting = sorted((turn for turn in there if turn.began is None), key=lambda turn: (turn.came, turn.job))
    ordered: list[Turn] = []
    while waiting:
        chosen = min(waiting, key=lambda turn: (-turn.priority, has[turn.owner], last.get(turn.owner, 0)))
        waiting.remove(chosen)
        ordered.append(chosen)
        has[chosen.owner] += 1
        last[chosen.owner] = max(last.values(), default=0) + 1
    return ordered


def served(queue: Path) -> dict[str, int]:
    """Return who was served when, see `in_order`."""
    return read_json(queue / "served.json", dict[str, int]) or {}


def serve(queue: Path, owner: str) -> None:
    """Note that an owner's driver was let in."""
    before = served(queue)
    write_whole(queue / "served.json", json.dumps({**before, owner: max(before.values(), default=0) + 1}))


def publish(queue: Path, cluster: str) -> Path:
    """Write down who waits, in order, and who runs, for who looks from elsewhere; gives the file."""
    there = turns(queue, cluster)
    waiting = [turn.job for turn in in_order(there, served(queue))]
    state = {"waiting": waiting, "running": [turn.job for turn in there if turn.began is not None]}
    path = state_file(queue, cluster)
    if read_json(path, dict[str, list[str]]) != state:
        write_whole(path, json.dumps(state))
    return path


def state_file(queue: Path, cluster: str) -> Path:
    """The file with the queue's state."""
    return queue / f"state-{''.join(char if char.isalnum() else '-' for char in cluster)}.json"


# A submitted study's priority and limits among the others of its cluster, as its job was told.

MOST = 100.0
"""The highest share."""


@dataclass(frozen=True)
class Standing:
    """A driver's priority and limits among others on its cluster.

    Attributes:
        priority: of its turn to begin; higher ones first.
        share: of the trials that run at once, beside that of other studies.
        slots: trials that it may run at once at most; None: as many as there is room for.
    """

    priority: int = 0
    share: float = 1.0
    slots: int | None = None

    @classmethod
    def of(cls, metadata: Mapping[str, str]) -> "Standing":
        """From what a job was submitted with; what is no number there is left at its default."""
        values: dict[str, Any] = {}
        for name, kind in (("priority", int), ("share", float), ("slots", int)):
            with suppress(KeyError, ValueError):
                values[name] = kind(metadata[name])
        found = cls(**values)
        sound = 0 < found.share <= MOST and (found.slots is None or found.slots > 0)
        return found if sound else cls(found.priority)

    def tags(self) -> dict[str, str]:
        """Return what a job is submitted with, as `of` reads it, and the moment."""
        slots = {} if self.slots is None else {"slots": str(self.slots)}
        return {"priority": str(self.priority), "share": f"{self.share:g}", "submitted": repr(time.time()), **slots}


USUAL = Standing()
"""That of a study of which nothing is said."""
