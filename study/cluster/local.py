"""A real Ray cluster of several nodes on this machine, for trying things: loopback only, with a token, and MLflow
with a password. What it starts is in one file, and is what it stops.
"""

import json
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

from study.address import LOOPBACK, mlflow_page
from study.cluster.process import Process, free_port, naming, read
from study.errors import UserError
from study.files.whole import PRIVATE, write_whole
from study.home.folder import Home
from study.home.sqlite_address import address_of
from study.text.shell import typed
from study.upstream import ray_internals
from study.upstream.environment import Part, variables

PACKAGE = Path(__file__).parents[2]
PATIENCE = 180.0
"""Seconds that a part may take to answer; both cores of a small machine may be busy."""

TRIES = 3

MLFLOW_USER = "admin"


@dataclass
class LocalCluster:
    """What `study cluster up` started.

    Attributes:
        address: for `study run --address`.
        dashboard: for `study submit --address`.
        mlflow: URI of its server.
    """

    path: Path
    address: str = ""
    dashboard: str = ""
    mlflow: str = ""
    scratch: str = ""
    processes: list[Process] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._children: list[subprocess.Popen[bytes]] = []  # of this process, which has to wait for them

    @classmethod
    def of(cls, home: Home) -> "LocalCluster":
        """That of a home; without processes if none was started.

        Raises:
            UserError: its file is damaged.
        """
        path = home.path / ".cluster"
        file = path / "state.json"
        if not file.exists():
            return cls(path)
        try:
            state: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            state["processes"] = [Process(**process) for process in state["processes"]]
            return cls(path, **state)
        except (ValueError, TypeError, KeyError):
            raise UserError(f"{file}: damaged. Remove it once nothing of the cluster runs any more") from None

    @property
    def token_file(self) -> Path:
        return self.path / "token"

    @property
    def password_file(self) -> Path:
        return self.path / "mlflow-password"

    def alive(self) -> list[Process]:
        return [process for process in self.processes if process.is_alive]

    def document(self) -> dict[str, Any]:
        """What runs of it; no secrets."""
        return {
            "address": self.address,
            "dashboard": self.dashboard,
            "mlflow": self.mlflow,
            "token_file": str(self.token_file),
            "processes": [
                {"name": process.name, "pid": process.pid, "alive": process.is_alive} for process in self.processes
            ],
        }

    def lines(self) -> list[str]:
        """The same for people, and what to type."""
        if not self.processes:
            return ["no cluster runs here; a first one: study cluster up --nodes 2"]
        lines = [
            f"{process.name:<10} {'runs' if process.is_alive else 'has ended'} ({process.pid})"
            for process in self.processes
        ]
        lines += [
            f"dashboard  {self.dashboard}",
            f"MLflow     {mlflow_page(self.mlflow)} (user {MLFLOW_USER})",
            "",
            "in a shell:",
        ]
        lines += [f"  export {key}={value}" for key, value in self._exports().items()]
        lines.append(f"  {typed('submit', 'quickstart', '--address', self.dashboard, '--follow')}")
        return [*lines, "", "its end: study cluster down"]

    def environment(self) -> dict[str, str]:
        """What talks to it needs, but for MLflow's password: the secrets stay in their files."""
        return {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self.token_file),
            "MLFLOW_TRACKING_URI": self.mlflow,
            "MLFLOW_TRACKING_USERNAME": MLFLOW_USER,
        }

    def _exports(self) -> dict[str, str]:
        """The same as a shell reads it, whatever the home's path holds, and the password from its file."""
        password = f'"$(cat {shlex.quote(str(self.password_file))})"'
        plain = {key: shlex.quote(value) for key, value in self.environment().items()}
        return {**plain, "MLFLOW_TRACKING_PASSWORD": password}

    def start(self, home: Home, nodes: int, cpus: int, gpus: int) -> None:
        """Start MLflow, a head that runs no trials, and so many nodes.

        Raises:
            UserError: one is there already, or a part does not come up; then nothing stays behind.
        """
        if self.alive():
            raise UserError(f"a cluster of {home.path} runs already. Its state: study cluster status")
        self.path.mkdir(parents=True, exist_ok=True)
        self.path.chmod(0o700)
        for file, length in ((self.token_file, 32), (self.password_file, 18)):
            write_whole(file, secrets.token_hex(length), PRIVATE)
        self.scratch = tempfile.mkdtemp(prefix="study-ray-", dir="/tmp")  # short: sockets' paths must fit 107 bytes
        self.processes = []
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started until then is stopped
        try:
            self.mlflow = self._start_mlflow(home)
            self._start_head(home)
            for number in range(1, nodes + 1):
                self.add_node(home, f"node-{number}", cpus, gpus)
        except BaseException:
            self.stop()
            raise

    def add_node(self, home: Home, name: str, cpus: int, gpus: int) -> Process:
        """Start one more node."""
        options = [f"--address={self.address}", f"--num-cpus={cpus}", f"--num-gpus={gpus}", f"--node-name={name}"]
        return self._start_ray(home, name, options)

    def _joined(self) -> int:
        """Nodes that are alive, by the head's dashboard."""
        headers = {"Authorization": f"Bearer {read(self.token_file)}"}
        request = urllib.request.Request(self.dashboard + ray_internals.NODES, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                nodes = json.load(answer)["data"]["summary"]
        except (OSError, ValueError, KeyError):
            return 0
        return sum(node["raylet"].get("state") == "ALIVE" for node in nodes)

    def stop(self) -> None:
        """Stop all that was started."""
        for number, patience in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0)):
            for process in reversed(self.processes):
                process.kill(number)
            deadline = time.monotonic() + patience
            while self.alive() and time.monotonic() < deadline:
                time.sleep(0.1)
        for left in naming(self.scratch):  # what outlived its group's leader, as workers of a killed node
            with suppress(psutil.NoSuchProcess):
                left.kill()
        for child in self._children:
            with suppress(subprocess.TimeoutExpired):
                child.wait(5)
        if self.scratch:
            shutil.rmtree(self.scratch, ignore_errors=True)
        self.processes = []
        (self.path / "state.json").unlink(missing_ok=True)

    def _start_head(self, home: Home) -> None:
        port, dashboard = free_port(), free_port()
        self.address, self.dashboard = f"{LOOPBACK}:{port}", f"http://{LOOPBACK}:{dashboard}"
        options = ["--head", f"--port={port}", f"--dashboard-port={dashboard}", f"--dashboard-host={LOOPBACK}"]
        options += [f"--ray-client-server-port={free_port()}"]  # the usual one may be another cluster's
        options += ["--num-cpus=0", "--num-gpus=0", "--node-name=head"]
        options += [f"--temp-dir={self.scratch}/{ray_internals.BELOW}"]
        self._start_ray(home, "head", options)

    def _start_ray(self, home: Home, name: str, options: list[str]) -> Process:
        """A node, once it has joined; Ray gives up after 30 seconds, which a busy machine may exceed."""
        ray = [sys.executable, "-m", "study.cluster.loopback_node", "start", "--block"]
        ray += [f"--node-ip-address={LOOPBACK}", *options]
        ray += [f"--{port}={free_port()}" for port in ray_internals.AGENTS_PORTS]
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("RAY_", "MLFLOW_"))},
            **variables(Part.LOCAL_NODE),
            **self.environment(),
            "MLFLOW_TRACKING_PASSWORD": read(self.password_file),
            "STUDY_HOME": str(home.path),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")])),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        }
        before = 0 if name == "head" else self._joined()
        for left in reversed(range(TRIES)):
            process = self._start_process(name, ray, environment)
            while process.is_alive:
                if self._joined() > before:
                    return process
                time.sleep(0.5)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what it had started, which would slow the next attempt down
            self.processes.remove(process)
            if not left:
                raise UserError(f"{name} does not come up:\n{read(self.path / f'{name}.log')[-2000:]}")
        raise AssertionError

    def _start_mlflow(self, home: Home) -> str:
        port = free_port()
        users = self.path / "mlflow-auth.ini"
        database = address_of(self.path / "mlflow-users.db").replace("%", "%%")  # a lone one would refer to another key
        write_whole(
            users,
            "[mlflow]\ndefault_permission = NO_PERMISSIONS\nauth_cache_ttl_seconds = 60\n"
            f"database_uri = {database}\n"
            f"admin_username = {MLFLOW_USER}\nadmin_password = {read(self.password_file)}\n"
            "authorization_function = mlflow.server.auth:authenticate_request_basic_auth\n",
            PRIVATE,
        )
        (self.path / "mlflow-users.db").unlink(missing_ok=True)  # of a cluster with another password
        command = [sys.executable, "-m", "mlflow", "server", "--app-name", "basic-auth", "--workers", "1"]
        command += ["--backend-store-uri", address_of(home.database), "--host", LOOPBACK, "--port", str(port)]
        command += ["--artifacts-destination", home.artifacts.as_uri()]
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("MLFLOW_")},
            **variables(Part.MLFLOW_SERVER),
            "MLFLOW_AUTH_CONFIG_PATH": str(users),
            "MLFLOW_FLASK_SERVER_SECRET_KEY": secrets.token_hex(32),
        }
        self._start_process("mlflow", command, environment)
        uri = f"http://{LOOPBACK}:{port}"
        self._wait_for_mlflow(f"{uri}/health")
        return uri

    def _start_process(self, name: str, command: list[str], environment: dict[str, str]) -> Process:
        with (self.path / f"{name}.log").open("wb") as log:
            started = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._children.append(started)
        process = Process.of(name, started.pid)
        self.processes.append(process)
        self._save()
        return process

    def _wait_for_mlflow(self, url: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            with suppress(urllib.error.URLError, OSError), urllib.request.urlopen(url, timeout=5):
                return
            if not self.processes[-1].is_alive or time.monotonic() > deadline:
                raise UserError(f"mlflow does not come up:\n{read(self.path / 'mlflow.log')[-2000:]}")
            time.sleep(0.2)

    def _save(self) -> None:
        state = {key: value for key, value in asdict(self).items() if key != "path"}
        write_whole(self.path / "state.json", json.dumps(state, indent=2))
