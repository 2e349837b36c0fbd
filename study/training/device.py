"""The device that a trial trains on: tried before it is used, with the splits that lie on it, and what an epoch costs.

A card may be there but unusable: its driver is older than this PyTorch needs, PyTorch has no code for it, or another
process holds its memory. The number of cards says nothing of that, so each is tried.
"""

import ctypes
import gc
import os
import re
import resource
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from weakref import WeakValueDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from study.data.dataset import Facts, Split
from study.errors import UserError
from study.methods import BatchLabels
from study.metrics import EPOCH_PHASES
from study.training.config import TrainOptions
from study.training.gpu_errors import (
    CUDA_TORCH_ADVICE,
    OLDER_CUDA_TORCH_ADVICE,
    GpuMemoryFullError,
    NoDeviceError,
    find_gpu_error_pattern,
    unusable_gpu_reason,
)

ALLOCATOR_VARIABLES = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}
"""Variables that configure PyTorch's allocator, read where it is first used; what a user has set stays."""

CUDA_CONTEXT_BYTES = 512 * 2**20
"""Bytes that CUDA itself takes for a process, outside of what PyTorch counts; set aside where a card is shared."""

MAX_CUDA_CONTEXT_SHARE = 0.1
"""Largest share of a trial's part of the card that is set aside."""


def limit_gpu_memory(share: float) -> None:
    """Limit this process to a share, in (0, 1], of each card that it sees.

    Beyond it allocation raises `torch.OutOfMemoryError` here, and the card's other processes keep their memory. If the
    process has not used the card before, its segments are expandable, so that less is lost between tensors. Without a
    usable card nothing happens.
    """
    if share <= 0 or not torch.cuda.is_available():
        return
    if not ALLOCATOR_VARIABLES & os.environ.keys():
        os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
        os.environ.setdefault("TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC", "0")  # no tensor goes to another process
    for device in range(torch.cuda.device_count()):
        total = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(allowed_gpu_bytes(share, total) / total, device)


def allowed_gpu_bytes(share: float, total: int) -> float:
    """Return the bytes that a trial's tensors may take with a share of a card of `total` bytes."""
    if share >= 1:
        return total
    return share * total - min(CUDA_CONTEXT_BYTES, MAX_CUDA_CONTEXT_SHARE * share * total)


def free_gpu_memory() -> None:
    """Give the card back what earlier trials of this process have left."""
    if torch.cuda.is_initialized():
        gc.collect()
        torch.cuda.empty_cache()


def available_gpu_bytes(device: torch.device) -> float:
    """Return the bytes of a GPU that this process may still take: of its share, and of what is free on the card."""
    index = torch.cuda.current_device() if device.index is None else device.index
    unused, total = torch.cuda.mem_get_info(index)
    held = torch.cuda.memory_allocated(index)
    kept = torch.cuda.memory_reserved(index) - held
    return min(unused + kept, torch.cuda.get_per_process_memory_fraction(index) * total - held)


CUBLAS_WORKSPACE_VARIABLE = "CUBLAS_WORKSPACE_CONFIG"
DETERMINISTIC_CUBLAS_WORKSPACE = ":4096:8"
"""Eight buffers of 4 MiB, with which cuBLAS is deterministic (cuBLAS library, Results Reproducibility)."""


def set_cublas_workspace(options: TrainOptions) -> None:
    """Set what a process needs before it uses CUDA, where `train.deterministic` says so."""
    if options.deterministic:
        os.environ.setdefault(CUBLAS_WORKSPACE_VARIABLE, DETERMINISTIC_CUBLAS_WORKSPACE)


def apply_determinism(options: TrainOptions, device: torch.device) -> None:
    """Let PyTorch use only deterministic algorithms where `train.deterministic` says so, else restore what was before.

    On the CPU nothing changes: what a trial computes there is the same in every run. On CUDA an operation without a
    deterministic algorithm raises RuntimeError from here on.

    Args:
        options: of the trial that follows.
        device: of that trial; if it is CUDA, this process must not have multiplied anything there yet.
    """
    if options.deterministic and device.type == "cuda":
        set_cublas_workspace(options)
        _determinism_settings_before()
        torch.set_deterministic_debug_mode("error")  # `use_deterministic_algorithms` imports the compiler, for seconds
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    elif _determinism_settings_before.cache_info().currsize:
        mode, filled, deterministic, benchmark = _determinism_settings_before()
        torch.set_deterministic_debug_mode(mode)
        torch.utils.deterministic.fill_uninitialized_memory = filled  # type: ignore[attr-defined]
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = deterministic, benchmark
        _determinism_settings_before.cache_clear()


@cache
def _determinism_settings_before() -> tuple[int, bool, bool, bool]:
    """Cache the settings that held when a trial first demanded determinism."""
    cudnn = torch.backends.cudnn
    filled = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    return torch.get_deterministic_debug_mode(), filled, cudnn.deterministic, cudnn.benchmark


def global_cuda_generators(device: torch.device) -> dict[str, torch.Generator]:
    """Return PyTorch's own generator on a GPU, which operations use that are given none; empty for the CPU."""
    if device.type != "cuda":
        return {}
    torch.cuda.init()
    return {"cuda": torch.cuda.default_generators[device.index or torch.cuda.current_device()]}


CPU_DEVICE, CUDA_DEVICE = "cpu", "cuda"

MIN_DRIVER_BY_CUDA = {11: 450, 12: 525, 13: 580}
"""Oldest branch of NVIDIA's driver that each major version of CUDA runs with (CUDA Toolkit release notes, table of
minor version compatibility).
"""

GPU_CHECK_MATRIX_ROWS = 64
"""Rows of the matrix that a card multiplies to be tried."""


def best_available_device() -> torch.device:
    """Return a GPU if one works, else the CPU: for commands whose user asked for neither."""
    if not torch.cuda.is_available():
        return torch.device(CPU_DEVICE)
    try:
        check_visible_gpus()
    except NoDeviceError:
        return torch.device(CPU_DEVICE)
    return torch.device(CUDA_DEVICE)


def resolve_device(asked: str | None) -> torch.device:
    """Return the device of a user's option: `cpu`, `cuda` or `cuda:1`, which is tried; None or `auto`: the best.

    Raises:
        NoDeviceError: that GPU cannot be used.
        UserError: there is no such device.
    """
    if asked in (None, "auto"):
        return best_available_device()
    if not re.fullmatch(rf"{CPU_DEVICE}|{CUDA_DEVICE}(:\d+)?", str(asked)):
        raise UserError(f"device: {asked!r} given, allowed are auto, cpu, cuda and cuda:NUMBER")
    device = torch.device(str(asked))
    if device.type == CUDA_DEVICE:
        count = torch.cuda.device_count()
        if (device.index or 0) >= max(count, 1):
            raise UserError(f"device: {asked!r} given, this process sees {count} GPU{'s' if count > 1 else ''}")
        check_visible_gpus()
    return device


def why_no_gpu() -> str | None:
    """Say why this process can use no GPU at all, and the remedy; None: no reason is known so far.

    No card is touched, and none of their memory taken.
    """
    if torch.version.cuda is None and torch.version.hip is None:
        return f"this torch was built for the CPU alone. Remedy: {CUDA_TORCH_ADVICE}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if torch.cuda.is_available():
            return None
    driver, needed = nvidia_driver_version(), min_nvidia_driver_version()
    if driver and needed and int(driver.split(".")[0]) < needed:
        return (
            f"its driver {driver} is too old for this torch (CUDA {torch.version.cuda}). Remedy: a driver of R{needed} "
            f"or newer, or {OLDER_CUDA_TORCH_ADVICE}"
        )
    said = _why_no_cuda() or " ".join(str(warning.message) for warning in caught) or "torch gives no reason"
    return f"{said[:300]}. Remedy: check that nvidia-smi works; in a container, that it was given the GPUs"


def check_visible_gpus() -> None:
    """Allocate, multiply and synchronise once on each card that this process sees.

    Raises:
        NoDeviceError: one of them cannot be used, or there is none.
        GpuMemoryFullError: one may be usable later.
    """
    if why := why_no_gpu():
        raise NoDeviceError(why)
    for index in range(torch.cuda.device_count()):
        _check_gpu(index)


@cache
def _check_gpu(index: int) -> None:
    called = f"GPU {index}"
    try:
        called = gpu_name(index)
        if not has_gpu_code_for(index):
            raise NoDeviceError(f"{called}: {_no_gpu_code_text(index)}")
        ones = torch.ones((GPU_CHECK_MATRIX_ROWS, GPU_CHECK_MATRIX_ROWS), device=torch.device(CUDA_DEVICE, index))
        ones @ ones
        torch.cuda.synchronize(index)
    except RuntimeError as error:
        raise _translate_first_use_error(called, index, error) from None


def _translate_first_use_error(called: str, index: int, error: RuntimeError) -> NoDeviceError:
    """Translate an error of a card's first use into its cause and the remedy."""
    text = " ".join(str(error).split())
    if "no kernel image" in text:
        return NoDeviceError(f"{called}: {_no_gpu_code_text(index)}")
    pattern = find_gpu_error_pattern(text)
    if isinstance(error, torch.OutOfMemoryError) or (pattern and pattern.meaning == "memory"):
        told = f"another process holds its memory{_gpu_memory_text(index)}"
        return GpuMemoryFullError(f"{called}: {told}. Remedy: nvidia-smi names it; end it, or use other cards")
    why = unusable_gpu_reason(error) or f"{text[:300]}. Remedy: nvidia-smi and the system's log (dmesg) say more"
    return NoDeviceError(f"{called}: {why}")


def _no_gpu_code_text(index: int) -> str:
    major, minor = torch.cuda.get_device_capability(index)
    return (
        f"this torch (CUDA {torch.version.cuda}) has no code for its compute capability {major}.{minor}, but for "
        f"{', '.join(built_gpu_architectures())}. Remedy: another card, or {OLDER_CUDA_TORCH_ADVICE}"
    )


def _gpu_memory_text(index: int) -> str:
    try:
        free, total = torch.cuda.mem_get_info(index)
    except RuntimeError:  # what tells how much is free needs some itself
        return ""
    return f": {free >> 20} of {total >> 20} MiB are free"


def _why_no_cuda() -> str:
    """Return torch's error when it is asked to use a GPU that it does not find."""
    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as error:
        return " ".join(str(error).split()).rstrip(".")
    return ""


def gpu_name(index: int) -> str:
    """Return a card's name, without torch's long warning of a card it has no code for: `check_visible_gpus` tells."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.cuda.get_device_name(index)


def has_gpu_code_for(index: int) -> bool:
    """Tell whether torch has code for a card: code for an older one of its generation and PTX also run."""
    if torch.version.hip:
        return True
    return is_gpu_code_compatible(torch.cuda.get_device_capability(index), built_gpu_architectures())


def is_gpu_code_compatible(capability: tuple[int, int], built: tuple[str, ...]) -> bool:
    """Tell whether code for these architectures (`sm_75`, `compute_120`) runs on a card of that capability."""
    major, minor = capability
    matches = [re.fullmatch(r"(sm|compute)_(\d+)(\d)[a-z]?", name) for name in built]
    known = [(match[1], int(match[2]), int(match[3])) for match in matches if match]
    return any(
        (kind == "sm" and first == major and second <= minor)
        or (kind == "compute" and (first, second) <= (major, minor))
        for kind, first, second in known
    )


def built_gpu_architectures() -> tuple[str, ...]:
    """List what this torch has code for, as `sm_75`; empty where it was built for the CPU alone. Needs no card."""
    flags = getattr(torch._C, "_cuda_getArchFlags", None)  # torch.cuda.get_arch_list tells nothing without a card
    return tuple((flags() or "").split()) if flags else ()


def min_nvidia_driver_version() -> int | None:
    """Return the oldest branch of NVIDIA's driver that this torch runs with, as 580; None: unknown, or no CUDA."""
    return MIN_DRIVER_BY_CUDA.get(int(torch.version.cuda.split(".")[0])) if torch.version.cuda else None


@cache
def nvidia_driver_version() -> str | None:
    """Read the version of NVIDIA's driver on this machine, as `580.65.06`; None: there is none.

    It takes no card's memory.
    """
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


def describe_device(device: torch.device) -> dict[str, str]:
    """Describe a device for the results computed on it.

    Returns:
        `name`; of a GPU also its compute `capability`, `cuda` (or `rocm`), for which torch was built, and `driver`,
            where it is known.
    """
    if device.type != CUDA_DEVICE:
        return {"name": device.type}
    major, minor = torch.cuda.get_device_capability(device)
    told = {"name": torch.cuda.get_device_name(device), "driver": nvidia_driver_version()}
    told |= {"cuda": torch.version.cuda, "rocm": torch.version.hip, "capability": f"{major}.{minor}"}
    return {key: value for key, value in told.items() if value}


class DeviceSplit:
    """A split's arrays as tensors on the device, where a batch is an indexing.

    On the CPU they are the split's own memory, shared by every trial of a machine; on a GPU the inputs of one array lie
    there once, however many splits of this process have it.

    Args:
        split: read, never written.
    """

    def __init__(self, split: Split, facts: Facts, device: torch.device) -> None:
        self.device = device
        self._copy = self._copy_on_device(split.inputs)
        self.inputs, self.target = self._copy.tensor, to_device(split.target, device)
        self._rows = None if split.rows is None else to_device(split.rows, self.inputs.device)
        self.bias = None if split.bias is None else to_device(split.bias, device)
        self.condition = None if split.condition is None else to_device(split.condition, device)
        self._mean, self._deviation = (
            torch.tensor(value, device=device)[:, None, None] if isinstance(value, tuple) else value
            for value in (facts.mean, facts.deviation)
        )

    @property
    def labels(self) -> BatchLabels:
        """All that is known of the samples besides their inputs."""
        return BatchLabels(self.target, self.bias, self.condition)

    @property
    def sample_inputs(self) -> Tensor:
        """Inputs of the samples alone, as they are stored: a copy where `inputs` also holds other samples."""
        return self.inputs if self._rows is None else self.inputs[self._rows]

    def __len__(self) -> int:
        return len(self.target)

    def batches(self, order: Tensor, size: int) -> Iterator[Tensor]:
        """Yield positions (N,) on the CPU as batches of this size on the device, the last one perhaps smaller."""
        yield from order.to(self.device).split(size)

    def batches_in_order(self, size: int) -> Iterator[Tensor]:
        """Yield the positions of all samples as batches on the device."""
        yield from torch.arange(len(self), device=self.device).split(size)

    def pixels_of_samples(self, index: Tensor) -> Tensor:
        """Return samples by position: images as floats in [0, 1], (B, C, H, W); rows of a table as they are."""
        chosen = self._select_inputs(index)
        return chosen.float().div_(255.0) if chosen.dtype == torch.uint8 else chosen.float()

    def normalise_pixels(self, pixels: Tensor) -> Tensor:
        """Normalise pixels for the network; rows of a table are returned as they are."""
        return pixels if self.inputs.dtype != torch.uint8 else pixels.sub(self._mean).div_(self._deviation)

    def _copy_on_device(self, array: NDArray[np.generic]) -> "DeviceCopy":
        """Return the copy of the inputs that batches are taken from."""
        return shared_device_copy(array, self.device)

    def _select_inputs(self, index: Tensor) -> Tensor:
        """Return the inputs at these positions, as they are stored, on the device."""
        return self.inputs[self._input_rows_of_samples(index)]

    def _input_rows_of_samples(self, index: Tensor) -> Tensor:
        """Return where in `inputs` the samples at these positions are."""
        return index if self._rows is None else self._rows[index]


@dataclass(frozen=True, eq=False)
class DeviceCopy:
    """An array as a tensor. It keeps the array, so that no other takes its identity."""

    array: NDArray[np.generic]
    tensor: Tensor


_shared_device_copies: WeakValueDictionary[tuple[int, torch.device], DeviceCopy] = WeakValueDictionary()


def shared_device_copy(array: NDArray[np.generic], device: torch.device) -> DeviceCopy:
    """Return the one copy of an array on a device, which lives as long as somebody holds it."""
    place = (id(array), device)
    found = _shared_device_copies.get(place)
    if found is None:
        found = _shared_device_copies[place] = DeviceCopy(array, to_device(array, device))
    return found


def to_device(array: NDArray[np.generic], device: torch.device) -> Tensor:
    """Move an array to a device; on the CPU it is the array's own memory, which must not be written."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)


BYTES_PER_MIB = 2**20


class EpochProfiler:
    """The clock of one trial: measures an epoch's time by phase, its speed, and the peak of memory.

    On CUDA a phase's time is the device's, between two events; only `end_epoch` waits for the device, once. Time in
    which the device waits for the host counts in the phase in which the host is slow.

    Args:
        device: the trial's. Making the clock starts CUDA's peak of memory anew.

    Example:
        >>> clock = EpochProfiler(torch.device("cpu"))
        >>> with clock.phase("data"):
        ...     batch = [1, 2]
        >>> with clock.phase("training"):
        ...     total = sum(batch)
        >>> sorted(clock.end_epoch(images=2))[:2]
        ['memory/peak_mib', 'speed/images_per_second']
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        kind: type[HostPhaseTimer | CudaPhaseTimer] = CudaPhaseTimer if device.type == "cuda" else HostPhaseTimer
        self._phases = {name: kind() for name in EPOCH_PHASES}
        # the bound method of the dictionary is the fastest way from a name to its phase
        self.phase = self._phases.__getitem__
        if device.type == "cuda":
            torch.cuda.init()
            torch.cuda.reset_peak_memory_stats(device)
        self._started = time.perf_counter()

    def end_epoch(self, images: int) -> dict[str, float]:
        """Return the figures of the epoch that ends here, and start the next one.

        Args:
            images: samples trained on in it.

        Returns:
            `time/epoch`, `time/data`, `time/training`, `time/evaluation` in seconds; `speed/images_per_second`: images
            over the time of data and training; `memory/peak_mib`: on CUDA the most that tensors held since the clock
            was made, else the most that the process ever held.
        """
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        now = time.perf_counter()
        times = {f"time/{name}": phase.take_seconds() for name, phase in self._phases.items()}
        figures = {"time/epoch": now - self._started, **times}
        self._started = now
        busy = times["time/data"] + times["time/training"]
        figures["speed/images_per_second"] = images / busy if busy else float("nan")
        return figures | {"memory/peak_mib": peak_memory_mib(self._device)}


class HostPhaseTimer:
    """A part of an epoch: the time that is spent inside `with phase:`, by the host's clock. Phases do not nest."""

    def __init__(self) -> None:
        self._total = self._began = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *problem: object) -> None:
        self._total += time.perf_counter() - self._began

    def take_seconds(self) -> float:
        """Return the time spent inside since the last call."""
        total, self._total = self._total, 0.0
        return total


class CudaPhaseTimer:
    """A part of an epoch as `HostPhaseTimer`, timed by events on the current stream; not for use in a CUDA graph.

    The events are made once and used in every epoch.
    """

    def __init__(self) -> None:
        self._events: list[torch.cuda.Event] = []
        self._used = 0

    def __enter__(self) -> None:
        self._record_event()

    def __exit__(self, *problem: object) -> None:
        self._record_event()

    def take_seconds(self) -> float:
        """Return the time spent inside since the last call."""
        pairs = zip(self._events[: self._used : 2], self._events[1 : self._used : 2], strict=True)
        self._used = 0
        return sum(began.elapsed_time(ended) for began, ended in pairs) / 1000

    def _record_event(self) -> None:
        if self._used == len(self._events):
            self._events.append(torch.cuda.Event(enable_timing=True))
        self._events[self._used].record()
        self._used += 1


def peak_memory_mib(device: torch.device) -> float:
    """Return MiB: on CUDA the peak of tensors since it was last reset, else the process's peak resident memory."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / BYTES_PER_MIB
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (BYTES_PER_MIB if sys.platform == "darwin" else 1024)  # macOS counts bytes, Linux KiB


MALLOPT_TRIM_THRESHOLD, MALLOPT_MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's `mallopt` with these names (malloc.h)."""
MAX_KEPT_FREED_BYTES = 2**30


def keep_freed_memory() -> None:
    """Have the process keep freed memory, up to 1 GiB in one piece, instead of giving it back to the system.

    Each step of a trial needs the same large tensors. Without this glibc asks the system for them each time, and the
    system's clearing of pages is up to a fifth of a small network's step. The peak of memory stays. Without glibc
    nothing happens.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(MALLOPT_TRIM_THRESHOLD, MAX_KEPT_FREED_BYTES)
        mallopt(MALLOPT_MMAP_THRESHOLD, MAX_KEPT_FREED_BYTES)
