"""Start, describe and stop the cluster on this machine."""

import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from study.cluster.local import MLFLOW_USER, LocalCluster, LocalClusterState, ProgressCallback
from study.commands.progress import clock_text
from study.errors import UserError
from study.home.folder import Home
from study.text import study_command
from study.tracking.connection import prepare_mlflow_database
from study.tracking.mlflow_urls import experiments_page_url
from study.upstream.environment import KEEP_LOOPBACK_VARIABLES


def start_cluster(home: Home, nodes: int, cpus: int, gpus: int, console: Console | None) -> LocalCluster:
    """Start a cluster of MLflow, a head, and so many nodes.

    Args:
        cpus: of each node.
        gpus: number of this machine's cards that the nodes share out.
        console: shows what is being started; None: nothing is shown.

    Raises:
        UserError: there is one already, or this machine has fewer cards or none that can be used.
        StudyStoppedError, StartInterruptedError: see `LocalCluster.start_cluster`.
    """
    prepare_mlflow_database(home)
    chosen = first_visible_gpus(gpus) if gpus else []
    cluster = LocalCluster.of_home(home)
    cluster.start_cluster(home, nodes, cpus, chosen, start_step_printer(console))
    return cluster


def first_visible_gpus(count: int) -> list[str]:
    """Return the first so many GPUs that this process sees, as `CUDA_VISIBLE_DEVICES` names them.

    Raises:
        UserError: there are fewer, or they cannot be used.
    """
    from study.sweep.ray_runtime import count_gpus
    from study.training.device import why_no_gpu

    there = count_gpus()
    if count > there:
        raise UserError(f"--gpus {count}: this machine has {there}")
    if why := why_no_gpu():
        raise UserError(f"--gpus {count}: this machine's GPUs cannot be used: {why}")
    named = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return (named or [str(number) for number in range(there)])[:count]


def start_step_printer(console: Console | None) -> ProgressCallback:
    """Return a function that shows each step of a start as a line on a console; None: it shows nothing."""
    if console is None:
        return bool
    began = time.monotonic()

    def tell(text: str) -> None:
        line = f"{clock_text(time.monotonic() - began)}  {text}"
        console.print(line, highlight=False, soft_wrap=True, markup=False, emoji=False)

    return tell


def stop_cluster(home: Home) -> str:
    """Stop what runs of the cluster of a home, remove what it left except its logs, and return what was done.

    Raises:
        UserError: it runs on another machine.
    """
    cluster = LocalCluster.of_home_to_stop(home)
    was_there = bool(cluster.processes) or bool(cluster.files_to_remove())
    count = cluster.stop_cluster()
    if not count:
        return "nothing ran; its secrets and files are removed" if was_there else "nothing to stop"
    told = f"stopped {count} processes; token and passwords are removed, its logs stay in {cluster.path}"
    return f"{told}\nin a shell that was told of it:\n  unset {' '.join(_shell_variables(cluster))}"


@dataclass(frozen=True)
class ProcessStatus:
    """A process of a cluster."""

    name: str
    pid: int
    alive: bool


@dataclass(frozen=True)
class LocalClusterStatus:
    """What runs of a cluster, without secrets: its addresses, the file with its token, and its processes."""

    address: str
    dashboard: str
    mlflow: str
    token_file: str
    processes: Sequence[ProcessStatus]


def local_cluster_status(cluster: LocalClusterState) -> LocalClusterStatus:
    """Return what runs of a cluster."""
    processes = [ProcessStatus(part.name, part.pid, part.is_alive) for part in cluster.processes]
    return LocalClusterStatus(cluster.address, cluster.dashboard, cluster.mlflow, str(cluster.token_file), processes)


def cluster_status_lines(cluster: LocalClusterState) -> list[str]:
    """Return the lines that tell a user what runs of a cluster, and what to type."""
    if not cluster.processes:
        return ["no cluster runs here; a first one: study cluster up --nodes 2"]
    states = ((part, "runs" if part.is_alive else "has ended") for part in cluster.processes)
    lines = [f"{part.name:<10} {state} (process {part.pid})" for part, state in states]
    if not cluster.living_processes():
        return [*lines, "", "all of it has ended; what it left is removed by: study cluster down"]
    lines += [
        f"dashboard  {cluster.dashboard}",
        f"GCS        {cluster.address} (for ray status, ray.init and study run --address)",
        f"MLflow     {experiments_page_url(cluster.mlflow)} (user {MLFLOW_USER})",
        "",
        "in a shell:",
    ]
    lines += [f"  export {key}={value}" for key, value in _shell_variables(cluster).items()]
    lines.append(f"  {study_command('submit', 'quickstart', '--name', 'there', '--follow')}")
    return [*lines, "", "its end: study cluster down"]


def _shell_variables(cluster: LocalClusterState) -> dict[str, str]:
    """Return the variables for programs that talk to the cluster, quoted for a shell; the password is in its file.

    Those of `KEEP_LOOPBACK_VARIABLES` are for Ray's own tools, which otherwise take 127.0.0.1 for a mistake.
    """
    password = f'"$(cat {shlex.quote(str(cluster.password_file))})"'
    plain = {key: shlex.quote(value) for key, value in (cluster.client_environment() | KEEP_LOOPBACK_VARIABLES).items()}
    return {**plain, "MLFLOW_TRACKING_PASSWORD": password, "STUDY_ADDRESS": cluster.dashboard}
