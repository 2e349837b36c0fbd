"""The clock of a trial: times add up, and it costs nothing worth mentioning."""

import time
from pathlib import Path

import pytest
import torch

from study.metrics import EPOCH_PHASES
from study.training.device import EpochProfiler, peak_memory_mib

CPU = torch.device("cpu")
STATUS = Path("/proc/self/status")


def test_each_phase_has_its_time_and_an_epoch_all_of_it() -> None:
    clock = EpochProfiler(CPU)
    for _ in range(3):
        with clock.phase("data"):
            time.sleep(0.01)
        with clock.phase("training"):
            time.sleep(0.02)
    with clock.phase("evaluation"):
        time.sleep(0.05)
    found = clock.end_epoch(images=90)
    assert found["time/data"] >= 0.03
    assert found["time/training"] >= 0.06
    assert found["time/evaluation"] >= 0.05
    assert sum(found[f"time/{name}"] for name in EPOCH_PHASES) <= found["time/epoch"]
    assert found["speed/images_per_second"] == pytest.approx(90 / (found["time/data"] + found["time/training"]))


def test_an_epoch_starts_from_nothing() -> None:
    clock = EpochProfiler(CPU)
    with clock.phase("training"):
        time.sleep(0.05)
    began = time.perf_counter()
    first, second = clock.end_epoch(10), clock.end_epoch(10)
    assert first["time/epoch"] >= 0.05
    assert second["time/training"] == 0.0
    assert second["time/epoch"] <= time.perf_counter() - began


@pytest.mark.skipif(not STATUS.exists(), reason="the peak is read from Linux's files")
def test_the_peak_of_memory_is_in_mib() -> None:
    (kib,) = (int(line.split()[1]) for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    # Linux adds to it what the parent held when it started this process
    assert 0.98 * kib / 1024 < peak_memory_mib(CPU) < 50 * kib / 1024


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_a_phase_is_the_time_of_the_device() -> None:
    device = torch.device("cuda")
    matrix = torch.rand(4096, 4096, device=device)
    clock = EpochProfiler(device)
    for _ in range(2):
        started = time.perf_counter()
        with clock.phase("training"):
            for _ in range(50):
                matrix @ matrix
        launched = time.perf_counter() - started
        found = clock.end_epoch(1)
        assert launched < found["time/training"] <= found["time/epoch"]
    assert found["memory/peak_mib"] >= 128
