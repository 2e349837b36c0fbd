"""What an error that ended a trial means, as Ray hands it on."""

import ctypes
import socket
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import quickstart
from hypothesis import given
from hypothesis import strategies as st
from ray import cloudpickle, exceptions

from study.home.record import TrialRecord
from study.sweep.failures import NodeUnusableError, TrialFailedError, TrialFailure, failure_of_error
from study.sweep.host_memory import MemoryLimit
from study.sweep.nodes import is_node_unreachable
from study.training import gpu_errors
from study.training.gpu_errors import find_gpu_error_pattern


def raised(cause: Exception) -> BaseException:
    """The error that Ray gives the driver when a trial raises this one."""
    return exceptions.RayTaskError("train", "Traceback ...", cause).as_instanceof_cause()


CASES = {
    "GPU memory": (raised(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")), "OOM", True),
    "cuBLAS": (raised(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`")), "OOM", True),
    "host memory": (raised(MemoryError()), "OOM", False),
    "host memory, PyTorch": (
        raised(RuntimeError("[..] DefaultCPUAllocator: can't allocate memory: you")),
        "OOM",
        False,
    ),
    "memory monitor": (exceptions.OutOfMemoryError("Task was killed due to the node running low"), "OOM", False),
    "GPU": (raised(RuntimeError("CUDA error: an illegal memory access was encountered\nCompile")), "PREEMPTED", False),
    "cuDNN": (raised(RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED")), "PREEMPTED", False),
    "process": (exceptions.ActorDiedError(), "PREEMPTED", False),
    "node": (exceptions.NodeDiedError("gone"), "PREEMPTED", False),
    "node's GPU": (raised(NodeUnusableError("1f", "a7", "H100: lost. Remedy: reset it")), "PREEMPTED", False),
    "bug": (raised(ValueError("no\nsuch thing")), "BUG", False),
    "bug that speaks of nodes": (raised(ValueError("lost because its node has died")), "BUG", False),
    "unknown": (RuntimeError("Failure # 1\nTraceback"), "BUG", False),
}


DSA = """CUDA error: device-side assert triggered
Search for `cudaErrorAssert' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more.
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
"""

CREATE = "when calling `cublasCreate(handle)`"
GPU_MESSAGES: dict[str, tuple[str, str]] = {
    # memory of the GPU
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 1.95 GiB": ("OOM", "alone"),
    "Triton Error [CUDA]: out of memory": ("OOM", "alone"),
    f"CUDA error: CUBLAS_STATUS_NOT_INITIALIZED {CREATE}": ("OOM", "alone"),
    "FIND was unable to find an engine to execute this computation": ("OOM", "alone"),
    "cusolver error: CUSOLVER_STATUS_INTERNAL_ERROR, when calling `cusolverDnCreate(handle)`. If": ("OOM", "alone"),
    "MAGMA error: cannot allocate memory on GPU device (-113) in magma_sgetrf at a.cpp:1": ("OOM", "alone"),
    "Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that "
    "might have already set an error? Error 2: out of memory": ("OOM", "alone"),
    # memory of the machine
    "DefaultCPUAllocator: not enough memory: you tried to allocate": ("OOM", ""),
    "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED": ("OOM", ""),
    # the same in every run
    DSA: ("BUG", "CUDA_LAUNCH_BLOCKING=1"),
    "CUDA error: invalid argument": ("BUG", ""),
    "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear if you passed in a non-contiguous": ("BUG", ""),
    # no trial can use the GPU
    "CUDA driver error: unknown error": ("PREEMPTED", "Xid"),
    "GPU 0000:01:00.0 has fallen off the bus.": ("PREEMPTED", "Xid"),
    "CUDA error: CUDA-capable device(s) is/are busy or unavailable": ("PREEMPTED", "nvidia-smi -c 0"),
    "CUDA error: initialization error": ("PREEMPTED", "nvidia-smi"),
    "Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that "
    "might have already set an error? Error 804: forward compatibility was attempted": ("PREEMPTED", "nvidia-smi"),
    "CUDA error: CUDA driver version is insufficient for CUDA runtime version": ("PREEMPTED", "driver"),
    "CUDA error: no kernel image is available for execution on the device\nSearch for": ("PREEMPTED", "no code"),
    "CUDA error: MPS client failed to connect to the MPS control daemon or the MPS server": ("PREEMPTED", "MPS"),
    "CUDA error: the remote procedural call between the MPS server and the MPS client failed": ("PREEMPTED", "MPS"),
    # the process has lost its GPU, the next one has it
    "CUDA error: misaligned address": ("PREEMPTED", ""),
    "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR": ("PREEMPTED", ""),
    "cusolver error: CUSOLVER_STATUS_INTERNAL_ERROR, when calling `cusolverDnSgetrf(": ("PREEMPTED", ""),
    "NCCL error in: x.cpp:1, unhandled cuda error": ("PREEMPTED", ""),
}
"""Of each: its kind, and `alone` for the GPU's memory or a part of the advice that goes with it."""


@pytest.mark.parametrize("message", GPU_MESSAGES, ids=lambda message: message.splitlines()[0][:90])
def test_messages_about_a_gpu(message: str) -> None:
    kind, more = GPU_MESSAGES[message]
    found = failure_of_error(raised(RuntimeError(message)))
    assert (found.kind, found.needs_whole_gpu) == (kind, more == "alone")
    reason = f"RuntimeError: {message.splitlines()[0]}"[:300]
    assert found.reason.startswith(reason)
    advice = found.reason.removeprefix(reason)
    assert more in advice if more not in ("", "alone") else advice == ""
    why = gpu_errors.unusable_gpu_reason(RuntimeError(message))
    assert bool(why) == (kind == "PREEMPTED" and more != "")
    assert why is None or more in why


def test_no_pattern_hides_behind_another() -> None:
    begin = gpu_errors.CUDA_MESSAGE_PREFIXES[0]
    for pattern in gpu_errors.CUDA_ERROR_PATTERNS:
        assert find_gpu_error_pattern(f"{begin}{pattern.message_part}\nCompile with") == pattern
    for pattern in gpu_errors.LIBRARY_ERROR_PATTERNS:
        assert find_gpu_error_pattern(f"{pattern.message_part}. See") == pattern


def test_what_cuda_says_is_written_as_cuda_writes_it() -> None:
    libraries = sorted(Path(torch.__file__).parents[1].glob("nvidia/*/lib/libcudart.so.*"))
    if not libraries:
        pytest.skip("this PyTorch comes without CUDA's runtime")
    runtime = ctypes.CDLL(str(libraries[0]))
    runtime.cudaGetErrorString.restype = ctypes.c_char_p
    texts = {runtime.cudaGetErrorString(code).decode().rstrip(".") for code in range(1000)}
    of_cusparse = {"insufficient resources"}
    assert {pattern.message_part for pattern in gpu_errors.CUDA_ERROR_PATTERNS} - texts == of_cusparse


@given(st.sampled_from(gpu_errors.CUDA_ERROR_PATTERNS).map(lambda pattern: pattern.message_part))
def test_what_cuda_says_counts_only_where_cuda_says_it(text: str) -> None:
    assert failure_of_error(raised(ValueError(text))).kind == "BUG"
    assert gpu_errors.unusable_gpu_reason(ValueError(text)) is None


@pytest.mark.parametrize("case", CASES)
def test_kinds(case: str) -> None:
    """Also behind a file, by which Tune hands errors on."""
    error, kind, alone = CASES[case]
    found = failure_of_error(cloudpickle.loads(cloudpickle.dumps(error)))
    assert found == failure_of_error(error)
    assert (found.kind, found.needs_whole_gpu) == (kind, alone)
    assert "\n" not in found.reason
    assert found.reason


def test_a_bug_is_told_by_its_exception() -> None:
    assert failure_of_error(raised(ValueError("no\nsuch thing"))).reason == "ValueError: no"


@pytest.mark.parametrize(
    ("found", "attempt", "gpu", "again"),
    [
        (TrialFailure("PREEMPTED", ""), 0, 0, True),
        (TrialFailure("HUNG", ""), 1, 0, True),
        (TrialFailure("OOM", ""), 0, 0, True),
        (TrialFailure("OOM", ""), 1, 0, False),
        (TrialFailure("DIVERGED", ""), 0, 0, False),
        (TrialFailure("BUG", ""), 0, 0, False),
        (TrialFailure("PREEMPTED", ""), 2, 0, False),
        (TrialFailure("PREEMPTED", "", node_died=True), 2, 0, True),
        (TrialFailure("OOM", "", needs_whole_gpu=True), 0, 0.5, True),
        (TrialFailure("OOM", "", needs_whole_gpu=True), 0, 1, False),
    ],
)
def test_what_runs_again(found: TrialFailure, attempt: int, gpu: float, again: bool) -> None:
    """As often as `search.retries` says, 2; for want of memory once, of a GPU's only where the trial had shared it."""
    trial = TrialRecord(0, "search", {}, 0)
    assert found.may_run_again(trial, quickstart(f"resources.gpu={gpu}"), before=attempt) == again


def test_a_trial_that_had_a_gpu_to_itself_is_not_given_another() -> None:
    trial = TrialRecord(0, "search", {}, 0, needs_gpu_alone=True)
    assert not TrialFailure("OOM", "", needs_whole_gpu=True).may_run_again(
        trial, quickstart("resources.gpu=0.5"), before=1
    )
    assert TrialFailure("PREEMPTED", "").may_run_again(trial, quickstart("resources.gpu=0.5"), before=1)


def test_the_machines_memory_is_had_by_fewer_trials_or_smaller_ones() -> None:
    ran_out = TrialFailure("OOM", "MemoryError")
    both = ran_out.with_memory_remedy(quickstart(), others=True).reason
    assert both.startswith("MemoryError. ")
    assert "search.concurrency" in both
    assert "train.batch_size" in both
    assert "search.concurrency" not in ran_out.with_memory_remedy(quickstart(), others=False).reason
    for other in (TrialFailure("BUG", "broken"), TrialFailure("OOM", "CUDA out of memory", needs_whole_gpu=True)):
        assert other.with_memory_remedy(quickstart(), others=True) == other


def test_a_trial_that_outlives_nodes_by_the_hundred_may_be_what_kills_them() -> None:
    died = TrialFailure("PREEMPTED", "", node_died=True)
    assert died.may_run_again(TrialRecord(0, "search", {}, 0, attempt=99), quickstart(), before=0)
    assert not died.may_run_again(TrialRecord(0, "search", {}, 0, attempt=100), quickstart(), before=0)


def test_a_node_is_out_of_reach_where_ray_says_so_or_nothing_listens() -> None:
    """Asked at its own port, as Ray is late to hear of a machine that lost its power, or its link."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def told(name: str, alive: bool = True) -> dict[str, Any]:
            return {"NodeID": name, "Alive": alive, "NodeManagerAddress": "127.0.0.1", "NodeManagerPort": port}

        nodes = [told("one"), told("other", alive=False)]
        assert not is_node_unreachable("one", nodes)
        assert is_node_unreachable("other", nodes)
        assert not is_node_unreachable("unknown", nodes)
        assert not is_node_unreachable(None, nodes)
    assert is_node_unreachable("one", nodes)


class Odd(Exception):
    """Cannot be made anew from what it was made of, and has another error inside."""

    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"odd {what} in {where}")
        self.cause = KeyError("another")


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (Odd("value", "row 3"), "BUG", "Odd: odd value in row 3"),
        (Mute(), "BUG", "Mute: its message cannot be had (ValueError)"),
        (exceptions.GetTimeoutError("of a Ray of the function's own"), "BUG", "GetTimeoutError: of a Ray of the"),
        (torch.OutOfMemoryError("CUDA out of memory"), "OOM", "OutOfMemoryError: CUDA out of memory"),
    ],
)
def test_what_a_trial_raises_comes_to_the_driver_as_it_was(error: Exception, kind: str, reason: str) -> None:
    try:
        raise error
    except Exception as caught:
        broken = TrialFailedError.from_exception(caught, MemoryLimit(2**30))
    found = failure_of_error(cloudpickle.loads(cloudpickle.dumps(raised(broken))))
    assert found.kind == kind
    assert found.reason.startswith(reason)
    assert "raise error" in broken.text
