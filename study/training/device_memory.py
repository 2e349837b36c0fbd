"""The memory of the GPU that a trial may take: its share of a card, and nothing of the trial before it."""

import gc
import os

import torch

SETTINGS = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}
"""Variables that configure PyTorch's allocator, read where it is first used; what a user has set stays."""

CONTEXT = 512 * 2**20
"""Bytes that CUDA itself takes for a process, outside of what PyTorch counts; set aside where a card is shared."""

MOST_FOR_CONTEXT = 0.1
"""Share of a trial's part of the card that is set aside at most."""


def keep_to(share: float) -> None:
    """Let this process allocate so much of each card that it sees, in (0, 1]: more is `torch.OutOfMemoryError` here,
    and the card's other processes keep theirs. Its segments are expandable, so that less is lost between tensors, where
    the process has not used the card before. Without a usable card nothing happens."""
    if share <= 0 or not torch.cuda.is_available():
        return
    if not SETTINGS & os.environ.keys():
        os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
        os.environ.setdefault("TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC", "0")  # no tensor goes to another process
    for device in range(torch.cuda.device_count()):
        total = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(allowed(share, total) / total, device)


def allowed(share: float, total: int) -> float:
    """Bytes that a trial's tensors may take with a share of a card of `total` bytes."""
    if share >= 1:
        return total
    return share * total - min(CONTEXT, MOST_FOR_CONTEXT * share * total)


def free() -> None:
    """Give the card back what the trials of this process have left, between two of them."""
    if torch.cuda.is_initialized():
        gc.collect()
        torch.cuda.empty_cache()


def available(device: torch.device) -> float:
    """Bytes of a GPU that this process may still take: of its share, and of what is free on the card."""
    index = torch.cuda.current_device() if device.index is None else device.index
    unused, total = torch.cuda.mem_get_info(index)
    held = torch.cuda.memory_allocated(index)
    kept = torch.cuda.memory_reserved(index) - held
    return min(unused + kept, torch.cuda.get_per_process_memory_fraction(index) * total - held)
