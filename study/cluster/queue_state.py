"""Who waits and who runs on a cluster, as its queue says, from outside of its network."""

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from study.cluster.job import Job
from study.cluster.turn import WINDOW
from study.errors import UserError


def with_places(read: Callable[[str, str], Iterable[bytes]], jobs: Sequence[Job]) -> list[Job]:
    """The jobs, with the state `waiting` and their places where the queue has them so.

    For Ray such a job runs. Where no node tells of a queue, as one that was started before there was one, each job is
    what Ray says.

    Args:
        read: gives a file among a node's logs in blocks, see `study.cluster.head.Head.file`.
    """
    places: dict[str, int] = {}
    nodes = dict.fromkeys(job.node for job in reversed(jobs) if job.state == "running" and job.node)
    for node in nodes:
        with suppress(UserError, ValueError, TypeError, KeyError, RecursionError):
            told = json.loads(b"".join(read(node, WINDOW)))
            waiting = [str(job) for job in told["waiting"]]
            places = {job: number for number, job in enumerate(waiting, 1)}
            break
    return [
        replace(job, state="waiting", place=places[job.id]) if job.state == "running" and job.id in places else job
        for job in jobs
    ]
