"""Why a trial did not come to its end, and whether running it again can help."""

import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from study.home.events import Kind
from study.home.record import TrialRecord
from study.spec import StudySpec
from study.sweep.nodes import NodeUnusable
from study.training.gpu_errors import Sign, sign_in

NODES = 100
"""Attempts of one trial after which a dead node is a failure like any other: perhaps the trial is what kills them."""

NODE_DIED = "because its node has died"
"""What Ray says of a process whose node went away."""

NODE_ANSWERS = 2.0
"""Seconds within which a node that is alive takes a connection."""


@dataclass(frozen=True)
class Failure:
    """What became of a trial's run.

    Attributes:
        kind: PREEMPTED: its process or node died, or its GPU is in no state to go on; OOM: out of memory; HUNG: it did
            not report for too long; DIVERGED: its loss, networks or metric are no numbers; BUG: an exception in its
            code.
        alone: it was the GPU's memory; with the whole GPU to itself the trial may fit.
        node_died: with the trial on it, or its GPU did, which is no fault of the trial's.
        stacked: other trials ran in its process, and it runs again among fewer: it may be the fault of any of them.
    """

    kind: Kind
    reason: str
    alone: bool = False
    node_died: bool = False
    stacked: bool = False

    def may_run_again(self, trial: TrialRecord, spec: StudySpec, before: int) -> bool:
        """Whether the trial gets another attempt after so many that were lost: `search.retries`, one alone on a GPU;
        on machines that come and go, `NODES`."""
        if self.node_died or self.stacked:
            return trial.attempt < NODES
        if self.kind in ("DIVERGED", "BUG") or before >= spec.search.retries:
            return False
        return not self.alone or (not trial.alone and spec.resources.gpu < 1)


HUNG = Failure("HUNG", "did not report any more")
PROCESS_DIED = Failure("PREEMPTED", "its process died")
NODE_LOST = Failure("PREEMPTED", "its node died", node_died=True)


def failure(error: BaseException) -> Failure:
    """What an error that ended a trial's run means.

    Args:
        error: from Ray: a task's error holds what the trial raised, others are about its process or node.
    """
    import torch
    from ray import exceptions

    from study.sweep.memory_kills import EndedForMemory
    from study.sweep.reuse import StillBusy

    cause = getattr(error, "cause", None) or error
    text = str(cause)
    reason = f"{type(cause).__name__}: {text}".strip(": \n").splitlines()[0][:300]
    if isinstance(cause, NodeUnusable):
        return Failure("PREEMPTED", f"{cause.host} is not used: {cause.reason}"[:300], node_died=True)
    if isinstance(cause, torch.OutOfMemoryError):
        return Failure("OOM", reason, alone=True)
    if isinstance(cause, MemoryError | EndedForMemory):
        return Failure("OOM", reason)
    if sign := sign_in(text):
        return _of_gpu(sign, reason)
    died = isinstance(cause, exceptions.RayActorError) and NODE_DIED in text
    if died or isinstance(cause, exceptions.NodeDiedError):
        return NODE_LOST
    if isinstance(cause, StillBusy):
        return Failure("PREEMPTED", "its process was still busy with the trial before it")
    if isinstance(cause, exceptions.RayActorError) and not cause.actor_init_failed:
        return PROCESS_DIED
    if isinstance(cause, exceptions.RayError) and not isinstance(cause, exceptions.RayActorError):
        return Failure("PREEMPTED", reason)  # a node, or an object that was lost with one
    return Failure("BUG", reason)


def _of_gpu(sign: Sign, reason: str) -> Failure:
    """What a sign in an error's message means."""
    if sign.meaning in ("memory", "host memory"):
        return Failure("OOM", reason, alone=sign.meaning == "memory")
    advised = f"{reason}. Remedy: {sign.advice}" if sign.advice else reason
    return Failure("BUG" if sign.meaning == "code" else "PREEMPTED", advised)


def is_out_of_reach(machine: str | None, nodes: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the node of a process that died or fell silent is dead, or takes no connection. Ray itself hears of that
    half a minute later, or a whole one.

    Args:
        machine: Ray's id of the node; None: it is not known, which says nothing.
        nodes: all, as `ray.nodes` tells of them.
    """
    node = next((node for node in nodes if node["NodeID"] == machine), None)
    if node is None or not node["Alive"]:
        return node is not None
    try:
        socket.create_connection((node["NodeManagerAddress"], node["NodeManagerPort"]), NODE_ANSWERS).close()
    except OSError:
        return True
    return False
