"""The GPUs: those that the driver knows, those that torch can use, those that Ray places trials on."""

import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from study.doctor.finding import Finding
from study.home.provenance import output

TORCH = "a torch built for CUDA: https://pytorch.org/get-started/locally/"


@dataclass(frozen=True)
class Observed:
    """What driver, torch and Ray say.

    Attributes:
        driver: name, driver version and memory of each GPU that the NVIDIA driver knows.
        supports: the newest CUDA version that the driver supports, as `12.4`; None if it does not say.
        built: the CUDA (or ROCm) version that torch was built for, None for the CPU alone.
        torch: name of each GPU that torch can use.
        foreign: names of those among them that torch has no code for.
        why: torch's reason for using none, empty if it gives none.
        ray: how many GPUs Ray would place trials on.
        hidden: the variable that hides GPUs from processes, with its value, None if none does.
    """

    driver: tuple[str, ...] = ()
    supports: str | None = None
    built: str | None = None
    torch: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    why: str = ""
    ray: int = 0
    hidden: str | None = None


def gpus() -> Iterator[Finding]:
    """Ask driver, torch and Ray, and compare."""
    yield from findings(observe())


def findings(observed: Observed) -> Iterator[Finding]:
    """The findings that follow from the observation."""
    cards = "; ".join(observed.driver)
    if observed.foreign:
        names = ", ".join(observed.foreign)
        yield Finding("GPUs", "problem", f"this torch (CUDA {observed.built}) has no code for {names}", TORCH)
    elif observed.torch:
        yield Finding("GPUs", "ok", f"torch sees {len(observed.torch)}: {'; '.join(observed.driver or observed.torch)}")
    elif not observed.driver:
        yield Finding("GPUs", "ok", "no driver knows one; trials run on the CPU")
    elif observed.hidden:
        yield Finding("GPUs", "warning", f"{cards}, hidden from torch: {observed.hidden}", "unset that variable")
    elif observed.built is None:
        yield Finding("GPUs", "warning", f"{cards}, which torch cannot use: it was built for the CPU alone", TORCH)
    elif observed.supports and _number(observed.built) > _number(observed.supports):
        message = f"{cards}; its driver supports CUDA up to {observed.supports}, torch was built for {observed.built}"
        yield Finding(
            "GPUs", "problem", message, f"a newer driver, or one built for CUDA {observed.supports} of {TORCH}"
        )
    else:
        message = f"{cards}, which torch (CUDA {observed.built}) cannot use: {observed.why or 'it gives no reason'}"
        yield Finding(
            "GPUs", "problem", message, "check that nvidia-smi works; in a container, that it was given the GPUs"
        )
    if observed.ray != len(observed.torch):
        message = f"Ray would place trials on {observed.ray} GPUs, torch sees {len(observed.torch)}"
        yield Finding("GPUs of Ray", "warning", message, "until they agree, only resources.gpu: 0 works")


def observe() -> Observed:
    """What driver, torch and Ray say on this machine."""
    import torch

    from study.upstream import ray_internals

    driver_lines = output("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader") or ""
    cuda_version = re.search(r"CUDA (?:UMD )?Version: *(\d+\.\d+)", output("nvidia-smi") or "")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        usable, why = torch.cuda.is_available(), ""
    if not usable:
        why = _why() or " ".join(str(warning.message) for warning in caught)
    indices = range(torch.cuda.device_count()) if usable else ()
    return Observed(
        tuple(driver_lines.splitlines()),
        cuda_version[1] if cuda_version else None,
        torch.version.cuda or torch.version.hip,
        tuple(torch.cuda.get_device_name(index) for index in indices),
        tuple(torch.cuda.get_device_name(index) for index in indices if not _has_code(index)),
        why[:300],
        ray_internals.gpus(),
        _hidden(),
    )


def _why() -> str:
    """Torch's error when it is asked to use a GPU that it does not find."""
    import torch

    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as error:
        return " ".join(str(error).split())
    return ""


def _has_code(index: int) -> bool:
    """Whether torch has code for a GPU's architecture: code for an older one of its generation and PTX also run."""
    import torch

    if torch.version.hip:
        return True
    major, minor = torch.cuda.get_device_capability(index)
    matches = [re.fullmatch(r"(sm|compute)_(\d+)(\d)[a-z]?", name) for name in torch.cuda.get_arch_list()]
    built = [(match[1], int(match[2]), int(match[3])) for match in matches if match]
    return any(
        (kind == "sm" and first == major and second <= minor)
        or (kind == "compute" and (first, second) <= (major, minor))
        for kind, first, second in built
    )


def _hidden() -> str | None:
    name = "CUDA_VISIBLE_DEVICES"
    return f"{name}={os.environ[name]}" if os.environ.get(name, "0") in ("", "-1", "NoDevFiles") else None


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
