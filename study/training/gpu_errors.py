"""Messages of CUDA, its libraries and PyTorch about a GPU, and what each message means for the trial that met it.

The texts are those of PyTorch 2.15 and of the CUDA 13 libraries in its wheels: those of `cudaGetErrorString`, the names
of the states of cuBLAS, cuDNN, cuSOLVER and cuFFT, and what `torch.cuda` says where it cannot start.
"""

import re
from functools import cache
from typing import Literal, NamedTuple

from study.errors import UserError, error_message

CUDA_TORCH_ADVICE = "a torch built for CUDA: https://pytorch.org/get-started/locally/"

OLDER_CUDA_TORCH_ADVICE = "a torch built for an older CUDA: https://pytorch.org/get-started/locally/"

GpuErrorMeaning = Literal["memory", "host memory", "code", "device", "process"]
"""`memory`: of the GPU, which may suffice for the trial alone; `host memory`: of the machine; `code`: happens again in
every run; `device`: no trial on this node can use the GPU any more; `process`: this process cannot use it any more, the
next one can.
"""


class NoDeviceError(UserError):
    """A GPU cannot be used; the message says why, and the remedy."""


class GpuMemoryFullError(NoDeviceError):
    """Other processes hold a GPU's memory; where trials share it, they may be trials."""


class GpuErrorPattern(NamedTuple):
    """A message, or the part of it by which it is recognised.

    Attributes:
        message_part: in the message, as a whole word where it ends in one.
        advice: what to do, for the user.
    """

    message_part: str
    meaning: GpuErrorMeaning
    advice: str = ""


_LABEL_OUT_OF_RANGE_ADVICE = (
    "an index is out of range, most often a label of a class that the network does not have; CUDA_LAUNCH_BLOCKING=1 in "
    "the environment has the traceback name the line, `study trial FILE` runs the trial in this process"
)
_LOST_CARD_ADVICE = "look for Xid in `dmesg` there, reset the card (`nvidia-smi --gpu-reset`) or restart the machine"
_EXCLUSIVE_CARD_ADVICE = (
    "another process holds the card for itself: `nvidia-smi` names it, `nvidia-smi -c 0` lets processes share it"
)
_DRIVER_ADVICE = "it needs a newer driver, or this PyTorch an older CUDA; `study doctor` there says which"
_FABRIC_MANAGER_ADVICE = "start the fabric manager there: `systemctl start nvidia-fabricmanager`"
_NO_CARD_ADVICE = "`nvidia-smi` and `study doctor` there say why no card is seen"
_MPS_ADVICE = "restart the MPS daemon there: `echo quit | nvidia-cuda-mps-control`, then `nvidia-cuda-mps-control -d`"
_OLD_CARD_ADVICE = "this PyTorch has no code for its card; `study doctor` there says which cards it serves"

CUDA_ERROR_PATTERNS: tuple[GpuErrorPattern, ...] = (
    GpuErrorPattern("out of memory", "memory"),
    GpuErrorPattern("insufficient resources", "memory"),  # as cuSPARSE says it
    GpuErrorPattern("device-side assert triggered", "code", _LABEL_OUT_OF_RANGE_ADVICE),
    GpuErrorPattern("invalid argument", "code"),
    GpuErrorPattern("invalid configuration argument", "code"),
    GpuErrorPattern("too many resources requested for launch", "code"),
    GpuErrorPattern("uncorrectable ECC error encountered", "device", _LOST_CARD_ADVICE),
    GpuErrorPattern("uncorrectable NVLink error detected during the execution", "device", _LOST_CARD_ADVICE),
    GpuErrorPattern("Invalid access of peer GPU memory over nvlink or a hardware error", "device", _LOST_CARD_ADVICE),
    GpuErrorPattern("unknown error", "device", _LOST_CARD_ADVICE),
    GpuErrorPattern("CUDA-capable device(s) is/are busy or unavailable", "device", _EXCLUSIVE_CARD_ADVICE),
    GpuErrorPattern("exclusive-thread device already in use by a different thread", "device", _EXCLUSIVE_CARD_ADVICE),
    GpuErrorPattern("system not yet initialized", "device", _FABRIC_MANAGER_ADVICE),
    GpuErrorPattern("initialization error", "device", _NO_CARD_ADVICE),
    GpuErrorPattern("no CUDA-capable device is detected", "device", _NO_CARD_ADVICE),
    GpuErrorPattern("invalid device ordinal", "device", _NO_CARD_ADVICE),
    GpuErrorPattern("no kernel image is available for execution on the device", "device", _OLD_CARD_ADVICE),
    GpuErrorPattern("invalid device function", "device", _OLD_CARD_ADVICE),
    GpuErrorPattern("the provided PTX was compiled with an unsupported toolchain", "device", _DRIVER_ADVICE),
    GpuErrorPattern("CUDA driver version is insufficient for CUDA runtime version", "device", _DRIVER_ADVICE),
    GpuErrorPattern("system has unsupported display driver / cuda driver combination", "device", _DRIVER_ADVICE),
    GpuErrorPattern("MPS client failed to connect to the MPS control daemon or the MPS server", "device", _MPS_ADVICE),
    GpuErrorPattern(
        "the remote procedural call between the MPS server and the MPS client failed", "device", _MPS_ADVICE
    ),
    GpuErrorPattern("the hardware resources required to create MPS client have been exhausted", "device", _MPS_ADVICE),
    GpuErrorPattern(
        "the hardware resources required to support device connections have been exhausted", "device", _MPS_ADVICE
    ),
)
"""Messages of CUDA itself, after `CUDA error: ` or another of `CUDA_MESSAGE_PREFIXES`. What is not listed has cost the
process its GPU: an illegal address, a launch that failed or took too long. A lost card (Xid 79) shows as `unknown
error` or the like to the process that used it, and as `no CUDA-capable device is detected` to the next.
"""

LIBRARY_ERROR_PATTERNS: tuple[GpuErrorPattern, ...] = (
    GpuErrorPattern("CUDA out of memory", "memory"),
    GpuErrorPattern("CUDA ran out of memory outside PyTorch's allocator", "memory"),
    GpuErrorPattern("CUBLAS_STATUS_ALLOC_FAILED", "memory"),
    GpuErrorPattern("CUBLAS_STATUS_NOT_INITIALIZED", "memory"),  # cublasCreate says so where it finds no room
    GpuErrorPattern("CUDNN_STATUS_ALLOC_FAILED", "memory"),
    GpuErrorPattern("CUDNN_STATUS_NOT_INITIALIZED", "memory"),  # likewise cudnnCreate
    GpuErrorPattern("CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", "memory"),
    GpuErrorPattern("CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED", "host memory"),
    # none that was tried had room
    GpuErrorPattern("was unable to find an engine to execute this computation", "memory"),
    GpuErrorPattern("CUSOLVER_STATUS_ALLOC_FAILED", "memory"),
    GpuErrorPattern("CUSOLVER_STATUS_NOT_INITIALIZED", "memory"),
    GpuErrorPattern("CUSOLVER_STATUS_INTERNAL_ERROR, when calling `cusolverDnCreate(handle)`", "memory"),
    GpuErrorPattern("CUFFT_ALLOC_FAILED", "memory"),
    GpuErrorPattern("CUFFT_NO_WORKSPACE", "memory"),
    GpuErrorPattern("cannot allocate memory on GPU device", "memory"),  # as MAGMA says it
    GpuErrorPattern("DefaultCPUAllocator: can't allocate memory", "host memory"),
    GpuErrorPattern("DefaultCPUAllocator: not enough memory", "host memory"),
    GpuErrorPattern("CUBLAS_STATUS_INVALID_VALUE", "code"),
    GpuErrorPattern("CUBLAS_STATUS_NOT_SUPPORTED", "code"),
    GpuErrorPattern("CUDNN_STATUS_BAD_PARAM", "code"),
    GpuErrorPattern("CUDNN_STATUS_NOT_SUPPORTED", "code"),
    GpuErrorPattern("CUSOLVER_STATUS_INVALID_VALUE", "code"),
    GpuErrorPattern("CUBLAS_STATUS_ARCH_MISMATCH", "device", _OLD_CARD_ADVICE),
    GpuErrorPattern("CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH", "device", _OLD_CARD_ADVICE),
    GpuErrorPattern("CUSOLVER_STATUS_ARCH_MISMATCH", "device", _OLD_CARD_ADVICE),
    GpuErrorPattern("CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER", "device", _DRIVER_ADVICE),
    GpuErrorPattern("Found no NVIDIA driver on your system", "device", _NO_CARD_ADVICE),
    GpuErrorPattern("The NVIDIA driver on your system is too old", "device", _DRIVER_ADVICE),
    GpuErrorPattern("No CUDA GPUs are available", "device", _NO_CARD_ADVICE),
    GpuErrorPattern("Error 2: out of memory", "memory"),  # what cudaGetDeviceCount meets where a card is full
    GpuErrorPattern("Unexpected error from cudaGetDeviceCount()", "device", _NO_CARD_ADVICE),
    GpuErrorPattern("Torch not compiled with CUDA enabled", "device", "a PyTorch with CUDA has to be installed there"),
    GpuErrorPattern("GPU is lost", "device", _LOST_CARD_ADVICE),
    GpuErrorPattern("fallen off the bus", "device", _LOST_CARD_ADVICE),
    GpuErrorPattern("NVRM: Xid", "device", _LOST_CARD_ADVICE),
)
"""Texts anywhere in a message. cuDNN has many names that begin alike."""

CUDA_MESSAGE_PREFIXES = ("CUDA error: ", "CUDA driver error: ", "Triton Error [CUDA]: ")
GPU_MESSAGE_PREFIXES = (
    *CUDA_MESSAGE_PREFIXES,
    "cuDNN error: ",
    "cusolver error: ",
    "cuFFT error: ",
    "NCCL error",
    "MAGMA error: ",
)
"""Beginnings of messages about a GPU. If no pattern is in one, the process is of no use afterwards; the next may be."""


@cache
def _compiled_patterns() -> tuple[tuple[re.Pattern[str], GpuErrorPattern], ...]:
    begins = "|".join(map(re.escape, CUDA_MESSAGE_PREFIXES))
    cuda = ((rf"(?:{begins}){re.escape(pattern.message_part)}(?!\w)", pattern) for pattern in CUDA_ERROR_PATTERNS)
    others = ((rf"(?<!\w){re.escape(pattern.message_part)}(?!\w)", pattern) for pattern in LIBRARY_ERROR_PATTERNS)
    return tuple((re.compile(regex), pattern) for regex, pattern in (*cuda, *others))


def find_gpu_error_pattern(message: str) -> GpuErrorPattern | None:
    """Return what a message says of the GPU, or of the machine's memory; None: nothing."""
    found = next((pattern for regex, pattern in _compiled_patterns() if regex.search(message)), None)
    begins = next((begin for begin in GPU_MESSAGE_PREFIXES if begin in message), None)
    return found or (GpuErrorPattern(begins, "process") if begins else None)


def unusable_gpu_reason(error: BaseException) -> str | None:
    """Say why no trial can use the GPU of this error any more, and the remedy; None: the error does not say so."""
    text = error_message(error)
    pattern = find_gpu_error_pattern(text)
    if pattern is None or pattern.meaning != "device":
        return None
    return f"{text.strip().splitlines()[0][:200]}. Remedy: {pattern.advice}"
