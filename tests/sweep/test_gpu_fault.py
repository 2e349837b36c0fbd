"""A GPU that fails in mid-trial, as the trial's process tells of it."""

from types import SimpleNamespace
from typing import Any

import pytest
from course import payload

from study.sweep import worker
from study.sweep.failures import NodeUnusableError, TrialFailedError

ECC, ILLEGAL = "CUDA error: uncorrectable ECC error encountered", "CUDA error: an illegal memory access was encountered"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a job whose trial ends with an error, in a process whose GPU then frees nothing."""

    def failing(message: str, device: str) -> None:
        def trial(*given: Any) -> None:
            raise RuntimeError(message)

        def free() -> None:
            raise RuntimeError("CUDA error: unspecified launch failure")

        monkeypatch.setattr(worker, "_run_in_this_process", trial)
        monkeypatch.setattr("study.training.device.free_gpu_memory", free)
        context = SimpleNamespace(get_node_id=lambda: "1f")
        monkeypatch.setattr(worker.ray, "get_runtime_context", lambda: context)
        worker.run_job({"job": payload(device=device)}, datasets={}, weights={})

    return failing


def test_a_card_of_no_use_is_told_with_its_node_and_the_remedy(run: Any) -> None:
    with pytest.raises(NodeUnusableError) as told:
        run(f"{ECC}\nCUDA kernel errors might be asynchronously reported", "cuda")
    assert told.value.machine == "1f"
    assert told.value.reason.startswith(f"{ECC}. Remedy: look for Xid in `dmesg`")


@pytest.mark.parametrize(("message", "device"), [(ILLEGAL, "cuda"), ("no such key", "cuda"), (ECC, "cpu")])
def test_other_errors_are_told_as_they_are(run: Any, message: str, device: str) -> None:
    """Also those of a trial that asked for no GPU, whatever it did with one."""
    with pytest.raises(TrialFailedError) as told:
        run(message, device)
    assert f"RuntimeError: {message}" in told.value.text
