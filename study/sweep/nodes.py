"""The nodes that trials are placed on: those that a trial fits on, except those whose GPU cannot be used."""

import json
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, NotRequired, TypedDict

from study.errors import UserError, did_you_mean
from study.knobs import Scalar
from study.spec.schema import TrialResources
from study.sweep.failures import StudyCannotContinueError
from study.sweep.job_payload import JobPayload

if TYPE_CHECKING:
    from ray.tune import PlacementGroupFactory

NODE_ID_LABEL, GPU_TYPE_LABEL = "ray.io/node-id", "ray.io/accelerator-type"
"""Labels of Ray: every node has the first, a node whose kind of GPU Ray recognises also the second."""

ACCELERATOR_RESOURCE_PREFIX = "accelerator_type:"
"""Prefix of the resource that Ray also gives such a node, before the kind."""

ACCELERATOR_RESOURCE_AMOUNT = 0.001
"""Amount of that resource that a trial takes: it says where a trial may run, not how many may."""

NODE_JOIN_TIMEOUT_S = 60.0
"""Seconds that a cluster gets until a node that a trial fits on has joined it."""


NODE_CONNECT_TIMEOUT_S = 2.0
"""Seconds within which a living node takes a connection."""


class NoNodeLeftError(StudyCannotContinueError):
    """No node is left that a trial could run on; the message says why each is not used."""

    def __init__(self, reasons: Iterable[str]) -> None:
        BaseException.__init__(self, f"no node is left that trials can run on: {'; '.join(reasons)}")


class RayNode(TypedDict):
    """What is used of what Ray says of a node."""

    NodeID: str
    Alive: bool
    Resources: dict[str, float]
    Labels: NotRequired[dict[str, str]]
    NodeManagerAddress: str
    NodeManagerPort: int


class TrialNodes:
    """The nodes of a Ray cluster, as far as a study's trials are concerned.

    Args:
        resources: of one trial.
        list_nodes: returns all nodes at this moment, as `ray.nodes` does.
    """

    def __init__(self, resources: TrialResources, list_nodes: Callable[[], Iterable[RayNode]]) -> None:
        self._resources, self._list_nodes = resources, list_nodes
        self._excluded: dict[str, str] = {}

    def fitting_nodes(self) -> list[RayNode]:
        """Return the living nodes that a trial fits on, without the excluded ones."""
        return [node for node in self._living_nodes() if node["NodeID"] not in self._excluded and self._fits_node(node)]

    def available_resources(self) -> dict[str, float]:
        """Return what these nodes have of each resource, all together."""
        total: dict[str, float] = {}
        for node in self.fitting_nodes():
            for name, amount in node["Resources"].items():
                total[name] = total.get(name, 0.0) + amount
        return total

    def trial_placement(self, alone: bool) -> tuple[dict[str, float], dict[str, str]]:
        """Return what Ray sets aside for a trial, and the labels of the nodes that it may choose from.

        Args:
            alone: whether the trial gets a GPU to itself.
        """
        resources, labels = self._resources, dict[str, str]()
        gpu = max(1.0, resources.gpu) if alone else resources.gpu
        bundle = {"CPU": resources.cpu, "GPU": gpu}
        if kind := resources.accelerator:
            resource = f"{ACCELERATOR_RESOURCE_PREFIX}{kind}"
            is_declared = any(resource in node["Resources"] for node in self._living_nodes())
            is_labelled = any(node.get("Labels", {}).get(GPU_TYPE_LABEL) == kind for node in self._living_nodes())
            if is_declared or not is_labelled:
                bundle[resource] = ACCELERATOR_RESOURCE_AMOUNT
            else:
                labels[GPU_TYPE_LABEL] = kind
        if self._excluded:
            labels[NODE_ID_LABEL] = f"!in({','.join(self._excluded)})"  # no blanks: Ray 2.60 stops reading at one
        return bundle, labels

    def exclude_node(self, machine: str, host: str, reason: str) -> bool:
        """Place no more trials on a node.

        Args:
            machine: Ray's id of the node.
            host: its name.

        Returns:
            Whether it was not excluded before.
        """
        if machine in self._excluded:
            return False
        self._excluded[machine] = f"{host}: {reason}"
        return True

    def check_node_left(self) -> None:
        """Check that a trial can still be placed.

        Raises:
            NoNodeLeftError: each node that it fits on is excluded.
        """
        if self._excluded and not self.fitting_nodes():
            raise NoNodeLeftError(self._excluded.values())

    def wait_for_fitting_node(self, grows: bool, tell: Callable[[str], None], stopping: Callable[[], bool]) -> None:
        """Wait until the cluster has a node that a trial fits on; where it grows by itself, only say that it has none.

        Args:
            grows: whether the cluster adds nodes while trials wait for them.
            tell: is told what is missing.
            stopping: returns whether the wait is to end.

        Raises:
            UserError: no such node joined it.
        """
        if self.fitting_nodes():
            return
        if grows:
            tell(f"{self._missing_resources_text()}. Trials wait until one has joined")
            return
        tell(f"{self._missing_resources_text()}. Waiting {NODE_JOIN_TIMEOUT_S:g} s for one to join")
        deadline = time.monotonic() + NODE_JOIN_TIMEOUT_S
        while not self.fitting_nodes() and not stopping():
            if time.monotonic() > deadline:
                grow = "for a cluster that grows by itself say search.concurrency"
                raise UserError(f"{self._missing_resources_text()}; {grow}")
            time.sleep(0.2)

    def _living_nodes(self) -> list[RayNode]:
        return [node for node in self._list_nodes() if node["Alive"]]

    def _fits_node(self, node: RayNode) -> bool:
        resources, has = self._resources, node["Resources"]
        if resources.cpu > has.get("CPU", 0.0) or resources.gpu > has.get("GPU", 0.0):
            return False
        return resources.accelerator is None or resources.accelerator in gpu_kinds(node)

    def _missing_resources_text(self) -> str:
        """Return what a trial takes that no node has, and what there is."""
        resources, nodes = self._resources, self._living_nodes()
        takes = f"resources.cpu: {resources.cpu:g}" + (f", gpu: {resources.gpu:g}" if resources.gpu else "")
        if not (kind := resources.accelerator):
            most = max((node["Resources"].get("GPU", 0.0), node["Resources"].get("CPU", 0.0)) for node in nodes)
            return f"{takes}: no node of the cluster has so much; the largest has {most[1]:g} CPUs and {most[0]:g} GPUs"
        there = sorted({found for node in nodes for found in gpu_kinds(node)})
        told = f"there are: {', '.join(there)}" if there else "Ray recognises no GPU's kind on any of them"
        return f"{takes}, accelerator: {kind}: no node of the cluster has it; {did_you_mean(kind, there)}{told}"


def gpu_kinds(node: RayNode) -> set[str]:
    """Return the kinds of GPU that Ray says a node has, as `H100`, by its resources and its label."""
    prefix = ACCELERATOR_RESOURCE_PREFIX
    found = {name.removeprefix(prefix) for name in node["Resources"] if name.startswith(prefix)}
    return found | {label for label in (node.get("Labels", {}).get(GPU_TYPE_LABEL),) if label}


def placement_group_of_config(config: Mapping[str, JobPayload | Scalar]) -> "PlacementGroupFactory":
    """Return what Ray sets aside for a trial with this configuration of Tune's.

    Tune calls a copy of this, which knows nothing of the study but what the configuration holds.
    """
    return _cached_placement_group(str(config["place"]))


@cache
def _cached_placement_group(place: str) -> "PlacementGroupFactory":
    """Return the same object for the same text: Tune compares them many times for each trial."""
    from ray.tune import PlacementGroupFactory

    bundle, labels = json.loads(place)
    make: Callable[..., PlacementGroupFactory] = PlacementGroupFactory
    return make([bundle], **({"bundle_label_selector": [labels]} if labels else {}))


def is_node_unreachable(machine: str | None, nodes: Iterable[RayNode]) -> bool:
    """Return whether the node of a process that died or fell silent is dead, or takes no connection.

    Ray itself learns of that half a minute or a minute later.

    Args:
        machine: Ray's id of the node; None: not known, then False is returned.
        nodes: all, as `ray.nodes` lists them.
    """
    node = next((node for node in nodes if node["NodeID"] == machine), None)
    if node is None or not node["Alive"]:
        return node is not None
    try:
        socket.create_connection((node["NodeManagerAddress"], node["NodeManagerPort"]), NODE_CONNECT_TIMEOUT_S).close()
    except OSError:
        return True
    return False
