"""What a trial costs: an epoch's time by phase, its speed, and the most memory it held."""

import resource
import sys
import time

import torch

from study.metrics import PHASES

MIB = 2**20


class Clock:
    """The clock of one trial.

    On CUDA a phase's time is the device's, between two events: nothing waits for the device but `epoch`, once. There
    the device waits for the host in the phase in which the host is slow.

    Args:
        device: the trial's. Making the clock starts CUDA's peak of memory anew.

    Example:
        >>> clock = Clock(torch.device("cpu"))
        >>> with clock.phase("data"):
        ...     batch = [1, 2]
        >>> with clock.phase("training"):
        ...     total = sum(batch)
        >>> sorted(clock.epoch(images=2))[:2]
        ['memory/peak_mib', 'speed/images_per_second']
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        kind: type[HostPhase | CudaPhase] = CudaPhase if device.type == "cuda" else HostPhase
        self._phases = {name: kind() for name in PHASES}
        # the bound method of the dictionary is the fastest way from a name to its phase
        self.phase = self._phases.__getitem__
        if device.type == "cuda":
            torch.cuda.init()
            torch.cuda.reset_peak_memory_stats(device)
        self._started = time.perf_counter()

    def epoch(self, images: int) -> dict[str, float]:
        """The figures of the epoch that ends here; the next one starts.

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
        times = {f"time/{name}": phase.seconds() for name, phase in self._phases.items()}
        figures = {"time/epoch": now - self._started, **times}
        self._started = now
        busy = times["time/data"] + times["time/training"]
        figures["speed/images_per_second"] = images / busy if busy else float("nan")
        return figures | {"memory/peak_mib": peak_memory(self._device)}


class HostPhase:
    """A part of an epoch: the time that is spent inside `with phase:`, by the host's clock. Phases do not nest."""

    def __init__(self) -> None:
        self._total = self._began = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *problem: object) -> None:
        self._total += time.perf_counter() - self._began

    def seconds(self) -> float:
        """The time spent inside since it was asked for last."""
        total, self._total = self._total, 0.0
        return total


class CudaPhase:
    """The same by events on the current stream, made once and used in every epoch; not for use in a CUDA graph."""

    def __init__(self) -> None:
        self._events: list[torch.cuda.Event] = []
        self._used = 0

    def __enter__(self) -> None:
        self._record()

    def __exit__(self, *problem: object) -> None:
        self._record()

    def seconds(self) -> float:
        pairs = zip(self._events[: self._used : 2], self._events[1 : self._used : 2], strict=True)
        self._used = 0
        return sum(began.elapsed_time(ended) for began, ended in pairs) / 1000

    def _record(self) -> None:
        if self._used == len(self._events):
            self._events.append(torch.cuda.Event(enable_timing=True))
        self._events[self._used].record()
        self._used += 1


def peak_memory(device: torch.device) -> float:
    """MiB: on CUDA the peak that tensors held since it was last reset, else the process's peak of resident memory."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / MIB
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (MIB if sys.platform == "darwin" else 1024)  # macOS counts bytes, Linux KiB
