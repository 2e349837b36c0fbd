"""A study's share of a cluster that runs other studies too, whose drivers learn of each other by files in the home.

A driver only ever limits itself: it begins no further trial while it has its share. So a slot passes to another study
when a trial ends, and no trial is ended for another study.

Owners have equal shares; an owner's share is divided equally among those of their studies that want more. What a study
does not want, the others get. Slots are whole: one that is left over, as where there are fewer slots than studies,
goes first to a study that has had no trial yet, the longest waiting first; then to the study that has had the least of
the cluster for its share so far; then to the newest. If a trial of that study needs more than is left, room is made for
it: studies whose turn is later get fewer, until their turn is earlier again.
"""

import json
import math
import os
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import Annotated

from annotated_types import Ge, Lt

from study.files import read_json_or_none, write_atomically
from study.spec.schema import TrialResources

FAIRNESS_QUANTUM_S = 60.0
"""Seconds of a slot by which studies may differ in what they have had before one gives way to another: each change
costs the start of a process."""

UNBOUNDED_SLOTS = 2.0**40
"""More slots than there can be."""

MAX_PEER_AMOUNT = 10**15
"""Bound of the numbers that a driver tells."""

NonNegativeAmount = Annotated[float, Ge(0), Lt(MAX_PEER_AMOUNT)]


@dataclass(frozen=True)
class StudyPeer:
    """A study that runs on a cluster, as its driver tells the others.

    Attributes:
        most: trials that it would run at once if it were alone.
        cpu, gpu: of one trial.
        under_way: trials that it has handed out.
        hungry: whether it would begin more.
        began: whether a trial of it has run.
        served: what it has had so far, in seconds of the whole cluster, over its share.
        since: when it joined, in seconds since the epoch.
    """

    id: str
    owner: str
    cluster: str
    most: Annotated[int, Ge(0), Lt(MAX_PEER_AMOUNT)]
    cpu: NonNegativeAmount
    gpu: NonNegativeAmount
    under_way: Annotated[int, Ge(0), Lt(MAX_PEER_AMOUNT)]
    hungry: bool
    began: bool
    served: NonNegativeAmount
    since: NonNegativeAmount

    @property
    def wanted_slots(self) -> int:
        """Number of trials that it would have under way."""
        return max(self.most, self.under_way) if self.hungry else self.under_way

    def cluster_part_of_one_trial(self, capacity: Mapping[str, float]) -> float:
        """Return the part of the cluster that one trial takes, of the resource of which it takes the largest part."""
        amounts = (("CPU", self.cpu), ("GPU", self.gpu))
        return max([amount / capacity[name] for name, amount in amounts if capacity.get(name)] or [0.0])


def relative_shares(peers: Sequence[StudyPeer]) -> dict[str, float]:
    """Return the share of each study beside all others."""
    hungry = Counter(peer.owner for peer in peers if peer.hungry)
    return {peer.id: 1 / (hungry[peer.owner] + (not peer.hungry)) for peer in peers}


def allot_slots(peers: Sequence[StudyPeer], capacity: Mapping[str, float]) -> dict[str, int]:
    """Return how many trials each study is to have under way.

    Args:
        capacity: amount of each resource, on the nodes that count.
    """
    share, size = relative_shares(peers), {peer.id: peer.cluster_part_of_one_trial(capacity) for peer in peers}
    per_share = {one: share[one] / size[one] if size[one] else UNBOUNDED_SLOTS for one in size}
    level = _divide_slots_fractionally(peers, capacity, per_share)
    given = {one: math.floor(amount + 1e-6) for one, amount in level.items()}
    left = _remaining_resources(peers, capacity, given)
    quantum = FAIRNESS_QUANTUM_S * min([of for of in size.values() if of] or [1.0])
    by_id, before = {peer.id: peer for peer in peers}, dict(given)

    def turn(peer: StudyPeer) -> tuple[bool, float]:
        return peer.began, peer.served // quantum if peer.began else 0.0

    def rank(peer: StudyPeer) -> tuple[int, bool, float, float, str]:
        return given[peer.id] - before[peer.id], *turn(peer), -peer.since if peer.began else peer.since, peer.id

    def give(peer: StudyPeer, slots: int) -> None:
        given[peer.id] += slots
        left["CPU"] -= slots * peer.cpu
        left["GPU"] -= slots * peer.gpu

    def fits(peer: StudyPeer) -> bool:
        return peer.cpu <= left["CPU"] + 1e-9 and peer.gpu <= left["GPU"] + 1e-9

    def make_room(peer: StudyPeer) -> None:
        """Take slots from studies whose turn is later, the latest first; take none if that is not enough."""
        taken = []
        for other in sorted((one for one in peers if turn(one) > turn(peer)), key=turn, reverse=True):
            while given[other.id] and not fits(peer):
                give(other, -1)
                taken.append(other)
        if not fits(peer):
            for other in taken:
                give(other, 1)

    wanting = [rank(peer) for peer in peers if given[peer.id] < peer.wanted_slots]
    heapify(wanting)
    while wanting:
        peer = by_id[heappop(wanting)[-1]]
        if not fits(peer) and given[peer.id] == before[peer.id] < level[peer.id] - 1e-3:  # owed a part of a slot
            make_room(peer)
        if fits(peer):
            give(peer, 1)
            if given[peer.id] < peer.wanted_slots:
                heappush(wanting, rank(peer))
    return given


def _divide_slots_fractionally(
    peers: Sequence[StudyPeer], capacity: Mapping[str, float], per_share: Mapping[str, float]
) -> dict[str, float]:
    """Return fractional slots: each study gets its share of the highest level that fits, and no more than it wants.

    Args:
        per_share: slots of each study for a level of 1.
    """

    def amounts(level: float) -> dict[str, float]:
        wanted = {peer.id: peer.wanted_slots if _fits_cluster(peer, capacity) else 0.0 for peer in peers}
        return {one: min(most, level * per_share[one]) for one, most in wanted.items()}

    low, high = 0.0, 1.0
    while min(_remaining_resources(peers, capacity, amounts(high)).values()) >= 0 and high < UNBOUNDED_SLOTS:
        low, high = high, 2 * high
    for _ in range(50):
        level = (low + high) / 2
        fits = min(_remaining_resources(peers, capacity, amounts(level)).values()) >= -1e-9
        low, high = (level, high) if fits else (low, level)
    return amounts(low)


def _fits_cluster(peer: StudyPeer, capacity: Mapping[str, float]) -> bool:
    return peer.cpu <= capacity.get("CPU", 0.0) and peer.gpu <= capacity.get("GPU", 0.0)


def _remaining_resources(
    peers: Sequence[StudyPeer], capacity: Mapping[str, float], given: Mapping[str, float]
) -> dict[str, float]:
    """Return what is left of each resource."""
    cpu = sum(peer.cpu * given[peer.id] for peer in peers)
    gpu = sum(peer.gpu * given[peer.id] for peer in peers)
    return {"CPU": capacity.get("CPU", 0.0) - cpu, "GPU": capacity.get("GPU", 0.0) - gpu}


PEERS_FOLDER = ".sharing"
"""Name of the folder, in the home, with a file for each driver: what it tells the others."""

HEARTBEAT_INTERVAL_S, PEER_EXPIRY_S = 5.0, 60.0
"""Seconds between two signs of life of a driver, and from the last one until it counts as dead: whoever sees that
removes its file."""

PEERS_POLL_INTERVAL_S = 1.0
"""Seconds between two looks at the others."""

UNUSED_SLOT_DELAY_S = 20.0
"""Seconds after which a study that has its share takes room that nobody takes: others want it, but may not fit
there."""


class ClusterShare:
    """The share of slots of one study.

    Args:
        home: where the drivers that share the cluster have their files.
        mine: this study as it joins, alone; `most` and what changes are set later.
        slots: returns how many trials it would run at once if it were alone.
        capacity: returns how much the nodes that it can use have of each resource.
        idle: returns how much of each resource nobody uses.
        grows: whether it asks for more than there is, so that a cluster grows.
    """

    def __init__(
        self,
        home: Path,
        mine: StudyPeer,
        slots: Callable[[], int],
        capacity: Callable[[], Mapping[str, float]],
        idle: Callable[[], Mapping[str, float]],
        grows: bool = False,
    ) -> None:
        self._slots, self._capacity, self._idle, self._grows = slots, capacity, idle, grows
        self._folder = home / PEERS_FOLDER
        self._folder.mkdir(parents=True, exist_ok=True)
        self._mine = replace(mine, id=secrets.token_hex(4))
        self._file = self._folder / f"{self._mine.id}.json"
        self._limit, self._looked, self._unused = self._mine.most, 0.0, time.monotonic()
        self._running, self._waiting, self._extra = 0, False, 0
        self._told: StudyPeer | None = None
        self._others: list[StudyPeer] = []
        self._write_peer_file()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._heartbeat, name="share", daemon=True)
        self._thread.start()

    def trial_limit(self, under_way: int) -> int:
        """Return how many trials it may have under way at this moment."""
        self._mine = replace(self._mine, under_way=under_way)
        if under_way >= self._limit:
            self.note_wants_more(True)
        if time.monotonic() - self._looked >= PEERS_POLL_INTERVAL_S:
            with suppress(OSError):  # a shared disk may be away for a while: the last limit stays
                self._update_limit()
        return self._limit

    def note_wants_more(self, more: bool) -> None:
        """Note whether it would begin another trial."""
        self._mine = replace(self._mine, hungry=more)

    def note_running_trials(self, running: int, waiting: bool = False) -> None:
        """Note how many of its trials run; `waiting`: another one has no process yet."""
        self._running, self._waiting = running, waiting
        if running and not self._mine.began:
            self._mine = replace(self._mine, began=True)

    @property
    def has_to_give_way(self) -> bool:
        """Whether a worker whose trial has ended is to be given back.

        So it is where it is another study's turn, or another study wants room that this one does not need.
        """
        mine, wanted = self._mine, any(other.hungry for other in self._others)
        return wanted and not self._waiting and (mine.under_way >= self._limit or not mine.hungry)

    def close(self) -> None:
        """Stop sharing, and remove this study's file."""
        self._over.set()
        self._thread.join()
        with suppress(OSError):
            self._file.unlink()

    def _update_limit(self) -> None:
        now = time.monotonic()
        passed, self._looked = min(now - self._looked, 10 * PEERS_POLL_INTERVAL_S), now
        if not self._file.exists():  # it was taken for dead, as after a long stop
            self._write_peer_file()
        others = [peer for peer in self._read_other_peers() if peer.cluster == self._mine.cluster]
        if {(peer.id, peer.hungry) for peer in others} != {(peer.id, peer.hungry) for peer in self._others}:
            self._extra = 0
        self._others = others
        capacity = self._capacity()
        self._mine = replace(self._mine, most=self._slots())
        everybody = [self._mine, *self._others]
        self._add_served_seconds(passed, relative_shares(everybody)[self._mine.id], capacity)
        everybody[0] = self._mine
        self._limit = self._allotted_slots(everybody, capacity)
        if self._mine != self._told:
            self._write_peer_file()
            self._told = self._mine

    def _add_served_seconds(self, seconds: float, share: float, capacity: Mapping[str, float]) -> None:
        """Count what this study has had.

        One that joins, or did not want any, is set to the least that any study has had.
        """
        hungry = [other.served for other in self._others if other.hungry or self._told is None]
        served = self._mine.served + seconds * self._running * self._mine.cluster_part_of_one_trial(capacity) / share
        if hungry and (self._told is None or (not self._mine.hungry and not self._running)):
            served = max(served, min(hungry))
        self._mine = replace(self._mine, served=served)

    def _allotted_slots(self, everybody: list[StudyPeer], capacity: Mapping[str, float]) -> int:
        mine = self._mine
        if not self._others:
            return mine.most
        everybody[0] = replace(mine, hungry=True)  # what it would have if it wanted more: it may ask for so many
        given = allot_slots(everybody, capacity)
        limit = given[mine.id]
        owed = any(other.hungry and other.under_way < given[other.id] for other in self._others)
        if not _fits_cluster(mine, capacity):
            return 1  # waits for a node
        if self._grows and not owed:
            return min(mine.most, limit + 1)  # waits for room: a cluster that grows by itself hears of it
        self._take_unused_slot(limit + self._extra)
        return min(mine.most, limit + self._extra)

    def _take_unused_slot(self, limit: int) -> None:
        """Add a slot if there was room for a trial for a while and nobody took it.

        It stays until another study comes, goes, or changes what it wants.
        """
        mine, idle = self._mine, dict[str, float]()
        if mine.under_way >= limit and self._running == mine.under_way:
            idle = dict(self._idle())
        if not idle or mine.cpu > idle.get("CPU", 0.0) + 1e-9 or mine.gpu > idle.get("GPU", 0.0) + 1e-9:
            self._unused = time.monotonic()
        elif time.monotonic() - self._unused >= UNUSED_SLOT_DELAY_S:
            self._unused = time.monotonic()
            self._extra += 1

    def _write_peer_file(self) -> None:
        write_atomically(self._file, json.dumps(asdict(self._mine)))

    def _read_other_peers(self) -> list[StudyPeer]:
        """Return what each other living driver tells; skip what cannot be read."""
        now, found = self._file.stat().st_mtime, []  # by the file system's clock, which all share
        for path in sorted(self._folder.glob("*.json")):
            if path == self._file:
                continue
            with suppress(OSError):  # one that cannot be read, or not be removed, is no reason to overlook the others
                if now - path.stat().st_mtime > PEER_EXPIRY_S:
                    path.unlink()
                elif (peer := read_json_or_none(path, StudyPeer)) and peer.id == path.stem:
                    found.append(peer)
        return found

    def _heartbeat(self) -> None:
        while not self._over.wait(HEARTBEAT_INTERVAL_S):
            with suppress(OSError):
                os.utime(self._file)


def new_peer(owner: str, cluster: str, resources: TrialResources, most: int) -> StudyPeer:
    """Return a study that joins."""
    return StudyPeer("", owner, cluster, most, resources.cpu, resources.gpu, 0, True, False, 0.0, time.time())
