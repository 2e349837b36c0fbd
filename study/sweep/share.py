"""A study's share of a cluster on which others run as well: their drivers learn of each other by files in the home.

A driver only ever limits itself: it begins no further trial while it has its share. So a slot is given over when one of
its trials ends, and no trial is ended for another study.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from study.home.presence import TOUCH, Presence, members
from study.home.sharing import LatestSharing, Sharing
from study.home.turns import ENTRY, FOLDER
from study.spec.schema import Resources
from study.sweep.fair import Peer, allotted, shares

LOOK = 1.0
"""Seconds between two looks at the others."""

UNUSED = 20.0
"""Seconds after which room that nobody takes is taken by a study that has its share already: the others want it, but
may not fit there."""


class Share:
    """What one study may have under way.

    Args:
        home: where the drivers that share the cluster tell of themselves.
        mine: this study as it joins, alone; `most` and what changes are told later.
        slots: gives how many trials it would run at once if it were alone.
        there: gives how much the nodes that it can use have of each resource.
        idle: gives how much of each resource nobody uses.
        grows: whether it asks for more than there is, so that a cluster grows.
        tell: is told of settings that cannot be used.
    """

    def __init__(
        self,
        home: Path,
        mine: Peer,
        slots: Callable[[], int],
        there: Callable[[], Mapping[str, float]],
        idle: Callable[[], Mapping[str, float]],
        grows: bool = False,
        tell: Callable[[str], object] = str,
    ) -> None:
        self._slots, self._there, self._idle, self._grows = slots, there, idle, grows
        self._settings = LatestSharing(home, tell)
        self._folder = home / FOLDER / "studies"
        self._presence = Presence(self._folder, "driver")
        self._mine = replace(mine, id=self._presence.id)
        self._limit, self._looked, self._unused = self._mine.most, 0.0, time.monotonic()
        self._running, self._extra = 0, 0
        self._told: Peer | None = None
        self._others: list[Peer] = []
        self._presence.tell(asdict(self._mine))
        self._over = threading.Event()
        threading.Thread(target=self._live, name="share", daemon=True).start()

    def limit(self, under_way: int) -> int:
        """How many trials it may have under way at this moment."""
        self._mine = replace(self._mine, under_way=under_way)
        if under_way >= self._limit:
            self.wants(True)
        if time.monotonic() - self._looked >= LOOK:
            with suppress(OSError):  # a shared disk may be away for a while: what was known goes on
                self._look()
        return self._limit

    def wants(self, more: bool) -> None:
        """Whether it would begin another trial."""
        self._mine = replace(self._mine, hungry=more)

    def runs(self, running: int) -> None:
        """How many of its trials run."""
        self._running = running
        if running and not self._mine.began:
            self._mine = replace(self._mine, began=True)

    @property
    def gives_way(self) -> bool:
        """Whether a process whose trial has ended is to be given back: it is another study's turn, or another study
        wants room that this one does not need."""
        mine = self._mine
        return any(other.hungry for other in self._others) and (mine.under_way >= self._limit or not mine.hungry)

    def close(self) -> None:
        """Share no longer."""
        self._over.set()
        self._presence.close()

    def _look(self) -> None:
        now = time.monotonic()
        passed, self._looked = min(now - self._looked, 10 * LOOK), now
        found = (Peer.of(told) for told in members(self._folder))
        others = [peer for peer in found if peer and peer.cluster == self._mine.cluster and peer.id != self._mine.id]
        if {(peer.id, peer.hungry) for peer in others} != {(peer.id, peer.hungry) for peer in self._others}:
            self._extra = 0
        self._others = others
        settings, there = self._settings(), self._there()
        self._mine = replace(self._mine, most=self._slots())
        everybody = [self._mine, *self._others]
        self._be_served(passed, shares(everybody, settings)[self._mine.id], there)
        everybody[0] = self._mine
        self._limit = self._limited(everybody, there, settings)
        if self._mine != self._told:
            self._presence.tell(asdict(self._mine))
            self._told = self._mine

    def _be_served(self, seconds: float, share: float, there: Mapping[str, float]) -> None:
        """Count what this study has had. One that joins, or did not want any, has had as much as who has had least."""
        hungry = [other.served for other in self._others if other.hungry or self._told is None]
        served = self._mine.served + seconds * self._running * self._mine.size(there) / share
        if hungry and (self._told is None or (not self._mine.hungry and not self._running)):
            served = max(served, min(hungry))
        self._mine = replace(self._mine, served=served)

    def _limited(self, everybody: list[Peer], there: Mapping[str, float], settings: Sharing) -> int:
        mine, cap = self._mine, settings.of(self._mine.owner).slots
        if not self._others:
            return mine.most if cap is None else min(mine.most, cap)
        everybody[0] = replace(mine, hungry=True)  # what it would have if it wanted more: it may ask for so many
        given = allotted(everybody, there, settings)
        limit = given[mine.id]
        of_owner = sum(given[peer.id] for peer in everybody if peer.owner == mine.owner)
        if cap is not None and of_owner >= cap:
            return limit
        owed = any(other.hungry and other.under_way < given[other.id] for other in self._others)
        if mine.cpu > there.get("CPU", 0.0) or mine.gpu > there.get("GPU", 0.0):
            return 1  # waits for a node
        if self._grows and not owed:
            return min(mine.most, limit + 1)  # waits for room: a cluster that grows by itself hears of it
        self._take_what_is_unused(limit + self._extra)
        return min(mine.most, limit + self._extra)

    def _take_what_is_unused(self, limit: int) -> None:
        """One more where there was room for a trial for a while, and nobody took it; that stays until another study
        comes, goes or changes its mind."""
        mine, idle = self._mine, dict[str, float]()
        if mine.under_way >= limit and self._running == mine.under_way:
            idle = dict(self._idle())
        if not idle or mine.cpu > idle.get("CPU", 0.0) + 1e-9 or mine.gpu > idle.get("GPU", 0.0) + 1e-9:
            self._unused = time.monotonic()
        elif time.monotonic() - self._unused >= UNUSED:
            self._unused = time.monotonic()
            self._extra += 1

    def _live(self) -> None:
        turn = os.environ.get(ENTRY)
        while not self._over.wait(TOUCH):
            with suppress(OSError):
                self._presence.touch()
            if turn:
                with suppress(OSError):
                    os.utime(turn)


def newcomer(owner: str, cluster: str, resources: Resources, share: float, most: int) -> Peer:
    """A study that joins."""
    return Peer("", owner, cluster, share, most, resources.cpu, resources.gpu, 0, True, False, 0.0, time.time())
