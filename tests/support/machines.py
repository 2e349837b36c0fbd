"""Machines of their own addresses, made of this one: network, process, mount and host name namespaces on a bridge.

What a machine runs sees its own network, processes and `/tmp/ray`; the rest of the disk is as a folder that all share.
One that is switched off loses its processes at once, as by its power; one whose link is cut goes on alone.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
from command import as_a_users

BRIDGE, PREFIX, NETWORK = "study0", "study-", "10.77.0"
GATEWAY = f"{NETWORK}.254"
"""This machine's own address among them."""

HEAD, HEAD_PORT, DASHBOARD_PORT = 1, 6379, 8265


def missing() -> str | None:
    """What stands against machines here."""
    if os.geteuid():
        return "needs root"
    absent = [name for name in ("ip", "unshare", "nsenter") if not shutil.which(name)]
    if absent:
        return f"needs {', '.join(absent)}"
    probe = f"{PREFIX}probe"
    tried = subprocess.run(["ip", "link", "add", probe, "type", "bridge"], capture_output=True, text=True)
    if tried.returncode:
        return f"needs network namespaces: {tried.stderr.strip()}"
    _run("ip", "link", "del", probe)
    return None


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout


def _sweep() -> None:
    """Take away the bridge and all machines, also those of a run that was killed or of a machine half made."""
    for network in (line.split()[0] for line in _run("ip", "netns", "list").splitlines()):
        if network.startswith(PREFIX):
            for pid in _run("ip", "netns", "pids", network).split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            _run("ip", "netns", "del", network)
    if Path("/sys/class/net", BRIDGE).exists():
        _run("ip", "link", "del", BRIDGE)


def _sleeps(init: psutil.Process) -> bool:
    """Whether the first process of a machine has all behind it; what it does before ends at any moment."""
    with suppress(psutil.NoSuchProcess):
        return any(one.name() == "sleep" for one in init.children())
    return False


class Machine:
    """One that is on: an address, and what runs on it. Its first process reaps orphans, as an init does."""

    def __init__(self, name: str, number: int) -> None:
        self.name, self.address = name, f"{NETWORK}.{number}"
        self._network, self._link = f"{PREFIX}{name}", f"{PREFIX}{number}"
        _run("ip", "netns", "add", self._network)
        _run("ip", "link", "add", self._link, "type", "veth", "peer", "name", "eth0", "netns", self._network)
        _run("ip", "link", "set", self._link, "master", BRIDGE, "up")
        for settings in (("addr", "add", f"{self.address}/24", "dev", "eth0"), ("link", "set", "eth0", "up")):
            _run("ip", "-n", self._network, *settings)
        _run("ip", "-n", self._network, "link", "set", "lo", "up")
        ready = f"set -e; hostname {name}; mkdir -p /tmp/ray; mount -t tmpfs tmpfs /tmp/ray"
        script = f"{ready}; while :; do sleep 3600 & wait $!; done"
        apart = ["unshare", "--mount", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc"]
        self._first = subprocess.Popen(["ip", "netns", "exec", self._network, *apart, "bash", "-c", script])
        deadline = time.monotonic() + 10
        while not (found := psutil.Process(self._first.pid).children()) or not _sleeps(found[0]):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        self._inside = found[0].pid
        self._started: list[subprocess.Popen[bytes]] = []

    @property
    def network(self) -> list[str]:
        """Before a command: in its network alone, so that signals and exit status are those of the command."""
        return ["ip", "netns", "exec", self._network]

    def start(self, *words: str, log: Path, **environment: str) -> "subprocess.Popen[bytes]":
        """Begin something there."""
        spaces = ["nsenter", "--target", str(self._inside), "--mount", "--pid", "--uts", "--net", "--"]
        with log.open("ab") as file:
            started = subprocess.Popen(
                [*spaces, *words],
                env={**as_a_users(), **environment},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        self._started.append(started)
        return started

    def cut(self) -> None:
        """Nothing comes or goes any more."""
        _run("ip", "link", "set", self._link, "down")

    def mend(self) -> None:
        _run("ip", "link", "set", self._link, "up")

    def off(self) -> None:
        """Its power is gone: with its first process all others end, none of which can do anything about it."""
        self._first.kill()
        for one in (self._first, *self._started):
            one.wait()
        with suppress(subprocess.CalledProcessError):
            _run("ip", "link", "del", self._link)
        with suppress(subprocess.CalledProcessError):
            _run("ip", "netns", "del", self._network)


class Cluster:
    """A Ray cluster of machines, with a token, the home of whose studies all of them see. One at a time.

    Args:
        folder: for its token, logs and home; empty.
        environment: variables of every node, as that of an MLflow server.
    """

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder, self.home = folder, folder / "home"
        self.home.mkdir()
        self.token_file = folder / "token"
        self.token_file.touch(mode=0o600)
        self.token_file.write_text("f1" * 32)
        self.environment = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self.token_file),
            "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1",
            "RAY_JOB_STOP_WAIT_TIME_S": "120",
            "RAY_gcs_rpc_server_reconnect_timeout_s": "300",
            "STUDY_HOME": str(self.home),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            **environment,
        }
        self.machines: dict[str, Machine] = {}
        self._of_head: dict[str, str] = {}
        self._number = HEAD
        _sweep()
        _run("ip", "link", "add", BRIDGE, "type", "bridge")
        _run("ip", "addr", "add", f"{GATEWAY}/24", "dev", BRIDGE)
        _run("ip", "link", "set", BRIDGE, "up")

    @property
    def address(self) -> str:
        return f"{NETWORK}.{HEAD}:{HEAD_PORT}"

    @property
    def dashboard(self) -> str:
        return f"http://{NETWORK}.{HEAD}:{DASHBOARD_PORT}"

    @property
    def state_outlives(self) -> bool:
        """Whether a head that is started again knows what the one before it knew."""
        return "RAY_REDIS_ADDRESS" in self._of_head

    def machine(self, name: str) -> Machine:
        """Switch one on, at an address that none had before."""
        self._number += 1
        self.machines[name] = Machine(name, self._number)
        return self.machines[name]

    def head(self, **environment: str) -> None:
        """Start the head, which runs no trials, with further variables; again with the same ones once it was off."""
        self._of_head |= environment
        there = self.machines["head"] = Machine("head", HEAD)
        options = ["--head", f"--port={HEAD_PORT}", f"--dashboard-host={there.address}"]
        options += [f"--dashboard-port={DASHBOARD_PORT}", "--num-cpus=0", "--num-gpus=0"]
        if "RAY_REDIS_PASSWORD" in self._of_head:
            options.append(f"--redis-password={self._of_head['RAY_REDIS_PASSWORD']}")
        self._start(there, options, **self._of_head)
        self._wait(lambda: there.address in self.alive())

    def node(self) -> Machine:
        """Start a node of one core."""
        there = self.machine(f"node-{self._number + 1}")
        self._start(there, [f"--address={self.address}", "--num-cpus=1", "--num-gpus=0"])
        self._wait(lambda: there.address in self.alive())
        return there

    def off(self, *names: str, wait: bool = False) -> None:
        """Switch machines off; `wait` until the head knows."""
        gone = {self.machines[name].address for name in names}
        for name in names:
            self.machines.pop(name).off()
        if wait:
            self._wait(lambda: bool(there := self.alive()) and not gone & there)

    def alive(self) -> set[str]:
        """The addresses of nodes that the head takes for alive."""
        headers = {"Authorization": f"Bearer {self.token_file.read_text()}"}
        request = urllib.request.Request(f"{self.dashboard}/nodes?view=summary&nocache=1", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                nodes = [node["raylet"] for node in json.load(answer)["data"]["summary"]]
        except (urllib.error.URLError, OSError):
            return set()
        return {node["nodeManagerAddress"] for node in nodes if node.get("state") == "ALIVE"}

    def remove(self) -> None:
        for one in self.machines.values():
            one.off()
        _sweep()

    def _start(self, there: Machine, options: list[str], **environment: str) -> None:
        ray = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", f"--node-ip-address={there.address}"]
        ray += [f"--node-name={there.name}", f"--object-store-memory={2 * 10**8}", *options]
        there.start(*ray, log=self.folder / f"{there.name}.log", **self.environment, **environment)

    def _wait(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 180
        while not condition():
            assert time.monotonic() < deadline, [one.read_text()[-800:] for one in self.folder.glob("*.log")]
            time.sleep(0.5)
