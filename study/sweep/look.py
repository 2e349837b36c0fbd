"""What Ray says of this machine, without starting, and of a cluster that is there."""

import socket
from pathlib import Path

from study.address import HOST_PORT, check_cluster
from study.errors import UserError
from study.sweep.ray_session import ray_session

PATIENCE = 5.0
"""Seconds that a cluster may take to be connected to; Ray by itself would try for a minute."""


def cpus() -> int:
    """How many processors Ray would place trials on, a container's limits considered."""
    from ray._private.utils import get_num_cpus

    return int(get_num_cpus(override_docker_cpu_warning=True))


def gpus() -> int:
    """How many GPUs Ray would place trials on."""
    from ray._private.accelerators import get_accelerator_manager_for_resource

    manager = get_accelerator_manager_for_resource("GPU")
    if manager is None:
        return 0
    visible = manager.get_current_process_visible_accelerator_ids()
    there = int(manager.get_current_node_num_accelerators())
    return there if visible is None else min(there, len(visible))


def cluster(address: str, home: Path | None) -> dict[str, float]:
    """Nodes, CPUs and GPUs of a cluster, joined as a study's driver would.

    Args:
        address: `auto` or HOST:PORT.
        home: a folder that its nodes have to see, None: they need not.

    Raises:
        UserError: it does not answer, refuses the token, or a node does not see the home.
    """
    check_cluster(address)
    if found := HOST_PORT.fullmatch(address):
        try:
            socket.create_connection((found["host"].strip("[]"), int(found["port"])), PATIENCE).close()
        except OSError as error:
            raise UserError(f"--address {address}: nothing answers there: {error.strerror or error}") from None
    import ray

    with ray_session(address, home):
        there = ray.cluster_resources()
        alive = sum(node["Alive"] for node in ray.nodes())
        return {"nodes": alive, "cpus": there.get("CPU", 0.0), "gpus": there.get("GPU", 0.0)}
