"""Messages of CUDA, its libraries and PyTorch about a GPU, and what each message means for the trial that met it.

The texts are those of PyTorch 2.15 and of the CUDA 13 libraries in its wheels: those of `cudaGetErrorString`, the names
of the states of cuBLAS, cuDNN, cuSOLVER and cuFFT, and what `torch.cuda` says where it cannot start.
"""

import re
from functools import cache
from typing import Literal, NamedTuple

from study.errors import said

TORCH = "a torch built for CUDA: https://pytorch.org/get-started/locally/"

OLDER = "a torch built for an older CUDA: https://pytorch.org/get-started/locally/"

Meaning = Literal["memory", "host memory", "code", "device", "process"]
"""`memory`: of the GPU, which may suffice for the trial alone; `host memory`: of the machine; `code`: happens again in
every run; `device`: no trial on this node can use the GPU any more; `process`: this process cannot use it any more, the
next one can.
"""


class Sign(NamedTuple):
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

CUDA: tuple[Sign, ...] = (
    Sign("out of memory", "memory"),
    Sign("insufficient resources", "memory"),  # as cuSPARSE says it
    Sign("device-side assert triggered", "code", _LABEL),
    Sign("invalid argument", "code"),
    Sign("invalid configuration argument", "code"),
    Sign("too many resources requested for launch", "code"),
    Sign("uncorrectable ECC error encountered", "device", _LOST),
    Sign("uncorrectable NVLink error detected during the execution", "device", _LOST),
    Sign("Invalid access of peer GPU memory over nvlink or a hardware error", "device", _LOST),
    Sign("unknown error", "device", _LOST),
    Sign("CUDA-capable device(s) is/are busy or unavailable", "device", _BUSY),
    Sign("exclusive-thread device already in use by a different thread", "device", _BUSY),
    Sign("system not yet initialized", "device", _FABRIC),
    Sign("initialization error", "device", _NO_CARD),
    Sign("no CUDA-capable device is detected", "device", _NO_CARD),
    Sign("invalid device ordinal", "device", _NO_CARD),
    Sign("no kernel image is available for execution on the device", "device", _OLD_CARD),
    Sign("invalid device function", "device", _OLD_CARD),
    Sign("the provided PTX was compiled with an unsupported toolchain", "device", _DRIVER),
    Sign("CUDA driver version is insufficient for CUDA runtime version", "device", _DRIVER),
    Sign("system has unsupported display driver / cuda driver combination", "device", _DRIVER),
    Sign("MPS client failed to connect to the MPS control daemon or the MPS server", "device", _MPS),
    Sign("the remote procedural call between the MPS server and the MPS client failed", "device", _MPS),
    Sign("the hardware resources required to create MPS client have been exhausted", "device", _MPS),
    Sign("the hardware resources required to support device connections have been exhausted", "device", _MPS),
)
"""Messages of CUDA itself, after `CUDA error: ` or another of `CUDA_BEGINS`. What is not listed has cost the process
its
GPU: an illegal address, a launch that failed or took too long. A lost card (Xid 79) shows as `unknown error` or the
like to the process that used it, and as `no CUDA-capable device is detected` to the next.
"""

LIBRARIES: tuple[Sign, ...] = (
    Sign("CUDA out of memory", "memory"),
    Sign("CUDA ran out of memory outside PyTorch's allocator", "memory"),
    Sign("CUBLAS_STATUS_ALLOC_FAILED", "memory"),
    Sign("CUBLAS_STATUS_NOT_INITIALIZED", "memory"),  # cublasCreate says so where it finds no room
    Sign("CUDNN_STATUS_ALLOC_FAILED", "memory"),
    Sign("CUDNN_STATUS_NOT_INITIALIZED", "memory"),  # likewise cudnnCreate
    Sign("CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", "memory"),
    Sign("CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED", "host memory"),
    Sign("was unable to find an engine to execute this computation", "memory"),  # none that was tried had room
    Sign("CUSOLVER_STATUS_ALLOC_FAILED", "memory"),
    Sign("CUSOLVER_STATUS_NOT_INITIALIZED", "memory"),
    Sign("CUSOLVER_STATUS_INTERNAL_ERROR, when calling `cusolverDnCreate(handle)`", "memory"),
    Sign("CUFFT_ALLOC_FAILED", "memory"),
    Sign("CUFFT_NO_WORKSPACE", "memory"),
    Sign("cannot allocate memory on GPU device", "memory"),  # as MAGMA says it
    Sign("DefaultCPUAllocator: can't allocate memory", "host memory"),
    Sign("DefaultCPUAllocator: not enough memory", "host memory"),
    Sign("CUBLAS_STATUS_INVALID_VALUE", "code"),
    Sign("CUBLAS_STATUS_NOT_SUPPORTED", "code"),
    Sign("CUDNN_STATUS_BAD_PARAM", "code"),
    Sign("CUDNN_STATUS_NOT_SUPPORTED", "code"),
    Sign("CUSOLVER_STATUS_INVALID_VALUE", "code"),
    Sign("CUBLAS_STATUS_ARCH_MISMATCH", "device", _OLD_CARD),
    Sign("CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH", "device", _OLD_CARD),
    Sign("CUSOLVER_STATUS_ARCH_MISMATCH", "device", _OLD_CARD),
    Sign("CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER", "device", _DRIVER),
    Sign("Found no NVIDIA driver on your system", "device", _NO_CARD),
    Sign("The NVIDIA driver on your system is too old", "device", _DRIVER),
    Sign("No CUDA GPUs are available", "device", _NO_CARD),
    Sign("Error 2: out of memory", "memory"),  # what cudaGetDeviceCount meets where a card is full
    Sign("Unexpected error from cudaGetDeviceCount()", "device", _NO_CARD),
    Sign("Torch not compiled with CUDA enabled", "device", "a PyTorch with CUDA has to be installed there"),
    Sign("GPU is lost", "device", _LOST),
    Sign("fallen off the bus", "device", _LOST),
    Sign("NVRM: Xid", "device", _LOST),
)
"""Texts anywhere in a message. cuDNN has many names that begin alike."""

CUDA_BEGINS = ("CUDA error: ", "CUDA driver error: ", "Triton Error [CUDA]: ")
OTHERS = (*CUDA_BEGINS, "cuDNN error: ", "cusolver error: ", "cuFFT error: ", "NCCL error", "MAGMA error: ")
"""Beginnings of messages about a GPU. If no sign is in one, the process cannot be used afterwards; the next may be."""


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], Sign], ...]:
    begins = "|".join(map(re.escape, CUDA_BEGINS))
    cuda = ((rf"(?:{begins}){re.escape(sign.text)}(?!\w)", sign) for sign in CUDA)
    others = ((rf"(?<!\w){re.escape(sign.text)}(?!\w)", sign) for sign in LIBRARIES)
    return tuple((re.compile(pattern), sign) for pattern, sign in (*cuda, *others))


def sign_in(message: str) -> Sign | None:
    """Return what a message says of the GPU, or of the machine's memory; None: nothing."""
    found = next((sign for pattern, sign in _patterns() if pattern.search(message)), None)
    begins = next((begin for begin in OTHERS if begin in message), None)
    return found or (Sign(begins, "process") if begins else None)


def fault(error: BaseException) -> str | None:
    """Say why no trial can use the GPU of this error any more, and the remedy; None: the error does not say so."""
    text = said(error)
    sign = sign_in(text)
    if sign is None or sign.meaning != "device":
        return None
    return f"{text.strip().splitlines()[0][:200]}. Remedy: {sign.advice}"
