"""How many nodes, CPUs and GPUs a cluster that is there has."""

import socket
from pathlib import Path

from study.address import HOST_PORT, check_cluster
from study.errors import UserError
from study.sweep.ray_session import ray_session

PATIENCE = 5.0
"""Seconds that a cluster may take to be connected to; Ray by itself would try for a minute."""


def cluster_resources(address: str, home: Path | None) -> dict[str, float]:
    """Nodes, CPUs and GPUs of a cluster, joined as a study's driver would.

    Args:
        address: `auto` or HOST:PORT.
        home: a folder that its nodes have to see, None: they need not.

    Raises:
        UserError: it does not answer, refuses the token, or a node does not see the home.
    """
    check_cluster(address)
    if parts := HOST_PORT.fullmatch(address):
        try:
            socket.create_connection((parts["host"].strip("[]"), int(parts["port"])), PATIENCE).close()
        except OSError as error:
            raise UserError(f"--address {address}: nothing answers there: {error.strerror or error}") from None
    import ray

    with ray_session(address, home):
        there = ray.cluster_resources()
        alive = sum(node["Alive"] for node in ray.nodes())
        return {"nodes": alive, "cpus": there.get("CPU", 0.0), "gpus": there.get("GPU", 0.0)}
