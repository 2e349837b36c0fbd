"""A real Ray cluster of several nodes on this machine, to try things: loopback only, with a token, and MLflow with a
password. One file lists what it starts, which is what it stops.
"""

import json
import os
import platform
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Self

import psutil
from annotated_types import Gt, Lt

from study.cluster.job_log import ANSI_COLOUR_PATTERN
from study.cluster_addresses import LOOPBACK
from study.errors import StartInterruptedError, StudyStoppedError, UserError
from study.files import PRIVATE_FILE_MODE, as_user_error_if_unwritable, lock_file, read_json_or_none, write_atomically
from study.home import lease
from study.home.folder import ANOTHER_HOME_REMEDY, Home, sqlite_uri
from study.home.lease import machine_id
from study.upstream import interrupt, ray_internals
from study.upstream.environment import ProcessKind, variables_of_processes
from study.upstream.machine_load import machine_load_text
from study.upstream.ray_internals import RAY_JOB_VARIABLE
from study.writable_folders import ray_socket_folder

CLUSTER_MARK_VARIABLE = "STUDY_CLUSTER"
"""Variable that each process of a cluster which `study cluster up` started has inherited: the cluster's folder."""


@dataclass(frozen=True)
class StartedProcess:
    """A process group that was started.

    Attributes:
        pid: number of its leader.
        began: start of the leader, as `study.home.lease` gives it.
        machine: the running kernel, see `study.home.lease.machine_id`: after a reboot the number is another process's.
    """

    name: str
    pid: Annotated[int, Gt(0), Lt(2**31)]
    began: str
    machine: str

    @classmethod
    def from_pid(cls, name: str, pid: int) -> "StartedProcess":
        """Return the process that has a number at this moment; one that has ended is never alive."""
        try:
            return cls(name, pid, lease.ProcessIdentity.from_pid(pid).started, machine_id())
        except lease.ProcessGoneError:
            return cls(name, pid, "", machine_id())

    @property
    def is_alive(self) -> bool:
        try:
            return self.machine == machine_id() and lease.ProcessIdentity.from_pid(self.pid).started == self.began
        except lease.ProcessGoneError:
            return False

    def process_tree(self) -> set[psutil.Process]:
        """Return the process and all that it has started; nothing once it has ended."""
        with suppress(psutil.Error):
            return find_process_trees([psutil.Process(self.pid)]) if self.is_alive else set()
        return set()

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the whole group."""
        if self.is_alive:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)


def find_free_ports(count: int, but: Collection[int] = ()) -> list[int]:
    """Return different ports that nothing listens at.

    Args:
        but: ports to leave out, whose owners do not listen yet.
    """
    found: list[int] = []
    with ExitStack() as held:  # the kernel may give a port again once it is let go
        while len(found) < count:
            probe = held.enter_context(socket.socket())
            probe.bind((LOOPBACK, 0))
            port = int(probe.getsockname()[1])
            found += [port] if port not in but else []
    return found


def read_text_leniently(path: Path) -> str:
    """Return the text of a secret or a log; a log may hold any bytes."""
    return path.read_text(encoding="utf-8", errors="replace")


def find_process_trees(tops: Iterable[psutil.Process]) -> set[psutil.Process]:
    """Return processes and all that they have started."""
    found = set()
    for top in tops:
        with suppress(psutil.Error):
            found |= {top, *top.children(recursive=True)}
    return found


def find_cluster_processes(mark: str, scratch: str, variable: str = CLUSTER_MARK_VARIABLE) -> set[psutil.Process]:
    """Return the running processes of a cluster, whoever started them.

    These have its mark, or its scratch folder on their command line, or were started by such a process. Ray's workers
    overwrite both, and are found below their node.

    Args:
        mark: the value of `CLUSTER_MARK_VARIABLE` in their environment.
        variable: a further variable that they need to have in their environment.
    """
    found = []
    for one in psutil.process_iter(["cmdline", "environ"]):
        given = one.info["environ"] or {}
        has_scratch = bool(scratch) and scratch in " ".join(one.info["cmdline"] or ())
        is_ours = has_scratch or given.get(CLUSTER_MARK_VARIABLE) == mark
        is_wanted = is_ours and variable in given | {CLUSTER_MARK_VARIABLE: ""}
        if is_wanted and one.pid != os.getpid() and _shares_own_pid_namespace(one.pid):
            found.append(one)
    return find_process_trees(found)


def _shares_own_pid_namespace(pid: int) -> bool:
    """Return whether a process is in this one's PID namespace: in a container the same path may be another folder."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid") == os.readlink("/proc/self/ns/pid")
    except OSError:
        return not Path("/proc/self/ns/pid").exists()


def signal_and_wait(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    """Send a signal to processes, and wait at most 10 s until they have ended."""
    told = list(processes)
    for one in told:
        with suppress(psutil.Error):
            one.send_signal(number)
    psutil.wait_procs(told, timeout=10.0)


MLFLOW_USER = "admin"

SECRET_FILES = ("token", "mlflow-password", "mlflow-auth.ini", "mlflow-users.db*")
"""Files that give access to a cluster; they are removed with it."""

STATE_FILE = "state.json"
"""Name of the file, in the cluster's folder, that lists what was started."""


@dataclass
class LocalClusterState:
    """What was started of a home's cluster, and where it is.

    Attributes:
        address: for `study run --address`.
        dashboard: for `study submit --address`.
        mlflow: URI of its server.
        scratch: the folder of Ray's session.
        host: the machine that it runs on.
    """

    path: Path = Path()
    address: str = ""
    dashboard: str = ""
    mlflow: str = ""
    scratch: str = ""
    host: str = ""
    processes: list[StartedProcess] = field(default_factory=list)

    @classmethod
    def of_home(cls, home: Home) -> Self:
        """Return the cluster of a home; without processes if none was started.

        Raises:
            UserError: its file is damaged.
        """
        path = home.path / ".cluster"
        file = path / STATE_FILE
        if not file.exists():
            return cls(path)
        found = read_json_or_none(file, cls)
        if found is None:
            raise UserError(f"{file}: damaged. What it started is ended by: study cluster down")
        return replace(found, path=path)

    @classmethod
    def of_home_to_stop(cls, home: Home) -> Self:
        """Return what is to be stopped; of a cluster whose file is damaged, what can be found without it.

        Raises:
            UserError: it runs on another machine.
        """
        try:
            found = cls.of_home(home)
        except UserError:
            return cls(home.path / ".cluster")
        found.check_is_this_machine()
        return found

    @property
    def cluster_mark(self) -> str:
        """Value of `CLUSTER_MARK_VARIABLE` that its processes have inherited."""
        return os.path.realpath(self.path)

    @property
    def token_file(self) -> Path:
        return self.path / "token"

    @property
    def password_file(self) -> Path:
        return self.path / "mlflow-password"

    def living_processes(self) -> list[StartedProcess]:
        return [process for process in self.processes if process.is_alive]

    def client_environment(self) -> dict[str, str]:
        """Return the variables for clients of the cluster, without MLflow's password, which stays in its file."""
        return {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self.token_file),
            "MLFLOW_TRACKING_URI": self.mlflow,
            "MLFLOW_TRACKING_USERNAME": MLFLOW_USER,
        }

    def files_to_remove(self) -> list[Path]:
        """Return the files that are removed with the cluster: all of its folder but the logs."""
        return [file for pattern in (*SECRET_FILES, STATE_FILE) for file in self.path.glob(pattern)]

    def check_is_this_machine(self) -> None:
        """Refuse a cluster of another machine, whose processes cannot be seen here.

        Raises:
            UserError: says which machine.
        """
        if self.host not in ("", platform.node()) and self.processes:
            raise UserError(
                f"{self.path}: its cluster was started on {self.host}; there: study cluster down. If that machine is "
                "gone, remove the folder"
            )

    def save_cluster_state(self) -> None:
        """Write the file of the state."""
        state = {key: value for key, value in asdict(self).items() if key != "path"}
        write_atomically(self.path / STATE_FILE, json.dumps(state, indent=2))


PROJECT_FOLDER = Path(__file__).parents[2]

MAX_NODE_STARTS = 3
"""Starts of one of Ray's nodes: on a busy machine it may give up by itself."""


@dataclass(frozen=True, eq=False)
class ClusterPart:
    """A part of a cluster that `study cluster up` starts: MLflow's server, Ray's head, or a node.

    Attributes:
        make_command: returns the command that starts it, with new ports each time.
        is_up: returns whether it answers.
        max_starts: how often it is started before it is given up.
    """

    name: str
    make_command: Callable[[], list[str]]
    environment: dict[str, str]
    is_up: Callable[[], bool]
    max_starts: int = MAX_NODE_STARTS


def mlflow_part(cluster: LocalClusterState, home: Home) -> ClusterPart:
    """Return MLflow's server, at the address that the cluster names, with a password for its only user."""
    users = cluster.path / "mlflow-auth.ini"
    database = sqlite_uri(cluster.path / "mlflow-users.db").replace("%", "%%")  # a single one refers to another key
    write_atomically(
        users,
        "[mlflow]\ndefault_permission = NO_PERMISSIONS\nauth_cache_ttl_seconds = 60\n"
        f"database_uri = {database}\n"
        f"admin_username = {MLFLOW_USER}\nadmin_password = {read_text_leniently(cluster.password_file)}\n"
        "authorization_function = mlflow.server.auth:authenticate_request_basic_auth\n",
        PRIVATE_FILE_MODE,
    )
    command = [sys.executable, "-m", "mlflow", "server", "--app-name", "basic-auth", "--workers", "1"]
    command += ["--backend-store-uri", sqlite_uri(home.database_file), "--host", LOOPBACK]
    command += ["--port", cluster.mlflow.rpartition(":")[2], "--artifacts-destination", home.artifacts_folder.as_uri()]
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("MLFLOW_")},
        **variables_of_processes(ProcessKind.MLFLOW_SERVER),
        CLUSTER_MARK_VARIABLE: cluster.cluster_mark,
        "MLFLOW_AUTH_CONFIG_PATH": str(users),
        "MLFLOW_FLASK_SERVER_SECRET_KEY": secrets.token_hex(32),
    }
    return ClusterPart("mlflow", lambda: command, environment, lambda: _is_server_up(f"{cluster.mlflow}/health"), 1)


def head_part(cluster: LocalClusterState, home: Home) -> ClusterPart:
    """Return Ray's head, at the addresses that the cluster names; it runs no trials."""
    ports = {"--port": cluster.address, "--dashboard-port": cluster.dashboard}
    options = ["--head", *(f"{name}={address.rpartition(':')[2]}" for name, address in ports.items())]
    options += [f"--dashboard-host={LOOPBACK}", "--num-cpus=0", "--num-gpus=0", "--node-name=head"]
    options += [f"--temp-dir={cluster.scratch}/{ray_internals.RAY_SUBFOLDER}"]

    # the client's usual port may be another cluster's
    command = partial(_ray_start_command, cluster, options, "ray-client-server-port")
    return ClusterPart("head", command, _node_environment(cluster, home, ()), lambda: bool(joined_node_names(cluster)))


def node_part(cluster: LocalClusterState, home: Home, name: str, cpus: int, cards: Sequence[str]) -> ClusterPart:
    """Return a node for trials, with so many CPUs and with the cards of these names or numbers.

    Its session has a folder of its own: in the head's it would unpack a job's code over the driver's, and nodes that
    start together would take one socket's name.
    """
    options = [f"--address={cluster.address}", f"--num-cpus={cpus}", f"--num-gpus={len(cards)}", f"--node-name={name}"]
    options += [f"--temp-dir={cluster.scratch}/{name}"]

    command, environment = partial(_ray_start_command, cluster, options), _node_environment(cluster, home, cards)
    return ClusterPart(name, command, environment, lambda: name in joined_node_names(cluster))


def joined_node_names(cluster: LocalClusterState) -> list[str]:
    """Return the names of the living nodes, as the head's dashboard gives them."""
    headers = {"Authorization": f"Bearer {read_text_leniently(cluster.token_file)}"}
    request = urllib.request.Request(cluster.dashboard + ray_internals.DASHBOARD_NODES_PATH, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            nodes = [node["raylet"] for node in json.load(answer)["data"]["summary"]]
    except (OSError, ValueError, KeyError):
        return []
    return [node.get("nodeName", "") for node in nodes if node.get("state") == "ALIVE"]


def _ray_start_command(cluster: LocalClusterState, options: Collection[str], *more_ports: str) -> list[str]:
    """Return the command of a node, with different ports, as Ray's node refuses to start with two equal ones."""
    command = [sys.executable, "-m", "study.cluster.loopback_node", "start", "--block"]
    command += [f"--node-ip-address={LOOPBACK}", *options]
    names = [*more_ports, *ray_internals.AGENT_PORT_OPTIONS]
    taken = {int(address.rpartition(":")[2]) for address in (cluster.mlflow, cluster.dashboard, cluster.address)}
    ports = zip(names, find_free_ports(len(names), taken), strict=True)
    return [*command, *(f"--{name}={port}" for name, port in ports)]


def _node_environment(cluster: LocalClusterState, home: Home, cards: Sequence[str]) -> dict[str, str]:
    """Return a node's environment, which trials and drivers on it inherit."""
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith(("RAY_", "MLFLOW_"))},
        **variables_of_processes(ProcessKind.LOCAL_NODE),
        **cluster.client_environment(),
        CLUSTER_MARK_VARIABLE: cluster.cluster_mark,
        "CUDA_VISIBLE_DEVICES": ",".join(cards),
        "MLFLOW_TRACKING_PASSWORD": read_text_leniently(cluster.password_file),
        "STUDY_HOME": str(home.path),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(PROJECT_FOLDER), os.environ.get("PYTHONPATH")])),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
    }


def _is_server_up(url: str) -> bool:
    with suppress(urllib.error.URLError, OSError), urllib.request.urlopen(url, timeout=5):
        return True
    return False


PART_START_TIMEOUT_S = 900.0
"""Seconds that a part may take to come up; all cores of a small machine may be busy."""

SLOW_START_NOTICE_S = 10.0
"""Seconds after which the user is told, once, which parts are waited for, and how busy the machine is."""

MAX_NODES_STARTED_AT_ONCE = max(2, os.cpu_count() or 1)
"""Nodes that are started at the same time: two together take two thirds of the time of one after the other."""

PARTS_POLL_INTERVAL_S = 0.3
"""Seconds between two looks at parts that are waited for."""

SCRATCH_PREFIX = "study-ray-"
"""Prefix of the name of the folder of Ray's session. It is short: paths of sockets must fit into 107 bytes."""

MAX_SCRATCH_PARENT_CHARACTERS = (
    103 - ray_internals.MAX_SESSION_PATH_CHARACTERS - len(f"/{SCRATCH_PREFIX}12345678") - len("node-100")
)
"""Most characters of the path of the folder around it."""

LOG_TAIL_LINES = 4
"""Lines of a log that are shown where a part does not come up."""


NOTHING_LEFT_MESSAGE = "nothing of the cluster is left"

ProgressCallback = Callable[[str], object]
"""Function that is told in words how the parts are doing."""


@dataclass
class LocalCluster(LocalClusterState):
    """The cluster of a home, with the methods that start and stop it."""

    def __post_init__(self) -> None:
        self._children: dict[int, subprocess.Popen[bytes]] = {}  # of this process, which has to wait for them
        self._is_wait_told = False

    def start_cluster(
        self, home: Home, nodes: int, cpus: int, cards: Sequence[str] = (), tell: ProgressCallback = bool
    ) -> None:
        """Start MLflow, a head that runs no trials, and so many nodes.

        Args:
            cpus: of each node.
            cards: names or numbers of this machine's GPUs, which the nodes share out.
            tell: is told which parts are being started, and each as it comes up.

        Raises:
            UserError: one is there already, or is being started; or the home cannot be written.
            StudyStoppedError: a part does not come up; then nothing stays behind.
            StartInterruptedError: a signal came; likewise.
        """
        self.check_is_this_machine()
        with as_user_error_if_unwritable(home.path, ANOTHER_HOME_REMEDY):
            home.path.mkdir(parents=True, exist_ok=True)
            held = self.path.with_name(f"{self.path.name}-lock").open("a")
        with held:
            if not lock_file(held):
                raise UserError(f"a cluster of {home.path} is being started. Its state: study cluster status")
            self._start_all_parts(home, nodes, cpus, cards, tell)

    def _start_all_parts(self, home: Home, nodes: int, cpus: int, cards: Sequence[str], tell: ProgressCallback) -> None:
        """Start all parts, see `start_cluster`, while the lock is held."""
        if self.living_processes() or find_cluster_processes(self.cluster_mark, self.scratch):
            raise UserError(f"a cluster of {home.path} runs already. Its state: study cluster status")
        self._remove_leftovers()
        try:
            self._make_cluster_folder()
            self._start_and_wait([mlflow_part(self, home), head_part(self, home)], tell)
            parts = [node_part(self, home, f"node-{n + 1}", cpus, cards[n::nodes]) for n in range(nodes)]
            for first in range(0, nodes, MAX_NODES_STARTED_AT_ONCE):
                self._start_and_wait(parts[first : first + MAX_NODES_STARTED_AT_ONCE], tell)
        except BaseException as error:
            with interrupt.ignore_stop_signals_in_block():
                if isinstance(error, KeyboardInterrupt):
                    tell("stopping what was started")
                self.stop_cluster()
            if isinstance(error, KeyboardInterrupt):
                raise StartInterruptedError(f"stopped; {NOTHING_LEFT_MESSAGE}") from None
            if isinstance(error, StudyStoppedError):
                raise StudyStoppedError(f"{error}\n{NOTHING_LEFT_MESSAGE} but logs in {self.path}") from None
            raise

    def stop_cluster(self) -> int:
        """Stop all that was started, and remove its secrets and Ray's files; logs stay until the next start.

        Drivers of studies that are its jobs get a signal first, and time to stop.

        Returns:
            The number of processes.
        """
        drivers = find_cluster_processes(self.cluster_mark, self.scratch, RAY_JOB_VARIABLE)
        signal_and_wait(drivers, signal.SIGTERM)
        everything = set[psutil.Process]().union(*(part.process_tree() for part in self.processes))
        everything |= find_cluster_processes(self.cluster_mark, self.scratch)
        for part in reversed(self.processes):
            part.signal_group(signal.SIGTERM)
        deadline = time.monotonic() + 10.0
        while self.living_processes() and time.monotonic() < deadline:
            time.sleep(0.1)
        signal_and_wait(everything | find_cluster_processes(self.cluster_mark, self.scratch), signal.SIGKILL)
        for child in self._children.values():
            with suppress(subprocess.TimeoutExpired):
                child.wait(5)
        self._remove_leftovers()
        return len(everything | drivers)

    def _make_cluster_folder(self) -> None:
        """Make the folder with secrets, and choose the addresses."""
        self.path.mkdir(exist_ok=True)
        self.path.chmod(0o700)
        for log in self.path.glob("*.log"):
            log.unlink()
        for file, length in ((self.token_file, 32), (self.password_file, 18)):
            write_atomically(file, secrets.token_hex(length), PRIVATE_FILE_MODE)
        self.scratch = tempfile.mkdtemp(prefix=SCRATCH_PREFIX, dir=ray_socket_folder(MAX_SCRATCH_PARENT_CHARACTERS))
        self.host = platform.node()
        mlflow, dashboard, head = find_free_ports(3)
        self.mlflow, self.dashboard = (f"http://{LOOPBACK}:{port}" for port in (mlflow, dashboard))
        self.address = f"{LOOPBACK}:{head}"

    def _remove_leftovers(self) -> None:
        """Remove what is of no use once nothing runs."""
        if Path(self.scratch).name.startswith(SCRATCH_PREFIX):
            shutil.rmtree(self.scratch, ignore_errors=True)
        for file in self.files_to_remove():
            file.unlink(missing_ok=True)
        self.scratch, self.processes = "", []

    def _start_and_wait(self, parts: Sequence[ClusterPart], tell: ProgressCallback) -> None:
        """Start parts at the same time, and wait until all are up.

        Raises:
            StudyStoppedError: one has ended each time that it was started, or does not answer in time.
        """
        tell(f"starting {', '.join(part.name for part in parts)}")
        waiting = {part: (self._start_process(part), 1) for part in parts}
        began = time.monotonic()
        deadline = began + PART_START_TIMEOUT_S
        while waiting:
            if not self._is_wait_told and time.monotonic() - began > SLOW_START_NOTICE_S:
                self._is_wait_told = True
                tell(f"still waiting for {', '.join(part.name for part in waiting)}; {machine_load_text()}")
            time.sleep(PARTS_POLL_INTERVAL_S)
            if interrupt.has_stop_signal_come():  # but a library has swallowed it
                raise KeyboardInterrupt
            for part, (process, attempt) in list(waiting.items()):
                if process.is_alive and part.is_up():
                    del waiting[part]
                    tell(f"{part.name} runs")
                elif process.is_alive and time.monotonic() < deadline:
                    continue
                elif attempt == part.max_starts or time.monotonic() > deadline:
                    raise StudyStoppedError(f"{part.name} does not come up. {self._log_tail(part)}")
                else:
                    self._kill_failed_part(process)
                    why = "".join(self._log_lines(part)[-1:]) or "it says nothing"
                    tell(f"{part.name} has ended by itself: {why} (log: {self._log_file(part)}); attempt {attempt + 1}")
                    waiting[part] = self._start_process(part), attempt + 1

    def _kill_failed_part(self, process: StartedProcess) -> None:
        """Kill what is left of a part that has ended: it would slow down the next attempt."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        self.processes.remove(process)

    def _log_file(self, part: ClusterPart) -> Path:
        return self.path / f"{part.name}.log"

    def _log_lines(self, part: ClusterPart) -> list[str]:
        """Return the lines of a part's log, each its first 300 characters, without the code in Python's tracebacks."""
        lines = read_text_leniently(self._log_file(part)).splitlines()
        return [ANSI_COLOUR_PATTERN.sub("", line)[:300] for line in lines if line[:1].strip()]

    def _log_tail(self, part: ClusterPart) -> str:
        """Return the end of a part's log."""
        last = self._log_lines(part)[-LOG_TAIL_LINES:]
        return "\n".join([f"The end of {self._log_file(part)}:", *(f"  {line}" for line in last)])

    def _start_process(self, part: ClusterPart) -> StartedProcess:
        with self._log_file(part).open("ab") as log:
            try:
                started = subprocess.Popen(
                    part.make_command(),
                    env=part.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            except OSError as error:  # no memory or no number for one more process
                raise StudyStoppedError(f"{part.name} cannot be started: {error.strerror}") from None
        self._children[started.pid] = started
        process = StartedProcess.from_pid(part.name, started.pid)
        self.processes.append(process)
        self.save_cluster_state()
        return process
