"""A simulated CUDA device for tests: dispatcher, autograd, allocator and device checks are real, kernels are not.

Libraries that are built here stand in for the driver, the CUDA runtime, cuBLAS, cuDNN and cuSOLVER by `LD_PRELOAD`.

- Real: which device a tensor is on, `OutOfMemoryError` and peak memory of the caching allocator, waits for the device
  (`torch.cuda.set_sync_debug_mode`), names and counts of launches, `CUDA_VISIBLE_DEVICES`, what may be in a CUDA graph.
- Not real: values (memory holds zeros or what was there), time, cuDNN's choice of algorithm (a workspace is 1 MiB, a
  call of a library is one launch), NCCL, what other processes hold of the same card.

A test gives a script to `run_on_gpu`; within that script `counts` and `recorded` tell what the device was given. In
the environment of `gpu_environment` any command believes in the devices, Ray too.
"""

import ctypes
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

SUPPORT = Path(__file__).parent
ROOT = SUPPORT.parents[1]
SOURCES = ROOT / "tests" / "gpu" / "simulated"
H100_MIB = 81559

COUNTS = (
    "launches",
    "library_calls",
    "waits",
    "to_device",
    "to_host",
    "within_device",
    "allocations",
    "memsets",
    "graph_launches",
    "used",
    "peak",
)
"""What is counted: `used` and `peak` in bytes. A launch of a graph counts in `graph_launches` alone."""


def missing() -> str | None:
    """What stands against a simulated device here."""
    if sys.platform != "linux":
        return "needs Linux"
    if not shutil.which("g++"):
        return "needs g++"
    found = {
        name for folder in _includes() for name in ("cuda.h", "cudnn.h", "cublas_v2.h") if (folder / name).exists()
    }
    if len(found) < 3:
        return "needs a PyTorch for CUDA: its wheels bring the headers"
    return None


@cache
def _includes() -> tuple[Path, ...]:
    """The folders of headers that the wheels of PyTorch for CUDA bring."""
    spec, triton = importlib.util.find_spec("nvidia"), importlib.util.find_spec("triton")
    folders = [
        found for place in (spec and spec.submodule_search_locations) or [] for found in Path(place).glob("*/include")
    ]
    folders += [
        Path(place, "backends", "nvidia", "include") for place in (triton and triton.submodule_search_locations) or []
    ]
    return tuple(folder for folder in sorted(folders) if folder.is_dir())


@cache
def built() -> Path:
    """The folder with `libcuda.so.1` and `old_driver`, built on first use for these sources and this PyTorch.

    Raises:
        CalledProcessError: the sources do not compile.
    """
    digest = hashlib.sha256("".join(map(str, _includes())).encode())
    for source in sorted(SOURCES.rglob("*.*")):
        digest.update(source.read_bytes())
    digest.update((importlib.util.find_spec("torch").origin or "").encode())  # type: ignore[union-attr]
    folder = Path(tempfile.gettempdir()) / f"study-simulated-gpu-{os.getuid()}-{digest.hexdigest()[:16]}"
    if folder.exists():
        if folder.stat().st_uid != os.getuid():
            raise PermissionError(f"{folder}: belongs to somebody else")
        return folder
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        made = Path(temporary) / "made"
        _build(made)
        try:
            made.rename(folder)
        except OSError:  # another process was faster
            if not folder.exists():
                raise
    return folder


def _build(out: Path) -> None:
    (out / "old_driver").mkdir(parents=True)
    includes = [f"-I{folder}" for folder in _includes()]
    shared = ["-O1", "-fPIC", "-shared", "-w"]
    sources = sorted(map(str, SOURCES.glob("*.cpp")))
    jobs = [
        ["g++", "-std=c++17", *shared, "-Wl,-soname,libcuda.so.1", *includes, *sources, "-o", f"{out}/libcuda.so.1"]
    ]
    for name, soname in (("cuda", "libcuda.so.1"), ("nvml", "libnvidia-ml.so.1")):
        source = SOURCES / "old_driver" / f"{name}.c"
        target = out / "old_driver" / soname
        jobs.append(["g++", "-x", "c", *shared, f"-Wl,-soname,{soname}", str(source), "-o", str(target)])
    for job in jobs:
        subprocess.run(job, check=True, text=True, stderr=subprocess.PIPE)


def gpu_environment(gpus: int = 1, mib: int = H100_MIB, **further: str) -> dict[str, str]:
    """The environment in which a process has `gpus` devices of `mib` MiB each.

    Of `further` variables the device knows `SIMULATED_GPU_NAME`, `SIMULATED_GPU_CAPABILITY` ("6.1") and
    `SIMULATED_GPU_ERROR`, the number of the CUDA error that every launch ends with; with `214:FILE` once there is a
    file of that name.
    """
    devices = {"SIMULATED_GPUS": str(gpus), "SIMULATED_GPU_MIB": str(mib)}
    return _environment({"LD_PRELOAD": str(built() / "libcuda.so.1"), **devices, **further})


def old_driver_environment(**further: str) -> dict[str, str]:
    """The environment of a machine with one card whose driver is too old for the wheels of PyTorch."""
    return _environment({"LD_LIBRARY_PATH": str(built() / "old_driver"), **further})


def _environment(changed: Mapping[str, str]) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"}
    return {**kept, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests", SUPPORT))), **changed}


END = """
import os, sys
sys.stdout.flush()
os._exit(0)
"""
"""What ends a script: threads of PyTorch that wait for a device may abort the process while Python clears up."""


def run_on_gpu(script: str, environment: Mapping[str, str] | None = None, timeout: float = 240, **devices: int) -> str:
    """What a Python script prints in a process with simulated devices: see `gpu_environment` for `devices`.

    Raises:
        AssertionError: the script failed; with its standard error.
    """
    done = subprocess.run(
        [sys.executable, "-c", script + END],
        env=dict(environment or gpu_environment(**devices)),
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def counts() -> dict[str, int]:
    """What this process gave to its simulated devices since it began."""
    values = (ctypes.c_long * len(COUNTS))()
    ctypes.CDLL(None).simulated_counts(values)
    return dict(zip(COUNTS, values, strict=True))


def launches() -> int:
    """What this process launched: kernels, calls of libraries, and a graph as one."""
    now = counts()
    return now["launches"] + now["library_calls"] + now["graph_launches"]


def record() -> None:
    """Record from here on the names of what is launched."""
    ctypes.CDLL(None).simulated_record(1)


def recorded() -> dict[str, int]:
    """How often each name was launched since `record`, the most first."""
    device = ctypes.CDLL(None)
    device.simulated_recorded.restype = ctypes.c_size_t
    text = ctypes.create_string_buffer(device.simulated_recorded(None, ctypes.c_size_t(0)))
    device.simulated_recorded(text, ctypes.c_size_t(len(text)))
    lines = (line.split("\t") for line in text.value.decode().splitlines())
    return {name: int(count) for count, name in lines}
