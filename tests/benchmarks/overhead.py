"""What a sweep costs beside its trials: this project against plain Ray Tune, and against Tune's MLflow callback.

    uv run python tests/benchmarks/overhead.py empty      1,000 one-report trials, two at a time, TPE
    uv run python tests/benchmarks/overhead.py reports    30 trials of 20 reports, MLflow on SQLite and on a server
    uv run python tests/benchmarks/overhead.py growth     driver time per trial from 200 to 3,000 trials
    uv run python tests/benchmarks/overhead.py steady     trials of 2 seconds: how busy the slots are
    uv run python tests/benchmarks/overhead.py scale      trials of a second, 20 at once on shares of the cores
    uv run python tests/benchmarks/overhead.py parts      the driver's CPU per trial and per report, by part

Trials do nothing but report, so that what is measured is the service; those of `scale` report once, or ten times. `cpu`
are the driver's CPU seconds from the first trial's start on, with those of its threads and of Ray's in it: what bounds
how many trials one driver carries. Ways are run in turn, each in a process of its own with a Ray of its own,
`--repeats` times; the table has the median and the range. Printed as JSON with `--json`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from study.home.events import Event, TrialEnded, TrialStarted

sys.path.insert(0, str(Path(__file__).parent))

import driver_parts
import mlflow_server

SPACE = {"method.alpha": (1e-3, 1.0), "method.lambda": (0.0, 2.0), "method.epsilon": (0.0, 0.5)}
METRICS = 15


def value(params: dict[str, Any], report: int) -> float:
    """A result that depends on the parameters, as a searcher expects."""
    return 1.0 - (params["method.lambda"] - 1.0) ** 2 + 0.01 * report


def study(trials: int, reports: int, seconds: float, tracking: str, slots: int, parts: bool) -> dict[str, float]:
    """This project, tracked: everything of `study run` but the trial; `slots` trials at once, 0: one per core."""

    from study.upstream.environment import ProcessKind, set_variables_here

    set_variables_here(ProcessKind.DRIVER, ProcessKind.OWN_RAY)  # before Ray is imported, as a driver does it
    import study.sweep.worker as worker
    from study import data
    from study.home.folder import Home
    from study.home.ledger import Ledger
    from study.home.record import StudyRecord
    from study.spec import load_study
    from study.sweep import own_ray
    from study.sweep.driver import drive_study
    from study.sweep.job_payload import MetricsReport, StartReport
    from study.tracking import MlflowTracker

    def job(config: dict[str, Any], **_: Any) -> None:
        worker.report_start(0, StartReport(0, None, {"name": "cpu"}))
        for report in range(1, reports + 1):
            time.sleep(seconds / reports)
            extra = {f"train/figure_{number}": 0.5 for number in range(METRICS - 1)}
            worker.report_metrics(MetricsReport({"val/accuracy": value(config, report), **extra}, report))

    own_ray.run_job_in_ray_worker = job  # type: ignore[assignment]
    space = ", ".join(f"{key}: {{low: {low}, high: {high}}}" for key, (low, high) in SPACE.items())
    given = [f"search.space={{{space}}}", f"search.trials={trials}", "search.baseline=null", "search.confirm={top: 0}"]
    given.append("search.sampler=tpe")
    if slots:
        given.append(f"resources.cpu={(os.cpu_count() or 1) / slots}")
    spec = load_study("fairkl_digits", [*given, "search.early_stopping={}", f"train.epochs={reports}"])
    home = Home.locate()
    folder = home.create_study(spec)
    datasets, ledger = data.load_datasets(spec.trial_data_sections), Ledger(folder.ledger_file)
    record = StudyRecord.load_without_closing(folder.ledger_file)
    clock = driver_parts.install() if parts else None
    tracker = MlflowTracker(home, folder, spec) if tracking != "none" else None
    if tracker:
        tracker.start_following()
    cpu: dict[str, float] = {}
    ends, append = 0, ledger.append

    def noting(event: Event) -> Event:
        nonlocal ends
        if isinstance(event, TrialStarted):
            cpu.setdefault("begin", time.process_time())
        elif isinstance(event, TrialEnded):
            ends += 1
            cpu["end"] = time.process_time()
            if clock:
                clock.ended(ends, trials)
        return append(event)

    ledger.append = noting  # type: ignore[method-assign]
    with driver_parts.shown(spec, record) if parts else nullcontext():
        drive_study(folder, spec, datasets, ledger, record)
    drained = time.perf_counter()
    if tracker and (trouble := tracker.finish_writing()):
        raise SystemExit(trouble)
    first = min(trial.started_at or 0.0 for trial in record.trials.values())
    ended = [trial.ended_at or 0.0 for trial in record.trials.values()]
    assert len(record.trials) == trials
    assert record.state == "complete"
    return {
        "wall": max(ended) - first,
        "drain": time.perf_counter() - drained,
        "cpu": cpu["end"] - cpu["begin"],
        **_rates(sorted(ended), first),
        **(clock.per_trial() if clock else {}),
    }


def plain(trials: int, reports: int, seconds: float, tracking: str, slots: int, parts: bool) -> dict[str, float]:
    """Ray Tune as its documentation has it, with OptunaSearch in memory and reused actors."""
    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
    os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    import optuna
    import ray
    from ray import tune
    from ray.tune.search import ConcurrencyLimiter
    from ray.tune.search.optuna import OptunaSearch

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    ended: list[float] = []
    began: list[float] = []

    class Times(tune.Callback):
        def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
            began.append(time.time())

        def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
            ended.append(time.time())

    def job(config: dict[str, Any]) -> None:
        for report in range(1, reports + 1):
            time.sleep(seconds / reports)
            extra = {f"train/figure_{number}": 0.5 for number in range(METRICS - 1)}
            tune.report({"val/accuracy": value(config, report), **extra})

    callbacks: list[Any] = [Times()]
    if tracking != "none":
        from ray.air.integrations.mlflow import MLflowLoggerCallback

        callbacks.append(MLflowLoggerCallback(tracking_uri=tracking, experiment_name="plain"))
    ray.init(address="local", include_dashboard=False, log_to_driver=False, configure_logging=False)
    space = {key: tune.uniform(*ends) for key, ends in SPACE.items()}
    sampler = optuna.samplers.TPESampler(seed=0, multivariate=True, group=True, constant_liar=True)
    search = OptunaSearch(space, metric="val/accuracy", mode="max", sampler=sampler)
    tuner = tune.Tuner(
        tune.with_resources(job, {"cpu": 1}),
        tune_config=tune.TuneConfig(search_alg=ConcurrencyLimiter(search, 2), num_samples=trials, reuse_actors=True),
        run_config=tune.RunConfig(storage_path=tempfile.mkdtemp(), verbose=0, callbacks=callbacks),
    )
    tuner.fit()
    ray.shutdown()
    return {"wall": max(ended) - min(began), "drain": 0.0, **_rates(sorted(ended), min(began))}


def _rates(ended: list[float], first: float) -> dict[str, float]:
    """Milliseconds per trial within the first and the last fifth."""
    fifth = max(1, len(ended) // 5)
    return {
        "first": 1000 * (ended[fifth - 1] - first) / fifth,
        "last": 1000 * (ended[-1] - ended[-1 - fifth]) / fifth if len(ended) > fifth else float("nan"),
    }


WAYS = {"study": study, "plain": plain}


def run(
    way: str,
    trials: int,
    reports: int = 1,
    seconds: float = 0.0,
    tracking: str = "own",
    slots: int = 0,
    parts: bool = False,
) -> dict[str, float]:
    """One run in a process of its own; `tracking`: none, own (SQLite in the home) or an MLflow URI."""
    with tempfile.TemporaryDirectory() as home:
        environment = {key: one for key, one in os.environ.items() if key != "MLFLOW_TRACKING_URI"}
        environment |= {"STUDY_HOME": home, "MLFLOW_DISABLE_TELEMETRY": "true"}
        if tracking == "own" and way == "plain":
            tracking = f"sqlite:///{home}/plain.db"
        elif tracking not in ("own", "none"):
            environment["MLFLOW_TRACKING_URI"] = tracking
        given = (way, trials, reports, seconds, tracking, slots, int(parts))
        command = [sys.executable, __file__, "one", *map(str, given)]
        done = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{way} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def rounds(cases: dict[str, dict[str, Any]], repeats: int) -> dict[str, list[dict[str, float]]]:
    """Every case in turn, `repeats` times."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in cases}
    for _ in range(repeats):
        for name, given in cases.items():
            found[name].append(run(**given))
            print(f"{name}: {found[name][-1]}", file=sys.stderr, flush=True)
    return found


def table(found: dict[str, list[dict[str, float]]], keys: list[str]) -> str:
    """Median and range of each figure."""
    lines = [f"{'':<34}" + "".join(f"{key:>28}" for key in keys)]
    for name, runs in found.items():
        cells = []
        for key in keys:
            values = sorted(one[key] for one in runs)
            cells.append(f"{statistics.median(values):10.2f} ({values[0]:.2f} to {values[-1]:.2f})")
        lines.append(f"{name:<34}" + "".join(f"{cell:>28}" for cell in cells))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["empty", "reports", "growth", "steady", "scale", "parts"])
    parser.add_argument("--trials", type=int, default=None)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--slots", type=int, default=20, help="of scale and parts: trials at once")
    parser.add_argument("--reports", type=int, default=11, help="of parts: reports of the longer trials")
    parser.add_argument("--only", default="", help="the cases whose names hold this; the callback takes minutes each")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    process = None
    if given.part == "empty":
        trials = given.trials or 1000
        cases: dict[str, Any] = {
            "Tune + OptunaSearch, no MLflow": {"way": "plain", "trials": trials, "tracking": "none"},
            "study, tracked on SQLite": {"way": "study", "trials": trials},
        }
        keys = ["wall", "drain"]
    elif given.part == "reports":
        uri, process = mlflow_server.start()
        size = {"trials": given.trials or 30, "reports": 20}
        cases = {
            "study, no tracking": {"way": "study", "tracking": "none", **size},
            "study, SQLite": {"way": "study", **size},
            "study, server": {"way": "study", "tracking": uri, **size},
            "Tune + callback, SQLite": {"way": "plain", **size},
            "Tune + callback, server": {"way": "plain", "tracking": uri, **size},
        }
        keys = ["wall", "drain"]
    elif given.part == "growth":
        sizes = [given.trials] if given.trials else [200, 1000, 3000]
        cases = {f"study, {trials} trials": {"way": "study", "trials": trials} for trials in sizes}
        keys = ["wall", "drain", "first", "last"]
    elif given.part == "scale":
        size = {"trials": given.trials or 10_000, "seconds": 1.0, "slots": given.slots}
        cases = {f"study, {count} reports": {"way": "study", "reports": count, **size} for count in (1, 10)}
        keys = ["wall", "drain", "cpu", "first", "last"]
    elif given.part == "parts":
        size = {"trials": given.trials or 1000, "slots": given.slots or 8, "parts": True}
        cases = {
            f"{'SQLite' if tracking == 'own' else 'no tracking'}, {count} reports": {
                "way": "study", "reports": count, "seconds": 0.2 + 0.05 * count, "tracking": tracking, **size
            }
            for tracking in ("own", "none")
            for count in (1, given.reports)
        }  # fmt: skip
    else:
        size = {"trials": given.trials or 60, "reports": 4, "seconds": 2.0}
        cases = {"study, SQLite": {"way": "study", **size}}
        keys = ["wall", "drain"]
    cases = {name: one for name, one in cases.items() if given.only in name}
    try:
        found = rounds(cases, given.repeats)
    finally:
        if process:
            process.terminate()
    if given.part == "scale":
        for one in (run for runs in found.values() for run in runs):
            one["ideal"] = size["trials"] * 1.0 / given.slots
        keys.append("ideal")
    if given.part == "steady":
        for one in found.get("study, SQLite", []):
            one["overhead"] = 1 - size["trials"] * 2.0 / (2 * one["wall"])
        keys.append("overhead")
    if given.json:
        print(json.dumps(found))
    else:
        print(driver_parts.table(found, given.reports) if given.part == "parts" else table(found, keys))


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        _, _, way, trials, reports, seconds, tracking, slots, parts = sys.argv
        print(json.dumps(WAYS[way](int(trials), int(reports), float(seconds), tracking, int(slots), parts == "1")))
    else:
        main()
