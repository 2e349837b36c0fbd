"""Which device is taken, and what is said of one that cannot be used."""

import pytest
import torch

from study.errors import UserError
from study.spec.schema import TrialResources
from study.training import device

WHEEL = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")
"""What the wheels of PyTorch 2.15 for CUDA 13 have code for."""


@pytest.mark.parametrize(
    ("capability", "built", "runs"),
    [
        ((7, 5), WHEEL, True),  # T4
        ((8, 9), WHEEL, True),  # L4: the code for 8.6
        ((9, 0), WHEEL, True),
        ((7, 0), WHEEL, False),  # V100
        ((6, 1), WHEEL, False),
        ((13, 0), WHEEL, False),
        ((13, 0), (*WHEEL, "compute_120"), True),
        ((9, 0), ("sm_90a",), True),
        ((9, 0), (), False),
    ],
)
def test_code_runs_on_later_cards_of_its_generation(
    capability: tuple[int, int], built: tuple[str, ...], runs: bool
) -> None:
    assert device.is_gpu_code_compatible(capability, built) is runs


@pytest.mark.parametrize(("gpu", "kind"), [(0, "cpu"), (0.25, "cuda"), (1, "cuda")])
def test_a_study_says_what_its_trials_run_on(gpu: float, kind: str) -> None:
    assert TrialResources(gpu=gpu).device == kind


def test_the_cpu_is_taken_and_named() -> None:
    taken = device.resolve_device("cpu")
    assert taken == torch.device("cpu")
    assert device.describe_device(taken) == {"name": "cpu"}


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "tpu", ""])
def test_no_such_device(name: str) -> None:
    with pytest.raises(UserError, match="allowed are auto, cpu, cuda and cuda:NUMBER"):
        device.resolve_device(name)


@pytest.mark.parametrize(
    ("version", "needed"), [("13.2", 580), ("12.8", 525), ("11.8", 450), ("99.1", None), (None, None)]
)
def test_each_cuda_needs_a_driver(monkeypatch: pytest.MonkeyPatch, version: str | None, needed: int | None) -> None:
    monkeypatch.setattr(torch.version, "cuda", version)
    assert device.min_nvidia_driver_version() == needed


def test_a_driver_that_is_too_old_is_said_with_the_one_that_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.2")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(device, "nvidia_driver_version", lambda: "550.54.15")
    why = device.why_no_gpu() or ""
    assert why.startswith(
        "its driver 550.54.15 is too old for this torch (CUDA 13.2). Remedy: a driver of R580 or newer"
    )


def test_a_torch_without_cuda_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    assert (device.why_no_gpu() or "").startswith(
        "this torch was built for the CPU alone. Remedy: a torch built for CUDA"
    )
    with pytest.raises(device.NoDeviceError, match="CPU alone"):
        device.check_visible_gpus()
    assert device.best_available_device() == torch.device("cpu")
