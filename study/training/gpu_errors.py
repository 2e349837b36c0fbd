"""Messages of CUDA, its libraries and PyTorch about a GPU, and what each message means for the trial that met it.

The texts are those of PyTorch 2.15 and of the CUDA 13 libraries in its wheels: those of `cudaGetErrorString`, the names
of the states of cuBLAS, cuDNN, cuSOLVER and cuFFT, and what `torch.cuda` says where it cannot start.
"""

import re
from functools import cache
from typing import Literal, NamedTuple

from study.errors import error_message

TORCH = "a torch built for CUDA: https://pytorch.org/get-started/locally/"

OLDER = "a torch built for an older CUDA: https://pytorch.org/get-started/locally/"

Meaning = Literal["memory", "host memory", "code", "device", "process"]
"""`memory`: of the GPU, which may suffice for the trial alone; `host memory`: of the machine; `code`: happens again in
every run; `device`: no trial on this node can use the GPU any more; `process`: this process cannot use it any more, the
next one can.
"""


class ErrorPattern(NamedTuple):
    """A message, or the part of it by which it is recognised.

    Attributes:
        text: in the message, as a whole word where it ends in one.
        advice: what to do, for the user.
    """

    text: str
    meaning: Meaning
    advice: str = ""


_LABEL = (
    "an index is out of range, most often a label of a class that the network does not have; CUDA_LAUNCH_BLOCKING=1 in "
    "the environment has the traceback name the line, `study trial FILE` runs the trial in this process"
)
_LOST = "look for Xid in `dmesg` there, reset the card (`nvidia-smi --gpu-reset`) or restart the machine"
_BUSY = "another process holds the card for itself: `nvidia-smi` names it, `nvidia-smi -c 0` lets processes share it"
_DRIVER = "it needs a newer driver, or this PyTorch an older CUDA; `study doctor` there says which"
_FABRIC = "start the fabric manager there: `systemctl start nvidia-fabricmanager`"
_NO_CARD = "`nvidia-smi` and `study doctor` there say why no card is seen"
_MPS = "restart the MPS daemon there: `echo quit | nvidia-cuda-mps-control`, then `nvidia-cuda-mps-control -d`"
_OLD_CARD = "this PyTorch has no code for its card; `study doctor` there says which cards it serves"

CUDA_PATTERNS: tuple[ErrorPattern, ...] = (
    ErrorPattern("out of memory", "memory"),
    ErrorPattern("insufficient resources", "memory"),  # as cuSPARSE says it
    ErrorPattern("device-side assert triggered", "code", _LABEL),
    ErrorPattern("invalid argument", "code"),
    ErrorPattern("invalid configuration argument", "code"),
    ErrorPattern("too many resources requested for launch", "code"),
    ErrorPattern("uncorrectable ECC error encountered", "device", _LOST),
    ErrorPattern("uncorrectable NVLink error detected during the execution", "device", _LOST),
    ErrorPattern("Invalid access of peer GPU memory over nvlink or a hardware error", "device", _LOST),
    ErrorPattern("unknown error", "device", _LOST),
    ErrorPattern("CUDA-capable device(s) is/are busy or unavailable", "device", _BUSY),
    ErrorPattern("exclusive-thread device already in use by a different thread", "device", _BUSY),
    ErrorPattern("system not yet initialized", "device", _FABRIC),
    ErrorPattern("initialization error", "device", _NO_CARD),
    ErrorPattern("no CUDA-capable device is detected", "device", _NO_CARD),
    ErrorPattern("invalid device ordinal", "device", _NO_CARD),
    ErrorPattern("no kernel image is available for execution on the device", "device", _OLD_CARD),
    ErrorPattern("invalid device function", "device", _OLD_CARD),
    ErrorPattern("the provided PTX was compiled with an unsupported toolchain", "device", _DRIVER),
    ErrorPattern("CUDA driver version is insufficient for CUDA runtime version", "device", _DRIVER),
    ErrorPattern("system has unsupported display driver / cuda driver combination", "device", _DRIVER),
    ErrorPattern("MPS client failed to connect to the MPS control daemon or the MPS server", "device", _MPS),
    ErrorPattern("the remote procedural call between the MPS server and the MPS client failed", "device", _MPS),
    ErrorPattern("the hardware resources required to create MPS client have been exhausted", "device", _MPS),
    ErrorPattern("the hardware resources required to support device connections have been exhausted", "device", _MPS),
)
"""Messages of CUDA itself, after `CUDA error: ` or another of `CUDA_BEGINS`. What is not listed has cost the process
its
GPU: an illegal address, a launch that failed or took too long. A lost card (Xid 79) shows as `unknown error` or the
like to the process that used it, and as `no CUDA-capable device is detected` to the next.
"""

LIBRARY_PATTERNS: tuple[ErrorPattern, ...] = (
    ErrorPattern("CUDA out of memory", "memory"),
    ErrorPattern("CUDA ran out of memory outside PyTorch's allocator", "memory"),
    ErrorPattern("CUBLAS_STATUS_ALLOC_FAILED", "memory"),
    ErrorPattern("CUBLAS_STATUS_NOT_INITIALIZED", "memory"),  # cublasCreate says so where it finds no room
    ErrorPattern("CUDNN_STATUS_ALLOC_FAILED", "memory"),
    ErrorPattern("CUDNN_STATUS_NOT_INITIALIZED", "memory"),  # likewise cudnnCreate
    ErrorPattern("CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", "memory"),
    ErrorPattern("CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED", "host memory"),
    ErrorPattern("was unable to find an engine to execute this computation", "memory"),  # none that was tried had room
    ErrorPattern("CUSOLVER_STATUS_ALLOC_FAILED", "memory"),
    ErrorPattern("CUSOLVER_STATUS_NOT_INITIALIZED", "memory"),
    ErrorPattern("CUSOLVER_STATUS_INTERNAL_ERROR, when calling `cusolverDnCreate(handle)`", "memory"),
    ErrorPattern("CUFFT_ALLOC_FAILED", "memory"),
    ErrorPattern("CUFFT_NO_WORKSPACE", "memory"),
    ErrorPattern("cannot allocate memory on GPU device", "memory"),  # as MAGMA says it
    ErrorPattern("DefaultCPUAllocator: can't allocate memory", "host memory"),
    ErrorPattern("DefaultCPUAllocator: not enough memory", "host memory"),
    ErrorPattern("CUBLAS_STATUS_INVALID_VALUE", "code"),
    ErrorPattern("CUBLAS_STATUS_NOT_SUPPORTED", "code"),
    ErrorPattern("CUDNN_STATUS_BAD_PARAM", "code"),
    ErrorPattern("CUDNN_STATUS_NOT_SUPPORTED", "code"),
    ErrorPattern("CUSOLVER_STATUS_INVALID_VALUE", "code"),
    ErrorPattern("CUBLAS_STATUS_ARCH_MISMATCH", "device", _OLD_CARD),
    ErrorPattern("CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH", "device", _OLD_CARD),
    ErrorPattern("CUSOLVER_STATUS_ARCH_MISMATCH", "device", _OLD_CARD),
    ErrorPattern("CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER", "device", _DRIVER),
    ErrorPattern("Found no NVIDIA driver on your system", "device", _NO_CARD),
    ErrorPattern("The NVIDIA driver on your system is too old", "device", _DRIVER),
    ErrorPattern("No CUDA GPUs are available", "device", _NO_CARD),
    ErrorPattern("Error 2: out of memory", "memory"),  # what cudaGetDeviceCount meets where a card is full
    ErrorPattern("Unexpected error from cudaGetDeviceCount()", "device", _NO_CARD),
    ErrorPattern("Torch not compiled with CUDA enabled", "device", "a PyTorch with CUDA has to be installed there"),
    ErrorPattern("GPU is lost", "device", _LOST),
    ErrorPattern("fallen off the bus", "device", _LOST),
    ErrorPattern("NVRM: Xid", "device", _LOST),
)
"""Texts anywhere in a message. cuDNN has many names that begin alike."""

CUDA_BEGINS = ("CUDA error: ", "CUDA driver error: ", "Triton Error [CUDA]: ")
OTHERS = (*CUDA_BEGINS, "cuDNN error: ", "cusolver error: ", "cuFFT error: ", "NCCL error", "MAGMA error: ")
"""Beginnings of messages about a GPU. If no pattern is in one, the process is of no use afterwards; the next may be."""


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], ErrorPattern], ...]:
    begins = "|".join(map(re.escape, CUDA_BEGINS))
    cuda = ((rf"(?:{begins}){re.escape(pattern.text)}(?!\w)", pattern) for pattern in CUDA_PATTERNS)
    others = ((rf"(?<!\w){re.escape(pattern.text)}(?!\w)", pattern) for pattern in LIBRARY_PATTERNS)
    return tuple((re.compile(regex), pattern) for regex, pattern in (*cuda, *others))


def find_pattern(message: str) -> ErrorPattern | None:
    """Return what a message says of the GPU, or of the machine's memory; None: nothing."""
    found = next((pattern for regex, pattern in _patterns() if regex.search(message)), None)
    begins = next((begin for begin in OTHERS if begin in message), None)
    return found or (ErrorPattern(begins, "process") if begins else None)


def gpu_fault(error: BaseException) -> str | None:
    """Say why no trial can use the GPU of this error any more, and the remedy; None: the error does not say so."""
    text = error_message(error)
    pattern = find_pattern(text)
    if pattern is None or pattern.meaning != "device":
        return None
    return f"{text.strip().splitlines()[0][:200]}. Remedy: {pattern.advice}"
