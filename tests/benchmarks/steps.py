"""What a training step costs on a device: milliseconds, launches, and for how much of the time kernels run."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.autograd import DeviceType

from study.data import Dataset
from study.training.config import TrialConfig
from study.training.trial import Trial

BATCH = 256
SIMULATED = "SIMULATED_GPUS" in os.environ


def steps(
    networks: list[str], dataset: Callable[[str], Dataset], config: Callable[..., TrialConfig], device: str
) -> Iterator[dict[str, Any]]:
    """One row for each network, and on a GPU one more as a CUDA graph (`train.graph`).

    `ms a step`: of the third epoch, data and training. On a GPU further, of that epoch with its evaluation:
    `launches a step`, and `kernels run`, the share of its time. On a simulated device no time means anything.
    """
    if SIMULATED:
        from gpu_scan import leave_out_values

        leave_out_values()
    for network in networks:
        of = dataset(network)
        for graph in (False, True) if device == "cuda" else (False,):
            name = f"{network}, graph" if graph else network
            try:
                yield {"step": name, **_step(Trial(config(network, epochs=3, graph=graph), of, device), device)}
            except (RuntimeError, ValueError) as error:
                yield {"step": name, "left out": str(error).splitlines()[0]}


def _step(trial: Trial, device: str) -> dict[str, Any]:
    count = len(trial.dataset.splits["train"]) // BATCH
    epochs = trial.train_epochs()
    next(epochs)
    if device == "cpu":
        told: dict[str, Any] = {}
        next(epochs)
    else:
        told = _launched(lambda: next(epochs), count)
    last = next(epochs)
    return {"ms a step": 1000 * (last["time/data"] + last["time/training"]) / count, **told}


def _launched(epoch: Callable[[], object], count: int) -> dict[str, Any]:
    if SIMULATED:
        from simulated_gpu import launches

        before = launches()
        epoch()
        return {"launches a step": (launches() - before) / count}
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        epoch()
        torch.cuda.synchronize()
    kernels = [event.time_range for event in profile.events() if event.device_type == DeviceType.CUDA]
    if not kernels:
        return {"launches a step": "the profiler saw none"}
    busy = sum(one.elapsed_us() for one in kernels)
    whole = max(one.end for one in kernels) - min(one.start for one in kernels)
    return {"launches a step": len(kernels) / count, "kernels run": busy / whole}
