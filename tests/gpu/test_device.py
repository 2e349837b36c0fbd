"""The device that was asked for: tried, named, and refused with the remedy where it is of no use."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from simulated_gpu import gpu_environment, missing, old_driver_environment, run_on_gpu

pytestmark = pytest.mark.skipif(bool(missing()), reason=str(missing()))

TRIED = """
import json
from study.errors import UserError
from study.training import device

told = {"best": str(device.best_available_device())}
for name in ("auto", "cuda", "cuda:1", "cuda:2", "cpu"):
    try:
        told[name] = device.describe_device(device.resolve_device(name)) | {"device": str(device.resolve_device(name))}
    except UserError as problem:
        told[name] = str(problem)
print(json.dumps(told))
"""


def tried(environment: Mapping[str, str]) -> dict[str, object]:
    told: dict[str, object] = json.loads(run_on_gpu(TRIED, environment))
    return told


@pytest.mark.slow
def test_cards_that_work_are_taken_and_named() -> None:
    told = tried(gpu_environment(gpus=2, SIMULATED_GPU_NAME="NVIDIA L4", SIMULATED_GPU_CAPABILITY="8.9"))
    second = told["cuda:1"]
    assert isinstance(second, dict)
    assert second.pop("cuda").startswith("1")
    assert second == {"name": "NVIDIA L4", "capability": "8.9", "device": "cuda:1"}
    assert told["best"] == "cuda"
    assert told["cuda:2"] == "device: 'cuda:2' given, this process sees 2 GPUs"


def test_a_card_without_code_for_it_is_refused_with_words() -> None:
    """Left to the user's choice it is the CPU; asked for by name it is an error."""
    told = tried(gpu_environment(SIMULATED_GPU_NAME="Tesla V100", SIMULATED_GPU_CAPABILITY="7.0"))
    assert told["best"] == "cpu"
    assert told["auto"] == {"name": "cpu", "device": "cpu"}
    assert str(told["cuda"]).startswith("Tesla V100: this torch (CUDA ")
    assert "has no code for its compute capability 7.0, but for sm_75" in str(told["cuda"])


@pytest.mark.slow
def test_a_card_that_another_process_fills_is_refused_with_words() -> None:
    told = tried(gpu_environment(mib=0))
    assert "another process holds its memory: 0 of 0 MiB are free. Remedy: nvidia-smi names it" in str(told["cuda"])


@pytest.mark.parametrize("command", ["run", pytest.param("trial", marks=pytest.mark.slow)])
def test_a_study_on_a_driver_that_is_too_old_is_refused(tmp_path: Path, command: str) -> None:
    """Its card is counted: once such a study trained on the CPU and said nothing."""
    environment = old_driver_environment(STUDY_HOME=str(tmp_path))
    arguments = [command, "quickstart", "--set", "resources.gpu=0.25"]
    done = subprocess.run(
        [sys.executable, "-m", "study", *arguments], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2, done.stderr
    refused = "resources.gpu: 0.25 given, but this machine's GPU cannot be used: its driver 550.54.15 is too old"
    assert refused in done.stderr
    assert "Remedy: a driver of R580 or newer" in done.stderr
    assert "On the CPU: --set resources.gpu=0" in done.stderr
    assert not (tmp_path / "quickstart").exists()
