"""Ray for one study or several: one of its own on this machine, quiet and private, or an existing cluster."""

import logging
import math
import os
import re
import resource
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

import psutil
from packaging.requirements import Requirement

from study.cluster_addresses import HOST_PORT_PATTERN, check_cluster_address, check_cluster_token, is_loopback
from study.errors import UserError
from study.files import as_user_error_if_unwritable
from study.spec.schema import TrialResources
from study.sweep.own_ray import RayProcesses, disconnect_from_ray, start_own_ray
from study.upstream.cgroup import count_usable_processors
from study.upstream.environment import (
    KEEP_LOOPBACK_VARIABLES,
    RECONNECT_TIMEOUT_VARIABLE,
    ProcessKind,
    set_variables_here,
)
from study.upstream.logging import hide_library_messages, is_verbose
from study.upstream.ray_internals import (
    ask_gcs_with_token,
    call_with_own_signals,
    differing_versions,
    end_process_without_ray,
    is_ray_job,
    start_ray_apart_and_quiet,
)
from study.upstream.ray_token import find_token, pass_token_to_ray, token_refused_error

CLUSTER_POLL_INTERVAL_S = 1.0
"""Seconds between two questions whether a cluster still answers."""

CONNECTION_TIMEOUT_S = 5.0
"""Seconds that a machine gets to take a connection."""

RAY_RECONNECT_TIMEOUT_S = 60.0
"""Seconds after which Ray ends a driver whose head is gone, where `RECONNECT_TIMEOUT_VARIABLE` does not set them."""

STOP_MARGIN_BEFORE_RAY_S = 10.0
"""Seconds by which a driver stops sooner: Ray would end the process without a message of the study's."""

UNRECOVERABLE_HEAD_TIMEOUT_S = 3.0
"""Seconds after which a missing head counts as ended where it cannot come back: this driver is a job on its machine,
without Redis."""

RAYLET_ENDED_TEXT = "Ray's raylet on the driver's machine has ended"

HEAD_ENDED_TEXT = "Ray's head, on the driver's machine, has ended"


class JoinedCluster:
    """A cluster that a driver has joined, as the two of its processes that the driver cannot be without.

    A head that keeps its state in Redis may come back, and drivers go on: so a head is missed for as long as Ray itself
    would wait. The node of a driver that is a job takes the driver with it, within a second or two.

    Args:
        head, node: host and port of the head's gcs_server, and of this machine's raylet.
    """

    def __init__(self, head: tuple[str, int], node: tuple[str, int]) -> None:
        self._head, self._node = head, node
        self._asked, self._missed_since = 0.0, float("inf")
        is_final = is_ray_job() and self._is_head_here() and not os.environ.get("RAY_REDIS_ADDRESS")
        may_come_back_s = 0.0 if is_final else _reconnect_timeout_s() - STOP_MARGIN_BEFORE_RAY_S
        self._patience = max(UNRECOVERABLE_HEAD_TIMEOUT_S, may_come_back_s)
        self._ended: str | None = None

    @property
    def grace_s(self) -> float:
        """Seconds that a driver gets to end by itself once something has ended."""
        return 0.0 if self._ended in (RAYLET_ENDED_TEXT, HEAD_ENDED_TEXT) else 10.0

    def describe_ended_process(self) -> str | None:
        """Return which of them has ended; None while both answer, and while the head may come back."""
        now = time.monotonic()
        if not self._ended and now - self._asked >= CLUSTER_POLL_INTERVAL_S:
            self._asked, missing = now, self.describe_missing_process()
            self._missed_since = min(self._missed_since, now) if missing else float("inf")
            if missing in (RAYLET_ENDED_TEXT, HEAD_ENDED_TEXT) or now - self._missed_since >= self._patience:
                self._ended = missing
        return self._ended

    def describe_missing_process(self) -> str | None:
        """Return which of them does not answer at this moment."""
        if _is_connection_refused(self._node, is_here=True):
            has_head_ended = self._is_head_here() and _is_connection_refused(self._head, is_here=True)
            return HEAD_ENDED_TEXT if has_head_ended else RAYLET_ENDED_TEXT
        if _is_connection_refused(self._head, self._is_head_here()):
            return f"Ray's head (its gcs_server, at {self._head[0]}:{self._head[1]}) does not answer any more"
        return None

    def kill_processes(self) -> None:
        """Do nothing: the cluster is not this process's."""

    def _is_head_here(self) -> bool:
        return self._head[0] == self._node[0]


def _is_connection_refused(place: tuple[str, int], is_here: bool) -> bool:
    """Return whether nothing takes connections.

    On this machine the system takes them even for a busy process; only a refusal says that it has ended.
    """
    try:
        socket.create_connection(place, CONNECTION_TIMEOUT_S).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return not is_here
    return False


def _reconnect_timeout_s() -> float:
    with suppress(ValueError):
        return float(os.environ.get(RECONNECT_TIMEOUT_VARIABLE, RAY_RECONNECT_TIMEOUT_S))
    return RAY_RECONNECT_TIMEOUT_S


GCS_TIMEOUT_S = 5.0
"""Seconds that a cluster gets to answer whether it takes the token."""

NODES_SEE_HOME_TIMEOUT_S = 60.0
"""Seconds that a node of a cluster gets to answer: a process has to start on it."""


RAY_ADDRESS_SPACE_BYTES, OBJECT_STORE_SHARE = 6 * 2**30, 0.3
"""Address space of a Ray process: bytes, and the object store besides, as a share of the machine's memory. Measured:
the largest of a study's processes had 13.0 GB where the memory was 23 GiB."""


class ClusterUnreachableError(UserError):
    """No Ray cluster answers at an address."""


def check_trial_fits_machine(resources: TrialResources) -> None:
    """Refuse a trial that this machine could never place; Ray would wait for ever.

    Raises:
        UserError: says what a trial takes and what there is.
    """
    machine = _machine_resources(resources)
    for name, amount in (("CPU", resources.cpu), ("GPU", resources.gpu)):
        if amount > machine[name]:
            key = f"resources.{name.lower()}"
            raise UserError(f"{key}: {amount:g} given, this machine has {machine[name]:g}. Fewer: --set {key}=...")
    if resources.gpu:
        _check_gpus_usable(resources)
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    needed = RAY_ADDRESS_SPACE_BYTES + OBJECT_STORE_SHARE * psutil.virtual_memory().total
    if limit != resource.RLIM_INFINITY and limit < needed:
        raise UserError(
            f"ulimit -v: {limit / 2**30:.1f} GiB of addresses given, Ray takes {needed / 2**30:.1f} on this machine, "
            "and waits for ever with fewer. Allow them: ulimit -v unlimited"
        )


def _check_gpus_usable(resources: TrialResources) -> None:
    """Refuse GPUs that are counted but cannot be used, and another kind than the one that is asked for."""
    from study.training.device import gpu_name, why_no_gpu

    if why := why_no_gpu():
        given = f"resources.gpu: {resources.gpu:g} given, but this machine's GPU cannot be used"
        raise UserError(f"{given}: {why}. On the CPU: --set resources.gpu=0")
    if kind := resources.accelerator:
        pattern = r"\b" + re.escape(kind).replace(r"\-", "[ -]") + r"\b"
        if not re.search(pattern, there := gpu_name(0)):
            raise UserError(f"resources.accelerator: {kind} given, this machine's GPU is: {there}")


def count_trials_at_once(resources: TrialResources, concurrency: int | None) -> int:
    """Return how many trials of a study (`search.concurrency`) would run at once on this machine, 0 where none fits."""
    machine = _machine_resources(resources)
    if resources.cpu > machine["CPU"] or resources.gpu > machine["GPU"]:
        return 0
    return TrialSlots(lambda: machine, resources, concurrency, grows=False)()


def _machine_resources(resources: TrialResources) -> dict[str, float]:
    """Return this machine's CPUs and GPUs; count no GPUs for a trial without one, as PyTorch takes seconds for that."""
    machine = {"CPU": float(count_usable_processors()), "GPU": 0.0}
    if resources.gpu:
        machine["GPU"] = float(count_gpus())
    return machine


def count_gpus() -> int:
    """Return the number of GPUs that trials can be placed on; each MIG slice is one, though CUDA shows one alone."""
    import torch

    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    return len(visible) if all(name.startswith("MIG-") for name in visible) else torch.cuda.device_count()


def ignore_text(text: str) -> None:
    """Ignore a text."""


def set_ray_variables(address: str | None) -> None:
    """Set the variables of Ray in this process, before Ray is imported, which reads some of them then.

    Args:
        address: see `start_or_join_ray`.
    """
    set_variables_here(ProcessKind.DRIVER, *([ProcessKind.OWN_RAY] if address is None else []))
    if address is None or is_loopback(_resolved_address(address).rpartition(":")[0]):
        os.environ |= KEEP_LOOPBACK_VARIABLES  # whatever the user has set


@contextmanager
def start_or_join_ray(
    address: str | None,
    home: Path | None,
    gpus: int | None = None,
    tell: Callable[[str], None] = ignore_text,
    stopping: Callable[[], bool] = bool,
) -> Iterator[RayProcesses | JoinedCluster]:
    """Provide Ray until the block is left: that of the cluster at an address, else one of its own.

    Args:
        address: `auto` or HOST:PORT, for a driver within the cluster's network.
        home: the folder that every node of a cluster must see; None: there is none.
        gpus: number that a Ray of its own is told; None: it counts them itself.
        tell: is told what a start that takes long waits for.
        stopping: returns whether the start is to be given up.

    Raises:
        RayStartError: a Ray of its own does not start.
        KeyboardInterrupt: the start is to be given up.
        UserError: a cluster cannot be reached; or a node of it does not see the home.
    """
    set_ray_variables(address)
    import ray  # noqa: F401 (it sets up the loggers)

    hide_library_messages("ray", "ray.tune", level=logging.CRITICAL)
    if address is None:
        with start_own_ray(gpus, tell, stopping) as own:
            yield own
        return
    joined = None
    try:
        _connect_to_cluster(address)
        joined = _find_joined_cluster()
        if home is not None:
            check_nodes_see_home(home)
        yield joined
    finally:
        end_process_without_ray() if joined and joined.describe_missing_process() else disconnect_from_ray()


def _connect_to_cluster(address: str) -> None:
    """Connect to a cluster.

    Raises:
        ClusterUnreachableError: it does not answer.
    """
    import ray

    pass_token_to_ray()
    logs = is_verbose()
    join = partial(ray.init, address=address, log_to_driver=logs, configure_logging=False, namespace="study")
    try:
        with start_ray_apart_and_quiet(logs=logs):
            call_with_own_signals(join)
    except Exception as error:  # Ray raises what it likes, bare Exception too
        if (differing := differing_versions(str(error))) is not None:
            why = _version_mismatch_text(differing, str(error))
        else:
            lines = str(error).strip().splitlines()
            why = f"no Ray cluster answers: {lines[0] if lines else error!r}"
        raise ClusterUnreachableError(f"--address {address}: {why}") from None
    check_cluster_token(ray.get_runtime_context().gcs_address.rsplit(":", 1)[0])


def _version_mismatch_text(differing: Mapping[str, tuple[str, str]], message: str) -> str:
    """Return what is wrong with a cluster of another Ray or Python version, and what helps.

    Args:
        differing: see `differing_versions`.
        message: Ray's own, shown where the versions are not known.
    """
    if not differing:
        return " ".join(message.split())
    cluster, here = (", ".join(f"{name} {both[at]}" for name, both in differing.items()) for at in (0, 1))
    remedies = []
    if "Ray" in differing:
        there, ours = differing["Ray"]
        if not _is_ray_version_allowed(there):
            remedies.append(f"there: pip install 'ray[default,tune]=={ours}' (this study cannot run with Ray {there})")
        else:
            remedies.append(f"here: pip install 'ray[default,tune]=={there}', or there: 'ray[default,tune]=={ours}'")
    if "Python" in differing:
        there, ours = differing["Python"]
        remedies.append(f"an environment of Python {there} here, or of {ours} there")
    return f"its cluster runs {cluster}, this study {here}; they have to be the same. Install {'; and '.join(remedies)}"


def _is_ray_version_allowed(version: str) -> bool:
    """Return whether this package may be installed with a version of Ray."""
    try:
        needed = [Requirement(text) for text in requires("contrastive-study") or ()]
        return all(version in one.specifier for one in needed if one.name == "ray")
    except (PackageNotFoundError, ValueError):
        return True


def check_cluster_answers(address: str) -> None:
    """Refuse a cluster that does not answer, or does not take the token, before anything is made for a study.

    Raises:
        ClusterUnreachableError: nothing answers there.
        UserError: the token is refused.
    """
    if not HOST_PORT_PATTERN.fullmatch(address := _resolved_address(address)):
        return
    sent = find_token() if os.environ.get("RAY_AUTH_MODE") == "token" else None
    until = time.monotonic() + GCS_TIMEOUT_S
    while (answer := ask_gcs_with_token(address, sent, GCS_TIMEOUT_S)) == "UNAVAILABLE" and time.monotonic() < until:
        time.sleep(0.5)
    if answer == "UNAVAILABLE":
        raise ClusterUnreachableError(f"--address {address}: no Ray cluster answers")
    if answer == "UNAUTHENTICATED":
        raise token_refused_error(address)


def _resolved_address(address: str) -> str:
    """Return the address that `auto` stands for where `RAY_ADDRESS` is set."""
    return os.environ.get("RAY_ADDRESS", address) if address == "auto" else address


def _find_joined_cluster() -> JoinedCluster:
    """Return the cluster that this process has joined."""
    import ray

    context = ray.get_runtime_context()
    host, _, port = context.gcs_address.rpartition(":")
    node = next(node for node in ray.nodes() if node["NodeID"] == context.get_node_id())
    return JoinedCluster((host.strip("[]"), int(port)), (node["NodeManagerAddress"], node["NodeManagerPort"]))


def check_nodes_see_home(home: Path) -> None:
    """Refuse a cluster with a node that does not see the home: checkpoints and weights lie there, and trials move.

    Raises:
        UserError: says which nodes; or this one cannot write there.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    with as_user_error_if_unwritable(home, "Another home: STUDY_HOME=..."):
        # not by process id, which a process of another machine may have too
        file, marker = tempfile.mkstemp(prefix=".seen-by-all-", dir=home)
    os.close(file)
    try:
        look = ray.remote(num_cpus=0, max_retries=0)(os.path.exists)
        asked = {}
        for node in (node for node in ray.nodes() if node["Alive"]):
            there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            asked[look.options(scheduling_strategy=there).remote(marker)] = node["NodeManagerAddress"]
        answered, silent = ray.wait(list(asked), num_returns=len(asked), timeout=NODES_SEE_HOME_TIMEOUT_S)
        failed = [*silent, *(reference for reference in answered if not _node_sees_home(reference))]
        blind = [asked[reference] for reference in failed]
    finally:
        Path(marker).unlink(missing_ok=True)
    if blind:
        raise UserError(
            f"{home}: is not seen by {', '.join(sorted(blind))}. STUDY_HOME has to be a folder that all nodes share"
        )


def _node_sees_home(reference: Any) -> bool:
    """Return whether a node sees the file; True for one that is lost meanwhile, as no trial will run there."""
    import ray

    try:
        return bool(ray.get(reference))
    except ray.exceptions.RayError:
        return True


class TrialSlots:
    """The number of trials at once: as many as the resources of this moment allow, or fewer where the study says so.

    On a cluster that grows by itself, `concurrency` may be more than fits now, so that it grows.

    Args:
        available: returns how much there is of each resource at this moment.
        resources: of one trial.
        grows: whether nodes come and go.
    """

    CLUSTER_POLL_INTERVAL_S = 2.0
    """Seconds between two looks at a cluster, whose nodes come and go."""

    def __init__(
        self,
        available: Callable[[], Mapping[str, float]],
        resources: TrialResources,
        concurrency: int | None,
        *,
        grows: bool,
    ) -> None:
        amounts = {"CPU": resources.cpu, "GPU": resources.gpu}
        self._amounts = {name: amount for name, amount in amounts.items() if amount > 0}
        self._available, self._concurrency, self._grows = available, concurrency, grows
        self._fits: int | None = None
        self._looked = 0.0

    def __call__(self) -> int:
        if self._grows and self._concurrency:
            return self._concurrency
        if self._fits is None or (self._grows and time.monotonic() - self._looked > self.CLUSTER_POLL_INTERVAL_S):
            available = self._available()
            fits = (math.floor(available.get(name, 0.0) / amount + 1e-9) for name, amount in self._amounts.items())
            self._fits, self._looked = min(fits), time.monotonic()
        return max(1, min(self._fits, self._concurrency or self._fits))


CLUSTER_CONNECT_TIMEOUT_S = 5.0
"""Seconds that a cluster gets to take a connection; Ray by itself would try for a minute."""


def cluster_resources(address: str, home: Path | None) -> dict[str, float]:
    """Return the number of nodes, CPUs and GPUs of a cluster, joined as a study's driver would.

    Args:
        address: `auto` or HOST:PORT.
        home: a folder that its nodes have to see; None: they need not.

    Raises:
        UserError: it does not answer, refuses the token, or a node does not see the home.
    """
    check_cluster_address(address)
    if parts := HOST_PORT_PATTERN.fullmatch(address):
        try:
            socket.create_connection((parts["host"].strip("[]"), int(parts["port"])), CLUSTER_CONNECT_TIMEOUT_S).close()
        except OSError as error:
            raise UserError(f"--address {address}: nothing answers there: {error.strerror or error}") from None
    import ray

    with start_or_join_ray(address, home):
        there = ray.cluster_resources()
        alive = sum(node["Alive"] for node in ray.nodes())
        return {"nodes": alive, "cpus": there.get("CPU", 0.0), "gpus": there.get("GPU", 0.0)}


RayStarter = Callable[
    [str | None, Path | None, int | None, Callable[[str], None], Callable[[], bool]],
    AbstractContextManager[RayProcesses | JoinedCluster],
]
"""Function that starts or joins Ray for a driver, see `start_or_join_ray`."""


class SharedRay(ExitStack):
    """One Ray for several studies in turn: the first starts it, and it stays until the block is left.

    Its start takes longer than a small study's trials. On a cluster each study joins and leaves by itself: there is
    nothing to start. All studies have to take the same resources per trial: the processes that are started at once are
    told their threads by the first.
    """

    _ray: RayProcesses | JoinedCluster | None = None

    @contextmanager
    def __call__(self, address: str | None, *given: Any) -> Iterator[RayProcesses | JoinedCluster]:
        """Provide the shared Ray, see `start_or_join_ray`; the arguments of later studies change nothing."""
        if address is not None:
            with start_or_join_ray(address, *given) as joined:
                yield joined
            return
        if self._ray is None:
            self._ray = self.enter_context(start_or_join_ray(address, *given))
        try:
            yield self._ray
        finally:
            if self._ray is not None and not self._ray.describe_ended_process():
                end_leftover_workers()


def end_leftover_workers() -> None:
    """End the workers that a study leaves behind, and free what they took; Tune would wait for each of them."""
    from ray import PlacementGroupID
    from ray.util.placement_group import PlacementGroup, placement_group_table, remove_placement_group

    for group, about in placement_group_table().items():
        if about["state"] != "REMOVED":
            remove_placement_group(PlacementGroup(PlacementGroupID.from_hex(group)))
