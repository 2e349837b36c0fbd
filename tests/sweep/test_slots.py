"""How many trials run at once."""

import subprocess
import sys

import pytest
import torch

from study.errors import UserError
from study.spec.schema import TrialResources
from study.sweep import ray_runtime
from study.sweep.ray_runtime import TrialSlots, check_trial_fits_machine, count_gpus
from study.training import device


@pytest.mark.parametrize(
    ("there", "cpu", "gpu", "concurrency", "slots"),
    [
        ({"CPU": 2.0}, 1, 0, None, 2),
        ({"CPU": 8.0, "GPU": 1.0}, 1, 0.25, None, 4),
        ({"CPU": 3.0, "GPU": 8.0}, 1, 0.25, None, 3),
        ({"CPU": 0.3}, 0.1, 0, None, 3),
        ({"CPU": 8.0}, 1, 0, 3, 3),
        ({"CPU": 2.0}, 1, 0, 5, 2),
        ({}, 1, 0, None, 1),
    ],
)
def test_on_this_machine(there: dict[str, float], cpu: float, gpu: float, concurrency: int | None, slots: int) -> None:
    """As many as fit, at least one, no more than asked for; counted once."""
    found = TrialSlots(lambda: there, TrialResources(cpu=cpu, gpu=gpu), concurrency, grows=False)
    assert found() == slots
    there["CPU"] = 100.0
    assert found() == slots


def test_on_a_cluster_nodes_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"CPU": 2.0}
    found = TrialSlots(lambda: there, TrialResources(cpu=1, gpu=0), None, grows=True)
    assert found() == 2
    monkeypatch.setattr(TrialSlots, "CLUSTER_POLL_INTERVAL_S", -1.0)
    there["CPU"] = 5.0
    assert found() == 5
    there.clear()
    assert found() == 1


def test_a_cluster_is_asked_to_grow_by_a_concurrency_that_does_not_fit() -> None:
    assert TrialSlots(lambda: {"CPU": 0.0}, TrialResources(cpu=1, gpu=0), 16, grows=True)() == 16


@pytest.mark.parametrize(
    ("visible", "count"),
    [(None, 3), ("0,1", 3), ("MIG-1", 1), ("MIG-1,MIG-2", 2)],  # CUDA counts the numbers itself
)
def test_each_slice_of_a_gpu_counts(monkeypatch: pytest.MonkeyPatch, visible: str | None, count: int) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert count_gpus() == count


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("NVIDIA H100 80GB HBM3", None),
        ("NVIDIA H100-SXM5-80GB", None),
        ("NVIDIA A100-SXM4-80GB", "resources.accelerator: H100 given, this machine's GPU is: NVIDIA A100-SXM4-80GB"),
        ("NVIDIA H1000", "H100 given, this machine's GPU is: NVIDIA H1000"),
    ],
)
def test_another_kind_of_gpu_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, told: str | None) -> None:
    monkeypatch.setattr(ray_runtime, "count_gpus", lambda: 1)
    monkeypatch.setattr(device, "gpu_name", lambda _: name)
    monkeypatch.setattr(device, "why_no_gpu", lambda: None)
    resources = TrialResources(gpu=0.5, accelerator="H100")
    if told is None:
        check_trial_fits_machine(resources)
        return
    with pytest.raises(UserError, match=told):
        check_trial_fits_machine(resources)


@pytest.mark.slow
def test_too_few_addresses_for_ray_are_refused_before_it_waits_for_ever() -> None:
    """In a process of its own, which then has them for good."""
    code = (
        "import resource\nfrom study.spec.schema import TrialResources\n"
        "from study.sweep.ray_runtime import check_trial_fits_machine\ncheck_trial_fits_machine(TrialResources())\n"
        "resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30,) * 2)\ncheck_trial_fits_machine(TrialResources())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "UserError: ulimit -v: 4.0 GiB of addresses given, Ray takes " in done.stderr
