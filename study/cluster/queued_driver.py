"""What a driver's job runs first: a light process that waits for its turn, then becomes the driver.

`python -m study.cluster.queued_driver ARGUMENTS` waits, and then runs `python -m study ARGUMENTS` in its own place.
Ray's own way, resources of the job, is not used: a job that waits for them longer than `RAY_JOB_START_TIMEOUT_SECONDS`
(900) has failed; one that declares any is placed on whichever node has them, where its data need not be; and a head
with `--num-cpus=0` has no CPUs for it. See `study.home.driver_queue` for the order and `has_room` for the room.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType
from typing import Never

import psutil

from study.home.driver_queue import ENTRY, FOLDER, Standing, Turn, in_order, moment_of, publish, serve, served, turns
from study.home.lease import machine
from study.home.presence import Presence, locked
from study.home.sharing import LatestSharing, Sharing
from study.text import tell
from study.upstream.ray_internals import job_logs, job_metadata

# How many drivers the machine that they run on carries.

DRIVER = 2**30
"""Bytes that a driver is counted with."""

ITSELF = 2 * 2**30
"""Bytes that Ray's own processes, its object store and the system take."""

PER_CORE = 4
"""Drivers for each processor at most: each takes a part of one while its trials run."""

YOUNG = 60.0
"""Seconds until a driver has the memory that it will have."""

LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
USED = (Path("/sys/fs/cgroup/memory.current"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"))


def most(settings: Sharing) -> int:
    """Drivers that may run at once on this machine: as the settings say, else what fits it; one always does."""
    if settings.drivers is not None:
        return settings.drivers
    total = psutil.virtual_memory().total
    fits = (min(total, memory_limit() or total) - ITSELF) // DRIVER
    return max(1, min(fits, PER_CORE * (os.cpu_count() or 1)))


def has_room(running: Iterable[Turn], settings: Sharing, now: float) -> bool:
    """Return whether one more driver may begin on this machine, besides those that run on it.

    Args:
        now: seconds since the epoch.
    """
    running = list(running)
    if not running:
        return True
    if len(running) >= most(settings):
        return False
    young = sum(now - turn.began < YOUNG for turn in running if turn.began is not None)
    return free_memory() >= (young + 1) * DRIVER


def free_memory() -> int:
    """Bytes that this machine can give, within a container's limit."""
    free, limit, used = psutil.virtual_memory().available, memory_limit(), _number(USED)
    return free if limit is None or used is None else min(free, limit - used)


def memory_limit() -> int | None:
    """Bytes that the container may use, None if it has no limit."""
    return _number(LIMITS)


def _number(paths: Iterable[Path]) -> int | None:
    for path in paths:
        try:
            return int(path.read_text(encoding="ascii"))
        except (OSError, ValueError):  # no such file, or it contains `max`
            continue
    return None


LOOK = 1.0
"""Seconds between two looks at the queue."""

WINDOW = "study-queue.json"
"""Name, among the logs of the node's Ray, of a link to the queue's state: what `study jobs` reads from elsewhere."""


class Queue:
    """The queue of one cluster, with this process in it."""

    def __init__(self, home: Path, cluster: str, metadata: dict[str, str]) -> None:
        self.path, self.cluster = home / FOLDER, cluster
        self._job = metadata.get("job_submission_id") or f"process-{os.getpid()}"
        self._priority, self._came = Standing.of(metadata).priority, moment_of(metadata.get("submitted"))
        self._settings = LatestSharing(home, tell)
        self._enter()

    def look(self) -> tuple[int, int]:
        """The place in the queue, and of how many; 0: it is this process's turn, and the queue says so from now on.

        Raises:
            OSError: the home cannot be read or written at this moment.
        """
        if not self.presence.alive.exists():  # it was taken for dead, as after a long stop on a shared disk
            self._enter()
        settings, mine = self._settings(), self._mine
        with locked(self.path / "lock") as had:
            there = turns(self.path, self.cluster)
            waiting = in_order(there, served(self.path))
            place = next((number for number, turn in enumerate(waiting, 1) if turn.id == mine.id), 1)
            first = next((turn for turn in waiting if turn.machine == mine.machine), mine)
            running = [turn for turn in there if turn.began is not None and turn.machine == mine.machine]
            now = time.time()
            if had and first.id == mine.id and has_room(running, settings, now):
                self.presence.tell(asdict(replace(mine, began=now)))
                serve(self.path, mine.owner)
                place = 0
            _show(publish(self.path, self.cluster))
        self.presence.touch()
        return place, len(waiting)

    def _enter(self) -> None:
        self.presence = Presence(self.path / "turns", self._job)
        owner = os.environ.get("STUDY_OWNER", "")
        self._mine = Turn(self.presence.id, self._job, owner, self.cluster, machine(), self._priority, self._came)
        self.presence.tell(asdict(self._mine))


def wait(home: Path, cluster: str) -> None:
    """Until it is this process's turn; its entry stays until the process ends.

    Raises:
        KeyboardInterrupt: it was stopped.
        OSError: the home cannot be written.
    """
    queue, before = Queue(home, cluster, job_metadata()), ""
    try:
        while True:
            try:
                place, waiting = queue.look()
                told = f"waits for its turn: place {place} of {waiting}"
            except OSError as error:  # a shared disk may be away for a while
                place, told = 1, f"waits for its turn: {error}"
            if not place:
                break
            if told != before:
                tell(told)
            before = told
            time.sleep(LOOK)
    except BaseException:
        queue.presence.close()
        with suppress(OSError):
            publish(queue.path, cluster)
        raise
    os.environ[ENTRY] = str(queue.presence.alive)


def main(arguments: Sequence[str]) -> Never:
    """Wait, then run the command in this process's place."""
    signal.signal(signal.SIGTERM, _stop)
    home, cluster = os.environ.get("STUDY_HOME"), os.environ.get("RAY_ADDRESS")
    try:
        if home and cluster:
            wait(Path(home).absolute(), cluster)
    except KeyboardInterrupt:
        tell("stopped while it waited for its turn; nothing was begun")
        sys.exit(130)
    except OSError as error:  # the command itself tells of a home that cannot be written
        tell(f"does not wait for a turn: {error}")
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.execv(sys.executable, [sys.executable, "-m", "study", *arguments])


def _stop(number: int, frame: FrameType | None) -> Never:
    raise KeyboardInterrupt


def _show(state: Path) -> None:
    """Have the queue's state among the logs of this node's Ray."""
    folder = job_logs()
    if folder is None:
        return
    link = folder / WINDOW
    with suppress(OSError):
        if not link.is_symlink() or os.readlink(link) != str(state):
            link.unlink(missing_ok=True)
            link.symlink_to(state)


if __name__ == "__main__":
    main(sys.argv[1:])
