"""A real Ray cluster of several nodes on this machine, for trying things: loopback only, with a token, and MLflow
with a password. What it starts is in one file, and is what it stops.
"""

import os
import platform
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from study.address import LOOPBACK
from study.cluster import local_parts
from study.cluster.following import COLOURS
from study.cluster.local_parts import LINK, LocalState, Part, Process, end, free_ports, of_cluster, read
from study.errors import Interrupted, Stopped, UserError
from study.files import PRIVATE, write_whole
from study.home.folder import Home
from study.upstream import interrupt
from study.upstream.ray_internals import JOB

PATIENCE = 900.0
"""Seconds that a part may take to come up; all cores of a small machine may be busy."""

AT_ONCE = max(2, os.cpu_count() or 1)
"""Nodes that are started at the same time: two together take two thirds of the time of one after the other."""

ASK = 0.3
"""Seconds between two looks at parts that are waited for."""

SCRATCH = "/tmp/study-ray-"
"""How the folder of Ray's session begins. It is short: paths of sockets must fit into 107 bytes."""

TAIL = 4
"""Lines of a log that are shown where a part does not come up."""


LEFT = "nothing of the cluster is left"

STARTING, RUNS = "starting", "runs"

Tell = Callable[[str, Sequence[str]], None]
"""Is told that parts of these names are `STARTING`, that one `RUNS`, or in other words what becomes of it."""


def tell_nobody(what: str, names: Sequence[str]) -> None:
    """Tells nobody."""


@dataclass
class LocalCluster(LocalState):
    """It, to be started and stopped."""

    def __post_init__(self) -> None:
        self._children: dict[int, subprocess.Popen[bytes]] = {}  # of this process, which has to wait for them

    def start(self, home: Home, nodes: int, cpus: int, cards: Sequence[str] = (), tell: Tell = tell_nobody) -> None:
        """Start MLflow, a head that runs no trials, and so many nodes.

        Args:
            cpus: of each node.
            cards: names or numbers of this machine's GPUs, which the nodes share out.
            tell: is told which parts are being started, and each as it comes up.

        Raises:
            UserError: one is there already.
            Stopped: a part does not come up; then nothing stays behind.
            Interrupted: a signal came; likewise.
        """
        self.check_host()
        if self.alive() or of_cluster(self.mark, self.scratch):
            raise UserError(f"a cluster of {home.path} runs already. Its state: study cluster status")
        self._clear()
        try:
            self._prepare()
            self._bring_up([local_parts.mlflow(self, home), local_parts.head(self, home)], tell)
            shares = list(enumerate(local_parts.shared_out(cards, nodes), 1))
            for first in range(0, nodes, AT_ONCE):
                some = shares[first : first + AT_ONCE]
                self._bring_up([local_parts.node(self, home, f"node-{n}", cpus, share) for n, share in some], tell)
        except BaseException as error:
            with interrupt.ignored():
                if isinstance(error, KeyboardInterrupt):
                    tell("stopping what was started", ())
                self.stop()
            if isinstance(error, KeyboardInterrupt):
                raise Interrupted(f"stopped; {LEFT}") from None
            if isinstance(error, Stopped):
                raise Stopped(f"{error}\n{LEFT} but logs in {self.path}") from None
            raise

    def add_node(self, home: Home, name: str, cpus: int, cards: Sequence[str] = ()) -> None:
        """Start one more node.

        Raises:
            Stopped: it does not come up.
        """
        self._bring_up([local_parts.node(self, home, name, cpus, cards)], tell_nobody)

    def stop(self) -> int:
        """Stop all that was started, and remove its secrets and Ray's files; logs stay until the next start. Studies'
        drivers that are jobs of it stop first, in good order if they can.

        Returns:
            How many processes there were.
        """
        drivers = of_cluster(self.mark, self.scratch, JOB)
        end(drivers, signal.SIGTERM, 10.0)
        everything = set[psutil.Process]().union(*(part.tree() for part in self.processes))
        everything |= of_cluster(self.mark, self.scratch)
        for part in reversed(self.processes):
            part.kill(signal.SIGTERM)
        deadline = time.monotonic() + 10.0
        while self.alive() and time.monotonic() < deadline:
            time.sleep(0.1)
        end(everything | of_cluster(self.mark, self.scratch), signal.SIGKILL, 10.0)
        for child in self._children.values():
            with suppress(subprocess.TimeoutExpired):
                child.wait(5)
        self._clear()
        return len(everything | drivers)

    def _prepare(self) -> None:
        """The folder with secrets, and the addresses."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.path.chmod(0o700)
        for log in self.path.glob("*.log"):
            log.unlink()
        for file, length in ((self.token_file, 32), (self.password_file, 18)):
            write_whole(file, secrets.token_hex(length), PRIVATE)
        self.scratch = tempfile.mkdtemp(prefix=Path(SCRATCH).name, dir=Path(SCRATCH).parent)
        (self.path / LINK).symlink_to(self.scratch)
        self.host = platform.node()
        mlflow, dashboard, head = free_ports(3)
        self.mlflow, self.dashboard = (f"http://{LOOPBACK}:{port}" for port in (mlflow, dashboard))
        self.address = f"{LOOPBACK}:{head}"

    def _clear(self) -> None:
        """Remove what is of no use to anybody once nothing runs."""
        if self.scratch.startswith(SCRATCH):
            shutil.rmtree(self.scratch, ignore_errors=True)
        for file in self.left_files():
            file.unlink(missing_ok=True)
        self.scratch, self.processes = "", []

    def _bring_up(self, parts: Sequence[Part], tell: Tell) -> None:
        """Start parts at the same time, and wait until all are up.

        Raises:
            Stopped: one has ended each time that it was started, or does not answer in time.
        """
        tell(STARTING, [part.name for part in parts])
        waiting = {part: (self._start(part), 1) for part in parts}
        deadline = time.monotonic() + PATIENCE
        while waiting:
            time.sleep(ASK)
            if interrupt.has_come():  # and a library has swallowed it
                raise KeyboardInterrupt
            for part, (process, attempt) in list(waiting.items()):
                if process.is_alive and part.is_up():
                    del waiting[part]
                    tell(RUNS, [part.name])
                elif process.is_alive and time.monotonic() < deadline:
                    continue
                elif attempt == part.tries or time.monotonic() > deadline:
                    raise Stopped(f"{part.name} does not come up. {self._last_words(part)}")
                else:
                    self._give_up(process)
                    tell(f"has ended by itself, attempt {attempt + 1}", [part.name])
                    waiting[part] = self._start(part), attempt + 1

    def _give_up(self, process: Process) -> None:
        """End what a part had started that has ended itself: it would slow the next attempt down."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        self.processes.remove(process)

    def _last_words(self, part: Part) -> str:
        """The end of a part's log, without the places in the code that Python names."""
        file = self.path / f"{part.name}.log"
        lines = [COLOURS.sub("", line) for line in read(file).splitlines() if line[:1].strip()]
        return "\n".join([f"The end of {file}:", *(f"  {line[:300]}" for line in lines[-TAIL:])])

    def _start(self, part: Part) -> Process:
        with (self.path / f"{part.name}.log").open("ab") as log:
            try:
                started = subprocess.Popen(
                    part.command(),
                    env=part.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            except OSError as error:  # no memory or no number for one more process
                raise Stopped(f"{part.name} cannot be started: {error.strerror}") from None
        self._children[started.pid] = started
        process = Process.of(part.name, started.pid)
        self.processes.append(process)
        self.save()
        return process
