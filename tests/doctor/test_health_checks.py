"""GPUs, libraries, disks and memory as the doctor judges them, where this machine cannot show it."""

from pathlib import Path

import pytest
from groups import grouped

from study.doctor import health_checks
from study.doctor.health_checks import GpuReport, judge_gpu_report
from study.upstream import cgroup

CARD = ("NVIDIA H100, 550.54, 81559 MiB",)


@pytest.mark.parametrize(
    ("observed", "state", "told"),
    [
        (GpuReport(), "ok", "no driver knows one"),
        (GpuReport(CARD, "12.8", "12.8", ("H100",)), "ok", "torch sees 1: NVIDIA H100, 550.54"),
        (GpuReport(CARD, "12.4", None), "warning", "built for the CPU alone"),
        (GpuReport(CARD, "12.4", "13.0"), "problem", "supports CUDA up to 12.4, torch was built for 13.0"),
        (GpuReport(CARD, "12.10", "12.9", torch_failure="no device"), "problem", "cannot use: no device"),
        (GpuReport(CARD, "12.8", "12.8", hiding_variable="CUDA_VISIBLE_DEVICES="), "warning", "hidden from torch"),
        (GpuReport(CARD, "12.8", "12.8", ("H100",), ("H100",)), "problem", "has no code for H100"),
    ],
)
def test_gpus(observed: GpuReport, state: str, told: str) -> None:
    (found,) = judge_gpu_report(observed)
    assert found.state == state
    assert told in found.told
    assert (found.remedy is None) == (state == "ok")


def test_a_library_that_is_missing_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_checks, "RECORDED_LIBRARIES", ("numpy", "no-such-library-as-this"))
    (found,) = health_checks.library_findings()
    assert found.state == "problem"
    assert found.told.endswith("no-such-library-as-this missing")


def test_room_on_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    far = tmp_path / "not" / "there"
    assert health_checks.nearest_existing_folder(far) == tmp_path
    states = []
    for little, none in ((0, 0), (2**60, 0), (2**60, 2**60)):
        monkeypatch.setattr(health_checks, "MAX_RAY_DISK_SHARE", 1.0)
        monkeypatch.setattr(health_checks, "LOW_DISK_BYTES", little)
        monkeypatch.setattr(health_checks, "FULL_DISK_BYTES", none)
        states.append(health_checks.disk_finding("disk", far, "remove").state)
    assert states == ["ok", "warning", "problem"]


def test_a_containers_limit_is_its_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "FILE_SYSTEM_ROOT", grouped(tmp_path, limit=2**30))
    (found,) = health_checks.memory_findings()
    assert found.state == "warning"
    assert "1.0 GiB" in found.told
    assert "the container's limit" in found.told
