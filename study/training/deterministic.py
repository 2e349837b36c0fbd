"""Computations on a GPU that are the same bit for bit in every run."""

import os
from functools import cache

import torch

from study.training.config import TrainOptions

WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
FIXED = ":4096:8"
"""Eight buffers of 4 MiB, with which cuBLAS is deterministic (cuBLAS library, Results Reproducibility)."""


def before_cuda(options: TrainOptions) -> None:
    """What a process needs before it uses CUDA, where `train.deterministic` says so."""
    if options.deterministic:
        os.environ.setdefault(WORKSPACE, FIXED)


def demand(options: TrainOptions, device: torch.device) -> None:
    """Have PyTorch use deterministic algorithms alone in this process where `train.deterministic` says so, else let it
    be as it was before such a trial.

    On the CPU nothing changes: what a trial computes there is the same in every run. On CUDA an operation without a
    deterministic algorithm raises RuntimeError from here on.

    Args:
        options: of the trial that follows.
        device: that it computes on; nothing may have been multiplied there yet in this process where it is CUDA.
    """
    if options.deterministic and device.type == "cuda":
        before_cuda(options)
        _before()
        torch.set_deterministic_debug_mode("error")  # `use_deterministic_algorithms` imports the compiler, for seconds
        if options.compile:
            torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    elif _before.cache_info().currsize:
        mode, filled, deterministic, benchmark = _before()
        torch.set_deterministic_debug_mode(mode)
        torch.utils.deterministic.fill_uninitialized_memory = filled  # type: ignore[attr-defined]
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = deterministic, benchmark
        _before.cache_clear()


@cache
def _before() -> tuple[int, bool, bool, bool]:
    """What held when a trial first demanded them."""
    cudnn = torch.backends.cudnn
    filled = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    return torch.get_deterministic_debug_mode(), filled, cudnn.deterministic, cudnn.benchmark


def global_generators(device: torch.device) -> dict[str, torch.Generator]:
    """PyTorch's own generator on a device, which operations draw from that are given none; the CPU's is not among
    them."""
    if device.type != "cuda":
        return {}
    torch.cuda.init()
    return {"cuda": torch.cuda.default_generators[device.index or torch.cuda.current_device()]}
