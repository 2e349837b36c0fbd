"""What a process of its own costs a trial of a training function: seconds of trials that do nothing.

    uv run python tests/benchmarks/fresh_process.py            one trial after the other, without Ray
    uv run python tests/benchmarks/fresh_process.py --gpu      the same, each with its context on the GPU

`first` includes the start of the process that forks the others, and its import of PyTorch; `fresh` is the median of the
others, and `reused` that in one process, as `method.reuse_process: true` has it.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from study.sweep import job_execution
from study.sweep.fresh_process import run_job_in_fresh_process
from study.sweep.job_payload import JobPayload, JobReport
from study.training.config import TrainOptions, TrialConfig
from study.training.function_trial import FunctionTrial

FUNCTION = """
import torch

def empty(config, epochs):
    for _ in range(epochs):
        yield {"val/accuracy": float(torch.ones(1, device=config["device"]).sum())}
"""


def hear_nothing(report: JobReport) -> None:
    """Ignore a report."""


def job(folder: Path, device: str) -> JobPayload:
    """One epoch of the function."""
    method = {"name": "own_function", "function": "an_empty_function:empty", "device": device}
    config = TrialConfig({"name": "none"}, {"name": "none"}, method, TrainOptions(epochs=1))
    gpu = 1.0 if device == "cuda" else 0.0
    where = {
        "checkpoint_file": folder / "state",
        "output_file": folder / "output",
        "mlflow_folder": folder / "own_runs",
    }
    rest: dict[str, Any] = {
        "model_file": None,
        "objective_json": None,
        "function": str(folder),
        "required_metrics": ("val/accuracy",),
    }
    return JobPayload(
        kind="train",
        trial=0,
        n_earlier_starts=0,
        n_reported_epochs=0,
        sections_json=json.dumps(config.to_document()),
        device=device,
        gpu_share=gpu,
        gets_gpu_alone=False,
        has_whole_gpu=True,
        in_fresh_process=True,
        **where,  # type: ignore[arg-type]
        **rest,
    )


def in_this_process(given: JobPayload) -> None:
    """As trials run that share one."""
    config = TrialConfig.from_document(json.loads(given.sections_json))
    job_execution.prepare_process(given, config)
    trial = FunctionTrial(config, str(given.function), given.required_metrics, given.device)
    job_execution.run_trial_job(lambda: trial, given, hear_nothing)
    trial.unload_function()


def seconds(run: Callable[[], None], count: int) -> list[float]:
    """Of each call."""
    taken = []
    for _ in range(count):
        began = time.perf_counter()
        run()
        taken.append(time.perf_counter() - began)
    return taken


def main() -> None:
    """Measure, and print a line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--trials", type=int, default=30)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "an_empty_function.py").write_text(FUNCTION)
        one = job(folder, "cuda" if given.gpu else "cpu")
        first, *fresh = seconds(lambda: run_job_in_fresh_process(one, hear_nothing), given.trials + 1)
        (_, *reused) = seconds(lambda: in_this_process(one), given.trials + 1)
    print(
        f"first {first:.2f} s, fresh {statistics.median(fresh):.3f} s ({min(fresh):.3f} to {max(fresh):.3f}),", end=" "
    )
    print(f"reused {statistics.median(reused):.3f} s")


if __name__ == "__main__":
    main()
