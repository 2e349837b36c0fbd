"""The device that a trial trains on: the one that was asked for, tried before it is used, and named afterwards.

A card may be there and of no use: its driver is older than this PyTorch needs, PyTorch has no code for it, another
process holds its memory. The count of cards says nothing of that, so each is tried.
"""

import ctypes
import gc
import os
import re
import warnings
from functools import cache

import torch

from study.errors import UserError
from study.training.config import TrainOptions
from study.training.gpu_errors import OLDER, TORCH, fault, sign_in

# The memory of the GPU that a trial may take: its share of a card, and nothing of the trial before it.

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


def free_memory() -> None:
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


# Computations on a GPU that are the same bit for bit in every run.

WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
FIXED = ":4096:8"
"""Eight buffers of 4 MiB, with which cuBLAS is deterministic (cuBLAS library, Results Reproducibility)."""


def before_cuda(options: TrainOptions) -> None:
    """Set what a process needs before it uses CUDA, where `train.deterministic` says so."""
    if options.deterministic:
        os.environ.setdefault(WORKSPACE, FIXED)


def demand_determinism(options: TrainOptions, device: torch.device) -> None:
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
    """Return what held when a trial first demanded them."""
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


CPU, CUDA = "cpu", "cuda"

DRIVERS = {11: 450, 12: 525, 13: 580}
"""The oldest branch of NVIDIA's driver that CUDA of a major version runs with (CUDA Toolkit release notes, table of
minor version compatibility)."""

SIDE = 64
"""Rows of the matrix that a card multiplies to be tried."""


class NoDevice(UserError):
    """A GPU cannot be used; the message says why, and the remedy."""


class CardFull(NoDevice):
    """Other processes hold a GPU's memory; where trials share it, they may be trials."""


def best() -> torch.device:
    """A GPU where one works, else the CPU: for what is done at home, where nobody asked for either."""
    if not torch.cuda.is_available():
        return torch.device(CPU)
    try:
        try_cards()
    except NoDevice:
        return torch.device(CPU)
    return torch.device(CUDA)


def take(asked: str | None) -> torch.device:
    """The device of a user's option: `cpu`, `cuda` or `cuda:1`, which is tried; None or `auto`: see `best`.

    Raises:
        NoDevice: that GPU cannot be used.
        UserError: there is no such device.
    """
    if asked in (None, "auto"):
        return best()
    if not re.fullmatch(rf"{CPU}|{CUDA}(:\d+)?", str(asked)):
        raise UserError(f"device: {asked!r} given, allowed are auto, cpu, cuda and cuda:NUMBER")
    device = torch.device(str(asked))
    if device.type == CUDA:
        count = torch.cuda.device_count()
        if (device.index or 0) >= max(count, 1):
            raise UserError(f"device: {asked!r} given, this process sees {count} GPU{'s' if count > 1 else ''}")
        try_cards()
    return device


def unusable() -> str | None:
    """Why this process can use no GPU at all, and the remedy; None: nothing speaks against it so far. No card is
    touched, and none of their memory taken."""
    if torch.version.cuda is None and torch.version.hip is None:
        return f"this torch was built for the CPU alone. Remedy: {TORCH}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if torch.cuda.is_available():
            return None
    driver, needed = driver_version(), driver_needed()
    if driver and needed and int(driver.split(".")[0]) < needed:
        return (
            f"its driver {driver} is too old for this torch (CUDA {torch.version.cuda}). Remedy: a driver of R{needed} "
            f"or newer, or {OLDER}"
        )
    said = _reason() or " ".join(str(warning.message) for warning in caught) or "torch gives no reason"
    return f"{said[:300]}. Remedy: check that nvidia-smi works; in a container, that it was given the GPUs"


def try_cards() -> None:
    """Allocate, multiply and synchronise once on each card that this process sees.

    Raises:
        NoDevice: one of them cannot be used, or there is none.
        CardFull: it may be of use later.
    """
    if why := unusable():
        raise NoDevice(why)
    for index in range(torch.cuda.device_count()):
        _try_card(index)


@cache
def _try_card(index: int) -> None:
    called = f"GPU {index}"
    try:
        called = name(index)
        if not has_code(index):
            raise NoDevice(f"{called}: {_no_code(index)}")
        ones = torch.ones((SIDE, SIDE), device=torch.device(CUDA, index))
        ones @ ones
        torch.cuda.synchronize(index)
    except RuntimeError as error:
        raise _meaning(called, index, error) from None


def _meaning(called: str, index: int, error: RuntimeError) -> NoDevice:
    """Return what an error of a card's first use means, and the remedy."""
    text = " ".join(str(error).split())
    if "no kernel image" in text:
        return NoDevice(f"{called}: {_no_code(index)}")
    sign = sign_in(text)
    if isinstance(error, torch.OutOfMemoryError) or (sign and sign.meaning == "memory"):
        told = f"another process holds its memory{_free(index)}"
        return CardFull(f"{called}: {told}. Remedy: nvidia-smi names it; end it, or use other cards")
    why = fault(error) or f"{text[:300]}. Remedy: nvidia-smi and the system's log (dmesg) say more"
    return NoDevice(f"{called}: {why}")


def _no_code(index: int) -> str:
    major, minor = torch.cuda.get_device_capability(index)
    return (
        f"this torch (CUDA {torch.version.cuda}) has no code for its compute capability {major}.{minor}, but for "
        f"{', '.join(architectures())}. Remedy: another card, or {OLDER}"
    )


def _free(index: int) -> str:
    try:
        free, total = torch.cuda.mem_get_info(index)
    except RuntimeError:  # what tells how much is free needs some itself
        return ""
    return f": {free >> 20} of {total >> 20} MiB are free"


def _reason() -> str:
    """Torch's error when it is asked to use a GPU that it does not find."""
    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as error:
        return " ".join(str(error).split()).rstrip(".")
    return ""


def name(index: int) -> str:
    """Return what a card is called. Torch warns at length of one that it has no code for, which `try_cards` tells."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.cuda.get_device_name(index)


def has_code(index: int) -> bool:
    """Return whether torch has code for a card: code for an older one of its generation and PTX also run."""
    if torch.version.hip:
        return True
    return runs_on(torch.cuda.get_device_capability(index), architectures())


def runs_on(capability: tuple[int, int], built: tuple[str, ...]) -> bool:
    """Return whether code for these architectures (`sm_75`, `compute_120`) runs on a card of that capability."""
    major, minor = capability
    matches = [re.fullmatch(r"(sm|compute)_(\d+)(\d)[a-z]?", name) for name in built]
    known = [(match[1], int(match[2]), int(match[3])) for match in matches if match]
    return any(
        (kind == "sm" and first == major and second <= minor)
        or (kind == "compute" and (first, second) <= (major, minor))
        for kind, first, second in known
    )


def architectures() -> tuple[str, ...]:
    """Return what this torch has code for, as `sm_75`; nothing where it was built for the CPU alone. Needs no card."""
    flags = getattr(torch._C, "_cuda_getArchFlags", None)  # torch.cuda.get_arch_list tells nothing without a card
    return tuple((flags() or "").split()) if flags else ()


def driver_needed() -> int | None:
    """The oldest branch of NVIDIA's driver that this torch runs with, as 580; None: not known, or no CUDA."""
    return DRIVERS.get(int(torch.version.cuda.split(".")[0])) if torch.version.cuda else None


@cache
def driver_version() -> str | None:
    """The version of NVIDIA's driver on this machine, as `580.65.06`; None: there is none. Takes no card's memory."""
    text = ctypes.create_string_buffer(96)
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        if nvml.nvmlInit_v2():
            return None
        failed = nvml.nvmlSystemGetDriverVersion(text, len(text))
        nvml.nvmlShutdown()
    except (OSError, AttributeError):
        return None
    return None if failed else text.value.decode(errors="replace") or None


def facts(device: torch.device) -> dict[str, str]:
    """Return what a result should say of the device that it was computed on: `name`; of a GPU also `driver`, where it
    is known, `cuda` (or `rocm`), for which torch was built, and its compute `capability`."""
    if device.type != CUDA:
        return {"name": device.type}
    major, minor = torch.cuda.get_device_capability(device)
    told = {"name": torch.cuda.get_device_name(device), "driver": driver_version()}
    told |= {"cuda": torch.version.cuda, "rocm": torch.version.hip, "capability": f"{major}.{minor}"}
    return {key: value for key, value in told.items() if value}
