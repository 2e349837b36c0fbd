"""A cluster that a driver has joined: whether its head, and this machine's node, still answer."""

import os
import socket
import time
from contextlib import suppress

import psutil

from study.upstream.environment import RECONNECT
from study.upstream.ray_internals import is_job

EVERY = 1.0
"""Seconds between two questions."""

ANSWER = 5.0
"""Seconds that a machine gets to take a connection."""

RAYS_OWN = 60.0
"""Seconds after which Ray ends a driver whose head is gone, where `RECONNECT` does not set them."""

SOONER = 10.0
"""Seconds by which that is told sooner: Ray ends the process without a word of the study's."""

FINAL = 3.0
"""Seconds that a head's process has to be gone where it cannot come back: this driver is a job on its machine, and was
given no Redis."""

RAYLET = "Ray's raylet on the driver's machine has ended"

HEAD = "Ray's head, on the driver's machine, has ended"


class JoinedRay:
    """The cluster, by the two of its processes that a driver cannot be without.

    A head that keeps its state in Redis may come back, and drivers go on: so a head is missed for as long as Ray itself
    would wait. The node of a driver that is a job takes the driver with it, within a second or two.

    Args:
        head, node: host and port of the head's gcs_server, and of this machine's raylet.
    """

    def __init__(self, head: tuple[str, int], node: tuple[str, int]) -> None:
        self._head, self._node = head, node
        self._asked, self._missed_since = 0.0, float("inf")
        is_final = is_job() and self._is_here() and not os.environ.get("RAY_REDIS_ADDRESS")
        self._patience = FINAL if is_final else max(FINAL, _reconnects() - SOONER)
        self._ended: str | None = None

    @property
    def grace(self) -> float:
        """Seconds that a driver gets to end by itself once something has ended."""
        return 0.0 if self._ended in (RAYLET, HEAD) else 10.0

    def ended(self) -> str | None:
        """Return which of them has ended; None while both answer, and while the head may come back."""
        now = time.monotonic()
        if not self._ended and now - self._asked >= EVERY:
            self._asked, missing = now, self.missing()
            self._missed_since = min(self._missed_since, now) if missing else float("inf")
            if missing in (RAYLET, HEAD) or now - self._missed_since >= self._patience:
                self._ended = missing
        return self._ended

    def missing(self) -> str | None:
        """Return which of them does not answer at this moment."""
        if _is_gone(self._node, is_here=True):
            return HEAD if self._is_here() and _is_gone(self._head, is_here=True) else RAYLET
        if _is_gone(self._head, self._is_here()):
            return f"Ray's head (its gcs_server, at {self._head[0]}:{self._head[1]}) does not answer any more"
        return None

    def all(self) -> list[psutil.Process]:
        """None: the cluster is not this process's."""
        return []

    def kill(self, tree: list[psutil.Process]) -> None:
        """Nothing."""

    def _is_here(self) -> bool:
        return self._head[0] == self._node[0]


def _is_gone(place: tuple[str, int], is_here: bool) -> bool:
    """Return whether nothing takes connections. On this machine the system takes them for a process that is kept busy,
    and only a refusal says that it has ended."""
    try:
        socket.create_connection(place, ANSWER).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return not is_here
    return False


def _reconnects() -> float:
    with suppress(ValueError):
        return float(os.environ.get(RECONNECT, RAYS_OWN))
    return RAYS_OWN
