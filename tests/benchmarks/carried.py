"""What one driver carries: a real study with many trials at once, all of which one process stands for.

    uv run python tests/benchmarks/carried.py [--trials 20 300 1000 3000] [--every 10] [--sync 0 5] [--json]

No machine of this size carries thousands of processes of trials. So Tune's manager gets one process of Ray's that
answers for all of them: it takes each call that Tune makes of a trial's process, and gives the next report `--every`
seconds after it. All else is as in any study: Tune's loop and Ray's calls, the agenda with ASHA, the ledger synced to
disk, MLflow on SQLite, 15 metrics in a report. Configurations are drawn at random, so that no sampler is measured.

Once each trial has reported, `--seconds` are measured: reports heard in a second, beside those that are due; how long a
trial waits until its report was heard, and the next call came; and how much of a core the driver takes. `--sync` makes
each sync of a file longer by so many milliseconds, as a slow disk or a shared folder has it.
"""

import argparse
import asyncio
import importlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from types import SimpleNamespace
from typing import Any

METRICS = 15
EPOCHS = 1000
"""Of a trial: it goes on beyond what is measured."""


class Crowd:
    """Stands for all processes of trials."""

    def __init__(self, every: float) -> None:
        self._every = every
        self._epochs: dict[int, int] = {}
        self._told: dict[int, float] = {}
        self._waits: list[float] = []

    async def call(self, method: str, number: int) -> Any:
        """What Tune asks of a process; `train` is the next epoch of the trial that it has."""
        if method != "train":
            return True
        if number not in self._epochs:
            self._epochs[number] = 0
            return self._report({"node": f"stand-in:{number}", "machine": "stand-in", "device": "{}", "behind": 0})
        if told := self._told.get(number):
            self._waits.append(time.monotonic() - told)
        await asyncio.sleep(self._every if told else random.uniform(0.5, 1.5) * self._every)
        self._epochs[number] += 1
        self._told[number] = time.monotonic()
        metrics = {"val/accuracy": random.random(), "time/epoch": self._every}
        metrics |= {f"train/figure_{place}": 0.5 for place in range(METRICS - len(metrics))}
        return self._report({"epoch": self._epochs[number], "metrics": json.dumps(metrics)})

    def _report(self, told: dict[str, Any]) -> dict[str, Any]:
        iteration = told.get("epoch", 0) + 1
        tunes = {"training_iteration": iteration, "time_this_iter_s": self._every, "should_checkpoint": False}
        return {**told, **tunes, "done": False}

    async def waits(self) -> list[float]:
        """Seconds that trials have waited since this was last asked."""
        found, self._waits = self._waits, []
        return found


class Process:
    """The handle of a process that there is not."""

    def __init__(self, crowd: Any, number: int) -> None:
        self._crowd, self._number = crowd, number

    def __getattr__(self, method: str) -> Any:
        return SimpleNamespace(remote=lambda *_, **__: self._crowd.call.remote(method, self._number))


def stand_in(crowd: Any) -> type:
    """Tune's manager of processes, of which each is the crowd."""
    from ray.tune.execution import tune_controller

    manager: Any = tune_controller.RayActorManager  # type: ignore[attr-defined]

    class Actors(manager):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            nothing = lambda *_, **__: None  # noqa: E731
            self._resource_manager = SimpleNamespace(
                **dict.fromkeys(("request_resources", "cancel_resource_request", "free_resources", "clear"), nothing),
                get_resource_futures=list,
            )
            self._numbers = iter(range(1_000_000))

        def _try_kill_actor(self) -> bool:
            return False

        def _try_start_actors(self, max_actors: int | None = None) -> int:
            pending = list(self._pending_actors_to_attrs)
            for actor in pending:
                del self._pending_actors_to_attrs[actor]
                process = Process(crowd, next(self._numbers))
                self._live_actors_to_ray_actors_resources[actor] = (process, None)
                ready = process.ready.remote()
                self._tracked_actors_to_state_futures[actor].add(ready)
                begun = lambda _, actor=actor, ready=ready: self._actor_start_resolved(actor, ready)  # noqa: E731
                self._actor_state_events.track_future(ready, begun)
                self._enqueue_cached_actor_tasks(actor)
            for waiting in self._resource_request_to_pending_actors.values():
                waiting.clear()
            return len(pending)

    return Actors


def study(trials: int, every: float, seconds: float, sync: float) -> None:
    """One study of so many trials at once; prints what is found as JSON."""
    from study.upstream.environment import ProcessKind, set_variables_here

    set_variables_here(ProcessKind.DRIVER, ProcessKind.OWN_RAY)  # before Ray is imported, as a driver does it
    import ray

    from study import data
    from study.home.folder import Home
    from study.home.ledger import Ledger
    from study.home.record import StudyRecord
    from study.spec import load_study
    from study.sweep import driver
    from study.tracking import MlflowTracker

    def slow(descriptor: int) -> None:
        time.sleep(sync / 1000)
        real(descriptor)

    real, os.fsync = os.fsync, slow
    cores = os.cpu_count() or 1
    os.environ["TUNE_MAX_PENDING_TRIALS_PG"] = str(trials)
    space = "{method.alpha: {low: 0.001, high: 1.0}, method.lambda: {low: 0.0, high: 2.0}}"
    given = [f"search.space={space}", f"search.trials={trials}", "search.baseline=null", "search.confirm={top: 0}"]
    given += ["search.sampler=random", "search.early_stopping={name: asha, grace: 500}", f"train.epochs={EPOCHS}"]
    spec = load_study("fairkl_digits", [*given, f"resources.cpu={cores / trials}", f"search.concurrency={trials}"])
    home = Home.locate()
    folder = home.create_study(spec)
    datasets, ledger = data.load_datasets(spec.trial_data_sections), Ledger(folder.ledger_file)
    record = StudyRecord.load_without_closing(folder.ledger_file)
    tracker = MlflowTracker(home, folder, spec)
    tracker.start_following()
    survive, crowds = driver.count_memory_kills_as_deaths, list[Any]()

    def survive_among_the_crowd() -> None:
        survive()
        crowds.append(ray.remote(num_cpus=0, max_concurrency=trials + 100)(Crowd).remote(every))
        ray.get(crowds[0].waits.remote())  # it is there
        tune_controller: Any = importlib.import_module("ray.tune.execution.tune_controller")
        tune_controller.RayActorManager = stand_in(crowds[0])

    def measure() -> None:
        while not crowds or sum(1 for trial in list(record.trials.values()) if trial.n_epochs) < trials:
            time.sleep(1.0)
        ray.get(crowds[0].waits.remote())
        reports = lambda: sum(trial.n_epochs for trial in list(record.trials.values()))  # noqa: E731
        cpu, begun, before = time.process_time(), time.perf_counter(), reports()
        time.sleep(seconds)
        spent, took, heard = time.process_time() - cpu, time.perf_counter() - begun, reports() - before
        waits = sorted(ray.get(crowds[0].waits.remote()))
        found = {
            "heard, 1/s": heard / took,
            "due, 1/s": trials / every,
            "waits, ms": 1000 * sum(waits) / len(waits),
            "at most, ms": 1000 * waits[-1],
            "of a core": spent / took,
            "ms a report": 1000 * spent / heard,
        }
        print(json.dumps(found), flush=True)
        os._exit(0)

    driver.count_memory_kills_as_deaths = survive_among_the_crowd
    threading.Thread(target=measure, daemon=True).start()
    driver.drive_study(folder, spec, datasets, ledger, record)
    raise SystemExit("the study ended before it was measured")


def run(trials: int, every: float, seconds: float, sync: float) -> dict[str, float]:
    """One study in a process of its own."""
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"STUDY_HOME": home, "MLFLOW_DISABLE_TELEMETRY": "true"}
        command = [sys.executable, __file__, "one", *map(str, (trials, every, seconds, sync))]
        done = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, nargs="+", default=[20, 300, 1000, 3000])
    parser.add_argument("--every", type=float, default=10.0, help="seconds between two reports of a trial")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--sync", type=float, nargs="+", default=[0.0], help="milliseconds that a sync takes longer")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = [
        {"trials": trials, "sync, ms": sync, **run(trials, given.every, given.seconds, sync)}
        for sync in given.sync
        for trials in given.trials
    ]
    if given.json:
        print(json.dumps(found))
        return
    print("".join(f"{key:>13}" for key in found[0]))
    for one in found:
        print("".join(f"{value:>13.2f}" for value in one.values()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        study(int(sys.argv[2]), *map(float, sys.argv[3:6]))
    else:
        main()
