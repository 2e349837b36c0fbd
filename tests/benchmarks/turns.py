"""What a report costs the driver with many trials at once, beside what the trial's own events cost.

    uv run python tests/benchmarks/turns.py [--trials 20 100 500 1000 2000 3000]

For each report Tune's loop turns once: it waits for the next of as many calls as there are trials, and asks this
project's scheduler what to run. Both are measured as they are, in milliseconds of CPU time; one process answers for all
trials, since this machine could not carry so many.
"""

import argparse
import asyncio
import random
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ray
from ray.air.execution import PlacementGroupResourceManager, ResourceRequest
from ray.tune.experiment import Trial

from study.home.record import StudyRecord
from study.spec import load_study
from study.sweep.adapters import ReportingScheduler
from study.sweep.ray_session import ray_session
from study.upstream.tune_loop import told_of_ends

TURNS = 300

EVERY = 0.02
"""Seconds between two reports, whatever the number of trials."""


class Trials:
    """Processes of trials: each call ends after some seconds, as an epoch does."""

    async def epoch(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def waiting(count: int) -> float:
    """Of a turn of the event manager."""
    manager, begun = told_of_ends()(PlacementGroupResourceManager()), []
    cls = ray.remote(max_concurrency=count)(Trials)
    actor = manager.add_actor(cls, {}, ResourceRequest([{"CPU": 1}]), on_start=begun.append)
    while not begun:
        manager.next(timeout=0.1)

    def again(*_: Any) -> None:
        seconds = random.uniform(0.5, 1.5) * count * EVERY
        manager.schedule_actor_task(actor, "epoch", args=(seconds,), on_result=again)

    for _ in range(count):
        again()
    for _ in range(TURNS):
        manager.next(timeout=0.1)
    before, turns = time.process_time(), 0
    while turns < TURNS:
        turns += manager.next(timeout=0.1)
    spent = time.process_time() - before
    manager.cleanup()
    return 1000 * spent / TURNS


def looking(count: int) -> float:
    """Of a turn of the scheduler."""
    agenda: Any = SimpleNamespace(spec=load_study("quickstart"), record=StudyRecord())
    folder: Any = SimpleNamespace(requests=Path("none"))
    scheduler = ReportingScheduler(agenda, folder)
    trials = [SimpleNamespace(trial_id=str(number), status=Trial.RUNNING) for number in range(count)]
    for trial in trials:
        scheduler._begun.add(trial.trial_id)
        scheduler._watch.heard(trial.trial_id, 1, 1.0)
    cache = SimpleNamespace(num_cached_objects=0)
    controller = SimpleNamespace(get_live_trials=lambda: trials, _actor_cache=cache)
    before = time.process_time()
    for _ in range(TURNS):
        scheduler._looked -= EVERY
        scheduler.choose_trial_to_run(controller)
    return 1000 * (time.process_time() - before) / TURNS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, nargs="+", default=[20, 100, 500, 1000, 2000, 3000])
    given = parser.parse_args()
    print(f"{'trials at once':>14}{'waiting, ms':>14}{'looking, ms':>14}")
    with ray_session(None, None):
        for count in given.trials:
            print(f"{count:>14}{waiting(count):>14.2f}{looking(count):>14.2f}", flush=True)


if __name__ == "__main__":
    main()
