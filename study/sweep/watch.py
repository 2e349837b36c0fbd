"""Whether Ray lives under a running study."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from study.sweep.agenda import Agenda
from study.sweep.joined_ray import JoinedRay
from study.sweep.own_ray import OwnRay
from study.upstream.own_ray_internals import end_at_once

EVERY = 0.25
"""Seconds between two looks."""


class RayEnded(Exception):
    """One of Ray's processes has ended under a study; the message says which, and how."""


@contextmanager
def watched(ray: OwnRay | JoinedRay, agenda: Agenda, remedy: str) -> Iterator[None]:
    """Have the agenda stop soon after one of Ray's processes has ended. Ray itself would notice within a minute, print,
    and end this process.

    Args:
        ray: gives the block a `grace` to end by itself; a call of Ray's in it may wait for an answer that never comes.
        remedy: what to do then. It is said here only where the block does not end, and this process is ended instead.

    Raises:
        RayEnded: one has.
    """
    over, lost = threading.Event(), list[str]()

    def watch() -> None:
        while not over.wait(EVERY):
            if ended := ray.ended():
                lost.append(ended)
                agenda.stopping = agenda.stopping or "interrupted"
                if not over.wait(ray.grace):
                    ray.kill(ray.all())
                    print(f"error: {ended}. {remedy}", file=sys.stderr)
                    end_at_once()
                return

    thread = threading.Thread(target=watch, name="ray's processes", daemon=True)
    thread.start()
    try:
        yield
    except BaseException:
        if ended := ray.missing():  # whatever Ray, and Tune after it, made of that
            raise RayEnded(ended) from None
        raise
    finally:
        over.set()
        thread.join()
    if lost:
        raise RayEnded(lost[0])
