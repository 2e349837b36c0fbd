"""What an error that ended a trial means, as Ray hands it on."""

import errno
import socket
from typing import Any

import pytest
import torch
from helpers import quickstart
from ray import cloudpickle, exceptions

from study.home.record import TrialRecord
from study.sweep.failures import Failure, failure, full_disk, is_out_of_reach
from study.sweep.memory_kills import EndedForMemory


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
    "memory monitor": (EndedForMemory(error_msg="Task was killed due to the node running low"), "OOM", False),
    "GPU": (raised(RuntimeError("CUDA error: an illegal memory access was encountered\nCompile")), "PREEMPTED", False),
    "cuDNN": (raised(RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED")), "PREEMPTED", False),
    "process": (exceptions.ActorDiedError(), "PREEMPTED", False),
    "node": (exceptions.NodeDiedError("gone"), "PREEMPTED", False),
    "bug": (raised(ValueError("no\nsuch thing")), "BUG", False),
    "bug that speaks of nodes": (raised(ValueError("lost because its node has died")), "BUG", False),
    "unknown": (RuntimeError("Failure # 1\nTraceback"), "BUG", False),
}


@pytest.mark.parametrize("case", CASES)
def test_kinds(case: str) -> None:
    """Also behind a file, by which Tune hands errors on."""
    error, kind, alone = CASES[case]
    found = failure(cloudpickle.loads(cloudpickle.dumps(error)))
    assert found == failure(error)
    assert (found.kind, found.alone) == (kind, alone)
    assert "\n" not in found.reason
    assert found.reason


def test_a_bug_is_told_by_its_exception() -> None:
    assert failure(raised(ValueError("no\nsuch thing"))).reason == "ValueError: no"


@pytest.mark.parametrize(
    ("found", "attempt", "gpu", "again"),
    [
        (Failure("PREEMPTED", ""), 0, 0, True),
        (Failure("HUNG", ""), 1, 0, True),
        (Failure("OOM", ""), 2, 0, False),
        (Failure("DIVERGED", ""), 0, 0, False),
        (Failure("BUG", ""), 0, 0, False),
        (Failure("PREEMPTED", ""), 2, 0, False),
        (Failure("PREEMPTED", "", node_died=True), 2, 0, True),
        (Failure("OOM", "", alone=True), 0, 0.5, True),
        (Failure("OOM", "", alone=True), 0, 1, False),
    ],
)
def test_what_runs_again(found: Failure, attempt: int, gpu: float, again: bool) -> None:
    """As often as `search.retries` says, 2; GPU memory only where the trial had shared its GPU."""
    trial = TrialRecord(0, "search", {}, 0)
    assert found.may_run_again(trial, quickstart(f"resources.gpu={gpu}"), before=attempt) == again


def test_a_trial_that_had_a_gpu_to_itself_is_not_given_another() -> None:
    trial = TrialRecord(0, "search", {}, 0, alone=True)
    assert not Failure("OOM", "", alone=True).may_run_again(trial, quickstart("resources.gpu=0.5"), before=1)
    assert Failure("PREEMPTED", "").may_run_again(trial, quickstart("resources.gpu=0.5"), before=1)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_no_failure_of_the_trial(number: int) -> None:
    full = OSError(number, "no room", "/home/of/studies")
    found = full_disk(cloudpickle.loads(cloudpickle.dumps(raised(full))))
    assert found is not None
    assert (found.errno, found.filename) == (number, "/home/of/studies")
    wrapped = RuntimeError("write failed")
    wrapped.__cause__ = full
    assert full_disk(wrapped) is full
    assert full_disk(OSError(errno.EACCES, "no")) is None
    assert full_disk(raised(ValueError())) is None


def test_a_trial_that_outlives_nodes_by_the_hundred_may_be_what_kills_them() -> None:
    died = Failure("PREEMPTED", "", node_died=True)
    assert died.may_run_again(TrialRecord(0, "search", {}, 0, attempt=99), quickstart(), before=0)
    assert not died.may_run_again(TrialRecord(0, "search", {}, 0, attempt=100), quickstart(), before=0)


def test_a_node_is_out_of_reach_where_ray_says_so_or_nothing_listens() -> None:
    """Asked at its own port, as Ray is late to hear of a machine that lost its power, or its link."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def told(name: str, alive: bool = True) -> dict[str, Any]:
            return {"NodeID": name, "Alive": alive, "NodeManagerAddress": "127.0.0.1", "NodeManagerPort": port}

        nodes = [told("one"), told("other", alive=False)]
        assert not is_out_of_reach("one", nodes)
        assert is_out_of_reach("other", nodes)
        assert not is_out_of_reach("unknown", nodes)
        assert not is_out_of_reach(None, nodes)
    assert is_out_of_reach("one", nodes)
