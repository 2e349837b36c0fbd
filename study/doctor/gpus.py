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
class Seen:
    """What each of them says.

    Attributes:
        driver: name, driver's version and memory of each GPU that the NVIDIA driver knows.
        supports: the newest CUDA that the driver can serve, as `12.4`; None where it does not say.
        built: the CUDA (or ROCm) that torch was built for, None for the CPU alone.
        torch: name of each GPU that torch can use.
        foreign: names of those among them that torch has no code for.
        why: what torch says about why it can use none, empty if nothing.
        ray: how many Ray would place trials on.
        hidden: the variable that hides GPUs from processes, with its value, None where none does.
    """

    driver: tuple[str, ...] = ()
    supports: str | None = None
    built: str | None = None
    torch: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    why: str = ""
    ray: int = 0
    hidden: str | None = None


def look() -> Iterator[Finding]:
    """Ask all three, and compare."""
    yield from judge(seen())


def judge(seen: Seen) -> Iterator[Finding]:
    """What is to be said of what was seen."""
    known = "; ".join(seen.driver)
    if seen.foreign:
        names = ", ".join(seen.foreign)
        yield Finding("GPUs", "problem", f"this torch (CUDA {seen.built}) has no code for {names}", TORCH)
    elif seen.torch:
        yield Finding("GPUs", "ok", f"torch sees {len(seen.torch)}: {'; '.join(seen.driver or seen.torch)}")
    elif not seen.driver:
        yield Finding("GPUs", "ok", "none that a driver knows; trials run on the CPU")
    elif seen.hidden:
        yield Finding("GPUs", "warning", f"{known}, hidden from torch: {seen.hidden}", "unset that variable")
    elif seen.built is None:
        yield Finding("GPUs", "warning", f"{known}, which torch cannot use: it was built for the CPU alone", TORCH)
    elif seen.supports and _number(seen.built) > _number(seen.supports):
        told = f"{known}; its driver serves CUDA up to {seen.supports}, torch was built for {seen.built}"
        yield Finding("GPUs", "problem", told, f"a newer driver, or one built for CUDA {seen.supports} of {TORCH}")
    else:
        told = f"{known}, which torch (CUDA {seen.built}) cannot use: {seen.why or 'it does not say why'}"
        yield Finding("GPUs", "problem", told, "does nvidia-smi work, and in a container: was it given the GPUs?")
    if seen.ray != len(seen.torch):
        told = f"Ray would place trials on {seen.ray} GPUs, torch sees {len(seen.torch)}"
        yield Finding("GPUs of Ray", "warning", told, "as long as they differ, resources.gpu: 0 is what works")


def seen() -> Seen:
    """What driver, torch and Ray say on this machine."""
    import torch

    from study.upstream.ray_internals import gpus

    listed = output("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader") or ""
    served = re.search(r"CUDA (?:UMD )?Version: *(\d+\.\d+)", output("nvidia-smi") or "")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        usable, why = torch.cuda.is_available(), ""
    if not usable:
        why = _why() or " ".join(str(one.message) for one in told)
    places = range(torch.cuda.device_count()) if usable else ()
    return Seen(
        tuple(listed.splitlines()),
        served[1] if served else None,
        torch.version.cuda or torch.version.hip,
        tuple(torch.cuda.get_device_name(place) for place in places),
        tuple(torch.cuda.get_device_name(place) for place in places if not _has_code(place)),
        why[:300],
        gpus(),
        _hidden(),
    )


def _why() -> str:
    """What torch says when it is made to use a GPU that it does not find."""
    import torch

    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as error:
        return " ".join(str(error).split())
    return ""


def _has_code(place: int) -> bool:
    """Whether torch was built for a GPU's architecture: code for an older one of its generation runs, PTX does, too."""
    import torch

    if torch.version.hip:
        return True
    major, minor = torch.cuda.get_device_capability(place)
    found = [re.fullmatch(r"(sm|compute)_(\d+)(\d)[a-z]?", name) for name in torch.cuda.get_arch_list()]
    built = [(one[1], int(one[2]), int(one[3])) for one in found if one]
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
