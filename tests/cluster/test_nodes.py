"""What is told of a cluster's nodes, from the dashboard's answers."""

from typing import Any

from study.cluster.dashboard import summarise_nodes

CPUS = "1.0/1.0 CPU (1.0 used of 1.0 reserved in placement groups)\n0B/13.54GiB memory\n0B/5.80GiB object_store_memory"
IDLE = "0.0/1.0 CPU\n0B/13.02GiB memory\n0B/5.58GiB object_store_memory"
HEAD = "0B/13.93GiB memory\n387.75KiB/5.97GiB object_store_memory"
GPUS = "2.0/8.0 CPU (2.0 used of 4.0 reserved in placement groups)\n0.5/2.0 GPU (0.5 used of 0.5 reserved in ...)"
"""As a cluster answered, under both versions of the autoscaler; the last as Ray's source would."""

HEARTBEATS = "Unexpected termination: health check failed due to missing too many heartbeats"
PREEMPTED = "Terminated due to preemption: Node received SIGTERM; draining before shutdown."


def alive(node: str, **resources: float) -> dict[str, Any]:
    told = {"nodeId": node, "state": "ALIVE", "stateMessage": None, "endTimeMs": "0", "nodeName": f"node-{node}"}
    return {"raylet": {**told, "resourcesTotal": {"node:127.0.0.1": 1.0, "memory": 14537750528.0, **resources}}}


def dead(node: str, ended: int, reason: str | None, message: str | None = None) -> dict[str, Any]:
    """As a cluster answered: of a node that died while the dashboard looked on it has forgotten the rest."""
    info = {"deathInfo": {"reason": reason, "reasonMessage": "whatever"}} if reason else {}
    told = {"nodeId": node, "state": "DEAD", "stateMessage": message, "endTimeMs": str(ended), "nodeName": ""}
    return {"raylet": {**told, "resourcesTotal": {}, **info}}


def answer(nodes: list[dict[str, Any]], usage: dict[str, str]) -> dict[str, Any]:
    return {"result": True, "msg": "", "data": {"summary": nodes, "nodeLogicalResources": usage}}


def test_what_is_in_use_is_the_sum_over_the_nodes() -> None:
    nodes = [alive("a"), alive("b", CPU=1.0), alive("c", CPU=1.0), alive("d", CPU=8.0, GPU=2.0)]
    found = summarise_nodes(answer(nodes, {"a": HEAD, "b": CPUS, "c": IDLE, "d": GPUS}))
    assert found == {
        "nodes": 4,
        "lost": [],
        "usage": {"CPU": {"used": 3.0, "there": 10.0}, "GPU": {"used": 0.5, "there": 2.0}},
    }


def test_nodes_that_were_lost_are_told_from_those_that_left() -> None:
    nodes = [
        alive("a"),
        dead("b", 9_500, "UNEXPECTED_TERMINATION", HEARTBEATS),
        dead("c", 2_000, "EXPECTED_TERMINATION", "Expected termination: received SIGTERM"),
        dead("d", 3_000, "AUTOSCALER_DRAIN_IDLE", "Terminated due to idle (no Ray activity)"),
        dead("e", 4_000, "AUTOSCALER_DRAIN_PREEMPTED", PREEMPTED),
        dead("f", 5_000, None),
        {"raylet": {}},  # one that Ray has forgotten
    ]
    found = summarise_nodes(answer(nodes, {}))
    assert found["nodes"] == 1
    assert found["lost"] == [
        {"id": "e", "ended": 4.0, "why": PREEMPTED},
        {"id": "f", "ended": 5.0, "why": None},
        {"id": "b", "ended": 9.5, "why": HEARTBEATS},
    ]
