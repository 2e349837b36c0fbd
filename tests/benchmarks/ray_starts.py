"""A driver's own Ray started in this package's way, and by Ray's documented ways: what each costs, and what it breaks.

    uv run python tests/benchmarks/ray_starts.py study          quickstart: to the first trial, whole, processor seconds
    uv run python tests/benchmarks/ray_starts.py killed         SIGKILL of the driver 0.5 to 16 s after its start
    uv run python tests/benchmarks/ray_starts.py interrupted    Ctrl-C at the same moments
    uv run python tests/benchmarks/ray_starts.py many           eight studies started at once on a machine kept busy

Ways (`--ways`), in turn:

- `ours`: `study.sweep.own_ray` as it is;
- `init`: `ray.init` as documented, in the driver;
- `command`: `ray start --head --block` as documented, begun by the driver before it reads the study file, and
  `ray.init(address=...)`; it ends with the driver by `study.upstream.end_with_parent`;
- `agents`, `monitor`, `api`, `setup`, `lines`, `classes`, `console`, `parent`, `port`, `node`: ours without one touch.

Processor seconds are those of all processes of the study, known by their STUDY_HOME, looked at ten times a second.
"""

import argparse
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil
from kills import living

HERE = Path(__file__).parent
MOMENTS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
LEFT_S = 10.0
"""Seconds after which what lives of a killed study counts as left behind."""

OF_TORCH = "torchinductor_"


class Started:
    """A process of Ray's that this one did not start by itself, as `OwnRay` knows it."""

    def __init__(self, process: psutil.Process) -> None:
        self._process, self.pid = process, process.pid

    def poll(self) -> int | None:
        with suppress(psutil.Error):
            return None if self._process.status() != psutil.STATUS_ZOMBIE else 1
        return 1

    def wait(self, timeout: float) -> None:
        with suppress(psutil.Error):
            self._process.wait(timeout)


def module(name: str) -> Any:
    """One whose parts are replaced here."""
    return importlib.import_module(name)


def patient() -> None:
    """The time limits of Ray's documented ways, as long as its variables allow."""
    os.environ |= {"RAY_raylet_start_wait_time_s": "600", "RAY_DASHBOARD_STARTUP_TIMEOUT_S": "600"}
    os.environ |= {"RAY_agent_register_timeout_ms": "600000"}


def by_init() -> None:
    """Make the driver start its Ray by `ray.init` alone."""
    from study.files import OWNER

    own_ray = module("study.sweep.own_ray")
    from study.upstream.ray_internals import PLACE, preloading, with_own_signals

    def start(ray: Any, folder: Path, processes: Any, patience: Any) -> None:
        import ray as library

        patient()
        os.environ |= {**preloading(own_ray.PRELOAD), **processes.variables(folder / "ready"), OWNER: str(folder)}
        os.environ[PLACE] = str(folder)
        options: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "configure_logging": False}
        with_own_signals(lambda: library.init(address="local", namespace="study", **options))
        for child in psutil.Process().children():
            if child.name() in ("gcs_server", "raylet"):
                ray.add(child.name(), Started(child))

    own_ray._start = start


def by_command() -> None:
    """Make the driver start its Ray by `ray start`, at once."""
    files = module("study.files")
    from study.address import LOOPBACK, token_for
    from study.cluster.local import free_ports
    from study.files import OWNER, RUN
    from study.places import for_sockets

    own_ray = module("study.sweep.own_ray")
    from study.upstream import end_with_parent
    from study.upstream.environment import LOOPBACK_ALONE, ProcessKind, set_here
    from study.upstream.ray_internals import AGENTS_PORTS, preloading, with_own_signals

    patient()
    set_here(ProcessKind.DRIVER, ProcessKind.OWN_RAY)
    os.environ |= LOOPBACK_ALONE
    opened = ExitStack()
    folder = opened.enter_context(files.scratch_folder(RUN, for_sockets(own_ray.MAX_FOLDER_CHARACTERS)))
    opened.enter_context(token_for(folder))
    os.environ["RAY_AUTH_MODE"] = "token"
    count = os.cpu_count() or 1
    processes = own_ray.Processes(count, 1)
    environment = {**os.environ, **preloading(own_ray.PRELOAD), **processes.variables(folder / "ready")}
    environment |= {OWNER: str(folder)}
    port, *ports = free_ports(2 + len(AGENTS_PORTS))
    name = Path("/proc/self/comm").read_text(encoding="utf-8").strip()
    command = [sys.executable, "-I", "-S", end_with_parent.__file__, name]
    command += [str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", f"--port={port}"]
    command += [f"--node-ip-address={LOOPBACK}", f"--temp-dir={folder / 'r'}", "--include-dashboard=false"]
    command += ["--disable-usage-stats", "--include-log-monitor=false", f"--ray-client-server-port={ports.pop()}"]
    command += [f"--{name}={number}" for name, number in zip(AGENTS_PORTS, ports, strict=True)]
    with (folder / "command.log").open("wb") as log:
        node = subprocess.Popen(
            command, env=environment, start_new_session=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )

    def start(ray: Any, _: Path, processes: Any, patience: Any) -> None:
        import ray as library

        ray._folder = folder
        ray.add("command", node)

        def runs() -> bool:
            return "Ray runtime started" in (folder / "command.log").read_text(encoding="utf-8", errors="replace")

        patience.wait(runs)
        options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        with_own_signals(lambda: library.init(address=f"{LOOPBACK}:{port}", namespace="study", **options))
        processes._folder = folder / "ready"

    class Same:
        """The folder that is there already."""

        def __enter__(self) -> Path:
            return folder

        def __exit__(self, *_: object) -> None:
            with suppress(Exception):
                os.killpg(node.pid, signal.SIGKILL)
            opened.close()

    own_ray._start = start
    own_ray.scratch_folder = lambda *_: Same()
    own_ray.token_for = lambda _: ExitStack()


def without_agents_left_out() -> None:
    """Ours, but with Ray's agents."""
    ray_internals = module("study.upstream.ray_internals")

    ray_internals._without_agents = lambda command: command
    patient()


def with_monitor() -> None:
    """Ours, but with the monitor of an autoscaler."""
    _node_keeps("start_monitor")


def with_api_server() -> None:
    """Ours, but with the dashboard's process that Ray starts without a dashboard, too."""
    _node_keeps("start_api_server")


def _node_keeps(method: str) -> None:
    ray_internals = module("study.upstream.ray_internals")

    patient()
    lean = ray_internals.lean_node

    def lean_but(*arguments: Any, **options: Any) -> Any:
        from contextlib import contextmanager

        from ray._private import node

        theirs = getattr(node.Node, method)

        @contextmanager
        def made() -> Any:
            with lean(*arguments, **options):
                setattr(node.Node, method, theirs)
                yield

        return made()

    own_ray = module("study.sweep.own_ray")

    own_ray.lean_node = lean_but


def with_setup() -> None:
    """Ours, but workers begin by Ray's script and do not end with their raylet."""
    ray_internals = module("study.upstream.ray_internals")

    ray_internals._ending_with_it = lambda command: command


def with_rays_lines() -> None:
    """Ours, but with Ray's thread that prints."""
    from contextlib import nullcontext

    own_ray = module("study.sweep.own_ray")

    own_ray.without_rays_own_lines = lambda _: nullcontext()


def with_tunes_classes() -> None:
    """Ours, but Tune asks for processes with an environment of its own."""
    module("study.upstream.ray_internals").let_trials_inherit_environment = bool


def _without(name: str) -> None:
    """Ours, but for one of the places that `lean_node` replaces."""
    from contextlib import contextmanager

    own_ray = module("study.sweep.own_ray")
    ray_internals = module("study.upstream.ray_internals")

    lean = ray_internals.lean_node

    @contextmanager
    def lean_but(*arguments: Any, **options: Any) -> Any:
        from ray._private import node, services, utils

        (module,) = (
            one for one in (services, utils, node) if name in vars(one) and (one is not node or "port" in name)
        )
        theirs = getattr(module, name)
        with lean(*arguments, **options):
            setattr(module, name, theirs)
            yield

    own_ray.lean_node = lean_but


WAYS: dict[str, Callable[[], None]] = {
    "ours": lambda: None,
    "init": by_init,
    "command": by_command,
    "agents": without_agents_left_out,
    "monitor": with_monitor,
    "api": with_api_server,
    "setup": with_setup,
    "lines": with_rays_lines,
    "classes": with_tunes_classes,
    "console": lambda: _without("ConsolePopen"),
    "parent": lambda: _without("set_kill_on_parent_death_linux"),
    "port": lambda: _without("wait_for_persisted_port"),
    "node": lambda: _without("get_node"),
}


def as_study(way: str, words: list[str]) -> None:
    """Do what `study WORDS` does, with a driver that starts its Ray in this way."""
    WAYS[way]()
    sys.argv = ["study", *words]
    import runpy

    runpy.run_module("study", run_name="__main__", alter_sys=True)


class Meter:
    """Processor seconds of the processes of a home, those that have ended as they were last seen."""

    def __init__(self, home: Path) -> None:
        self._home, self._others = str(home), set[tuple[int, float]]()
        self._spent: dict[tuple[int, float], tuple[float, str]] = {}
        self.listeners: set[str] = set()

    def look(self) -> None:
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                known = (process.pid, process.create_time())
                if known in self._others:
                    continue
                if known not in self._spent and process.environ().get("STUDY_HOME") != self._home:
                    if time.time() - known[1] > 2:  # what `exec` will replace is looked at again
                        self._others.add(known)
                    continue
                times = process.cpu_times()
                self._spent[known] = (times.user + times.system, " ".join(process.cmdline())[:60])

    def look_at_listeners(self) -> None:
        for process in living(Path(self._home)):
            with suppress(psutil.Error):
                for one in process.net_connections(kind="inet"):
                    if one.status == psutil.CONN_LISTEN:
                        place = "loopback" if one.laddr.ip.startswith(("127.", "::ffff:127.", "::1")) else one.laddr.ip
                        self.listeners.add(f"{place} {process.name()}")

    @property
    def total(self) -> float:
        return sum(spent for spent, _ in self._spent.values())


class Place:
    """A home, data and temporary folder of one study."""

    def __init__(self, work: Path, data: Path) -> None:
        self.home, self.temporary = work / "home", work / "tmp"
        self.home.mkdir()
        self.temporary.mkdir()
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(("MLFLOW", "RAY_"))}
        self.environment |= {"STUDY_HOME": str(self.home), "STUDY_DATA": str(data), "TMPDIR": str(self.temporary)}

    def begin(self, way: str, *words: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, __file__, "as", way, *words]
        with (self.home.parent / "output").open("wb") as output:
            return subprocess.Popen(
                command, env=self.environment, cwd=self.home, stdout=output, stderr=output, start_new_session=True
            )

    def events(self) -> list[dict[str, Any]]:
        ledgers = [*self.home.glob("*/ledger.jsonl")]
        return [json.loads(line) for file in ledgers for line in file.read_text(encoding="utf-8").splitlines()]

    def said(self) -> str:
        return (self.home.parent / "output").read_text(encoding="utf-8", errors="replace")

    def left(self) -> list[str]:
        folders = [path.name for path in self.temporary.iterdir() if not path.name.startswith(OF_TORCH)]
        return [*folders, *(f"{one.pid} {' '.join(one.cmdline())[:100]}" for one in living(self.home))]

    def clean(self) -> None:
        for one in living(self.home):
            with suppress(psutil.Error):
                one.kill()


def of_study(way: str, work: Path, data: Path, words: list[str]) -> dict[str, Any]:
    """Figures of one whole study."""
    place, began = Place(work, data), time.time()
    process, meter = place.begin(way, "run", "quickstart", "--quiet", *words), Meter(place.home)
    first, looked = 0.0, 0.0
    while process.poll() is None:
        meter.look()
        if not first and any(event["event"] == "started" for event in place.events()):
            first = meter.total
        if time.time() - looked > 3:
            looked = time.time()
            meter.look_at_listeners()
        time.sleep(0.1)
    whole = time.time() - began
    times = [event["time"] - began for event in place.events() if event["event"] == "started"]
    found = {"status": process.returncode, "first trial": round(min(times, default=0.0), 1), "whole": round(whole, 1)}
    found |= {"cpu to first trial": round(first, 1), "cpu": round(meter.total, 1), "load": os.getloadavg()[0]}
    found["beyond loopback"] = sorted(one for one in meter.listeners if not one.startswith("loopback"))
    if process.returncode:
        found["said"] = place.said()[-1500:]
    place.clean()
    if os.environ.get("SHOW"):
        for spent, command in sorted(meter._spent.values(), reverse=True)[:15]:
            print(f"   {spent:6.1f} {command}", file=sys.stderr)
    return found


def of_signal(way: str, work: Path, data: Path, moment: float, number: signal.Signals) -> dict[str, Any]:
    """What is left of a study whose driver is killed, or that is interrupted, so long after its start."""
    place = Place(work, data)
    process = place.begin(way, "run", "quickstart", "--quiet", "--set", "search.trials=1000")
    time.sleep(moment)
    many = len(living(place.home))
    if number == signal.SIGKILL:
        process.kill()
    else:
        os.killpg(process.pid, number)
    sent = time.monotonic()
    while living(place.home) and time.monotonic() - sent < 3 * LEFT_S:
        process.poll()
        time.sleep(0.1)
    gone = round(time.monotonic() - sent, 1)
    status = process.poll()
    if number == signal.SIGKILL:  # the next command of this user removes what a killed one left
        subprocess.run(
            [sys.executable, "-c", "from study.files import clear_scratch; clear_scratch()"],
            env=place.environment,
            check=True,
        )
    found = {"moment": moment, "processes": many, "gone after": gone, "status": status, "left": place.left()}
    place.clean()
    process.kill()
    return found


BURN = "import itertools\nfor _ in itertools.count(): pass"


def of_many(way: str, work: Path, data: Path, count: int, load: int, limit: float) -> dict[str, Any]:
    """How many of several studies started at once begin their first trial, beside so many processes that compute."""
    busy = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(load)]
    try:
        places = []
        for number in range(count):
            (folder := work / str(number)).mkdir()
            places.append(Place(folder, data))
        began = time.monotonic()
        words = ["run", "quickstart", "--set", "search.trials=2", "--set", "search.confirm={top: 0}"]
        processes = [place.begin(way, *words) for place in places]
        begun: dict[int, float] = {}
        while time.monotonic() - began < limit and len(begun) < count:
            for number, place in enumerate(places):
                if number not in begun and any(event["event"] == "started" for event in place.events()):
                    begun[number] = round(time.monotonic() - began, 1)
            if all(process.poll() is not None for process in processes):
                break
            time.sleep(0.5)
        ended = [place.said()[-600:] for n, place in enumerate(places) if processes[n].poll() and n not in begun]
        again = sum(place.said().count("starting Ray, attempt") for place in places)
        return {
            "begun": len(begun),
            "of": count,
            "after": sorted(begun.values()),
            "told of a second attempt": again,
            "ended": ended,
            "load": os.getloadavg()[0],
        }
    finally:
        for one in busy:
            one.kill()
            one.wait()
        for place in places:
            place.clean()


def main() -> None:
    if sys.argv[1:2] == ["as"]:
        as_study(sys.argv[2], sys.argv[3:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("study", "killed", "interrupted", "many"))
    parser.add_argument("--ways", nargs="+", default=["ours", "init", "command"], choices=list(WAYS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--load", type=int, default=6)
    parser.add_argument("--limit", type=float, default=600.0)
    parser.add_argument("--set", dest="assignments", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    words = [word for one in given.assignments for word in ("--set", one)]
    with tempfile.TemporaryDirectory(prefix="starts-") as data_folder:
        data = Path(data_folder)
        for run in range(given.runs):
            for way in given.ways:
                for moment in MOMENTS if given.what in ("killed", "interrupted") else (0.0,):
                    with tempfile.TemporaryDirectory(prefix="start-") as folder:
                        if given.what == "study":
                            found = of_study(way, Path(folder), data, words)
                        elif given.what == "many":
                            found = of_many(way, Path(folder), data, given.count, given.load, given.limit)
                        else:
                            number = signal.SIGKILL if given.what == "killed" else signal.SIGINT
                            found = of_signal(way, Path(folder), data, moment, number)
                    print(json.dumps({"what": given.what, "way": way, "run": run, **found}), flush=True)


if __name__ == "__main__":
    main()
