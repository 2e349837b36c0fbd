"""The nodes of a cluster, from what the head's dashboard says of them."""

import re
from typing import Any

IN_ORDER = ("EXPECTED_TERMINATION", "AUTOSCALER_DRAIN_IDLE")
"""Why a node ended that nobody lost: it was stopped, or had nothing to do. A spot machine that is taken back is lost,
and so is, for Ray, each node that `ray start --block` holds and that gets a SIGTERM."""

USAGE = re.compile(r"^(\S+)/\S+ (CPU|GPU)(?: |$)", re.MULTILINE)
"""A line of what Ray says of a node's logical resources, the same for both versions of its autoscaler, as `1.0/2.0 CPU`
or `0.25/1.0 GPU (0.25 used of 0.5 reserved in placement groups)`."""


def overview(answer: dict[str, Any]) -> dict[str, Any]:
    """Nodes that are there, those that were lost, and of each resource how much is in use and how much there is.

    Args:
        answer: of the dashboard to `ray_internals.NODES`.

    Returns:
        A used amount of None: not known, as in a cluster's first seconds.

    Raises:
        ValueError: it is another answer.
    """
    data = answer.get("data") or {}
    if "summary" not in data:
        raise ValueError(f"the dashboard does not tell of its nodes: {answer.get('msg', answer)}")
    nodes = [node["raylet"] for node in data["summary"] if node["raylet"].get("state")]
    alive = [node for node in nodes if node["state"] == "ALIVE"]
    there = _sum((name, amount) for node in alive for name, amount in node.get("resourcesTotal", {}).items())
    lines = (data.get("nodeLogicalResources") or {}).values()
    used = _sum((name, float(amount)) for text in lines for amount, name in USAGE.findall(text))
    return {
        "nodes": len(alive),
        "lost": sorted((_lost(node) for node in nodes if _is_lost(node)), key=lambda node: node["ended"]),
        "usage": {name: {"used": used.get(name), "there": there[name]} for name in ("CPU", "GPU") if there.get(name)},
    }


def _is_lost(node: dict[str, Any]) -> bool:
    return node["state"] == "DEAD" and (node.get("deathInfo") or {}).get("reason") not in IN_ORDER


def _lost(node: dict[str, Any]) -> dict[str, Any]:
    """Its id, when it ended (seconds since the epoch) and why; the dashboard forgets the names of the dead."""
    return {"id": node["nodeId"], "ended": int(node.get("endTimeMs", 0)) / 1000, "why": node.get("stateMessage")}


def _sum(amounts: Any) -> dict[str, float]:
    sums: dict[str, float] = {}
    for name, amount in amounts:
        sums[name] = round(sums.get(name, 0.0) + amount, 4)  # as fine as Ray counts
    return sums
