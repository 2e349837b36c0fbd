"""What `study cluster up` starts: MLflow's server, Ray's head, and nodes; each with its command, its environment, and
how it is seen to be up."""

import json
import os
import secrets
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from study.address import LOOPBACK
from study.cluster.local_state import MLFLOW_USER, LocalState
from study.cluster.process import MARK, free_ports, read
from study.files import PRIVATE, write_whole
from study.home.folder import Home, address_of
from study.upstream import ray_internals
from study.upstream.environment import Part as For
from study.upstream.environment import variables

PACKAGE = Path(__file__).parents[2]


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a cluster.

    Attributes:
        command: what starts it; gives ports anew each time.
        is_up: whether it answers.
        tries: how often it is started before it is given up.
    """

    name: str
    command: Callable[[], list[str]]
    environment: dict[str, str]
    is_up: Callable[[], bool]
    tries: int


def mlflow(cluster: LocalState, home: Home) -> Part:
    """Its server, at the address that the cluster names, with a password for its only user."""
    users = cluster.path / "mlflow-auth.ini"
    database = address_of(cluster.path / "mlflow-users.db").replace("%", "%%")  # a lone one would refer to another key
    write_whole(
        users,
        "[mlflow]\ndefault_permission = NO_PERMISSIONS\nauth_cache_ttl_seconds = 60\n"
        f"database_uri = {database}\n"
        f"admin_username = {MLFLOW_USER}\nadmin_password = {read(cluster.password_file)}\n"
        "authorization_function = mlflow.server.auth:authenticate_request_basic_auth\n",
        PRIVATE,
    )
    command = [sys.executable, "-m", "mlflow", "server", "--app-name", "basic-auth", "--workers", "1"]
    command += ["--backend-store-uri", address_of(home.database), "--host", LOOPBACK]
    command += ["--port", cluster.mlflow.rpartition(":")[2], "--artifacts-destination", home.artifacts.as_uri()]
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("MLFLOW_")},
        **variables(For.MLFLOW_SERVER),
        MARK: cluster.mark,
        "MLFLOW_AUTH_CONFIG_PATH": str(users),
        "MLFLOW_FLASK_SERVER_SECRET_KEY": secrets.token_hex(32),
    }
    return Part("mlflow", lambda: command, environment, lambda: _answers(f"{cluster.mlflow}/health"), 1)


def head(cluster: LocalState, home: Home) -> Part:
    """Ray's head, at the addresses that the cluster names; it runs no trials."""
    ports = {"--port": cluster.address, "--dashboard-port": cluster.dashboard}
    options = ["--head", *(f"{name}={address.rpartition(':')[2]}" for name, address in ports.items())]
    options += [f"--dashboard-host={LOOPBACK}", "--num-cpus=0", "--num-gpus=0", "--node-name=head"]
    options += [f"--temp-dir={cluster.scratch}/{ray_internals.BELOW}"]

    # the client's usual port may be another cluster's
    return Part(
        "head",
        lambda: _ray(cluster, options, "ray-client-server-port"),
        _environment(cluster, home, ()),
        lambda: bool(joined(cluster)),
        TRIES,
    )


def node(cluster: LocalState, home: Home, name: str, cpus: int, cards: Sequence[str]) -> Part:
    """A node for trials, with so many CPUs and with the cards of these names or numbers.

    Its session has a folder of its own: in the head's it would unpack a job's code over the driver's, and nodes that
    start together would take one socket's name.
    """
    options = [f"--address={cluster.address}", f"--num-cpus={cpus}", f"--num-gpus={len(cards)}", f"--node-name={name}"]
    options += [f"--temp-dir={cluster.scratch}/{name}"]
    before = joined(cluster)

    def is_up() -> bool:
        return any(node not in before and called == name for node, called in joined(cluster).items())

    return Part(name, lambda: _ray(cluster, options), _environment(cluster, home, cards), is_up, TRIES)


TRIES = 3
"""Starts of one of Ray's nodes: on a busy machine it may give up by itself."""


def joined(cluster: LocalState) -> dict[str, str]:
    """The names of the nodes that are alive, by Ray's ids of them, as the head's dashboard tells."""
    headers = {"Authorization": f"Bearer {read(cluster.token_file)}"}
    request = urllib.request.Request(cluster.dashboard + ray_internals.NODES, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            nodes = [node["raylet"] for node in json.load(answer)["data"]["summary"]]
    except (OSError, ValueError, KeyError):
        return {}
    return {node["nodeId"]: node.get("nodeName", "") for node in nodes if node.get("state") == "ALIVE"}


def shared_out(cards: Sequence[str], nodes: int) -> list[Sequence[str]]:
    """Cards for each of so many nodes: every card on one of them, the first nodes with one more where they do not go
    round.

    >>> shared_out(["0", "1", "2"], 2)
    [['0', '1'], ['2']]
    """
    each, more = divmod(len(cards), nodes)
    ends = [each * number + min(number, more) for number in range(nodes + 1)]
    return [cards[first:last] for first, last in pairwise(ends)]


def _ray(cluster: LocalState, options: Collection[str], *more_ports: str) -> list[str]:
    """The command of a node; Ray's node refuses to start where two of its ports are one."""
    command = [sys.executable, "-m", "study.cluster.loopback_node", "start", "--block"]
    command += [f"--node-ip-address={LOOPBACK}", *options]
    names = [*more_ports, *ray_internals.AGENTS_PORTS]
    taken = {int(address.rpartition(":")[2]) for address in (cluster.mlflow, cluster.dashboard, cluster.address)}
    return [*command, *(f"--{name}={port}" for name, port in zip(names, free_ports(len(names), taken), strict=True))]


def _environment(cluster: LocalState, home: Home, cards: Sequence[str]) -> dict[str, str]:
    """A node's environment; trials and drivers on it inherit it."""
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith(("RAY_", "MLFLOW_"))},
        **variables(For.LOCAL_NODE),
        **cluster.environment(),
        MARK: cluster.mark,
        "CUDA_VISIBLE_DEVICES": ",".join(cards),
        "MLFLOW_TRACKING_PASSWORD": read(cluster.password_file),
        "STUDY_HOME": str(home.path),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")])),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
    }


def _answers(url: str) -> bool:
    with suppress(urllib.error.URLError, OSError), urllib.request.urlopen(url, timeout=5):
        return True
    return False
