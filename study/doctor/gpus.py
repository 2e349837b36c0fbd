"""The GPUs: those that the driver knows, those that torch can use, those that Ray places trials on."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from study.doctor.finding import Finding
from study.home.provenance import output
from study.training.gpu_errors import OLDER, TORCH


@dataclass(frozen=True)
class Observed:
    """The answers of driver, torch and Ray.

    Attributes:
        driver: name, driver version and memory of each GPU that the NVIDIA driver knows.
        supports: the newest CUDA version that the driver supports, as `12.4`; None if it does not say.
        built: the CUDA (or ROCm) version that torch was built for, None for the CPU alone.
        torch: name of each GPU that torch can use.
        foreign: names of those among them that torch has no code for.
        why: torch's reason for using none and the remedy, empty if it gives none.
        needs: the oldest branch of the driver that torch runs with, as 580; None: not known.
        code: the architectures that torch has code for, as `sm_75`.
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
    needs: int | None = None
    code: tuple[str, ...] = ()


def gpus() -> Iterator[Finding]:
    """Ask driver, torch and Ray, and compare."""
    yield from findings(observe())


def findings(observed: Observed) -> Iterator[Finding]:
    """The findings that follow from the observation."""
    cards = "; ".join(observed.driver)
    if observed.foreign:
        message = f"this torch (CUDA {observed.built}) has no code for {', '.join(observed.foreign)}"
        yield Finding(
            "GPUs", "problem", f"{message}; it has for {', '.join(observed.code)}", f"another card, or {OLDER}"
        )
    elif observed.torch:
        yield Finding("GPUs", "ok", f"torch sees {len(observed.torch)}: {'; '.join(observed.driver or observed.torch)}")
    elif not observed.driver:
        yield Finding("GPUs", "ok", f"no driver knows one; trials run on the CPU{_supported(observed)}")
    elif observed.hidden:
        yield Finding("GPUs", "warning", f"{cards}, hidden from torch: {observed.hidden}", "unset that variable")
    elif observed.built is None:
        yield Finding("GPUs", "warning", f"{cards}, which torch cannot use: it was built for the CPU alone", TORCH)
    elif observed.supports and _number(observed.built) > _number(observed.supports):
        message = f"{cards}; its driver supports CUDA up to {observed.supports}, torch was built for {observed.built}"
        newer = f"a driver of R{observed.needs} or newer" if observed.needs else "a newer driver"
        yield Finding("GPUs", "problem", message, f"{newer}, or one built for CUDA {observed.supports} of {TORCH}")
    else:
        why, _, remedy = observed.why.partition(". Remedy: ")
        message = f"{cards}, which torch (CUDA {observed.built}) cannot use: {why or 'it gives no reason'}"
        usual = "check that nvidia-smi works; in a container, that it was given the GPUs"
        yield Finding("GPUs", "problem", message, remedy or usual)
    if observed.ray != len(observed.torch):
        message = f"Ray would place trials on {observed.ray} GPUs, torch sees {len(observed.torch)}"
        by_hand = f"start its node by hand: ray start --num-gpus={len(observed.torch)}"
        remedy = by_hand if observed.torch else "until they agree, only resources.gpu: 0 works"
        yield Finding("GPUs of Ray", "warning", message, remedy)


def observe() -> Observed:
    """Return what driver, torch and Ray say on this machine."""
    import torch

    from study.training import device
    from study.upstream import ray_internals

    driver_lines = output("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader") or ""
    cuda_version = re.search(r"CUDA (?:UMD )?Version: *(\d+\.\d+)", output("nvidia-smi") or "")
    why = device.unusable() or ""
    usable, cards = not why, driver_lines.splitlines()
    if not cards and (count := torch.cuda.device_count()):  # in a container without nvidia-smi
        cards = [f"{count} with driver {device.driver_version() or 'unknown'}"]
    indices = range(torch.cuda.device_count()) if usable else ()
    return Observed(
        tuple(cards),
        cuda_version[1] if cuda_version else None,
        torch.version.cuda or torch.version.hip,
        tuple(map(device.name, indices)),
        tuple(device.name(index) for index in indices if not device.has_code(index)),
        why,
        ray_internals.gpus(),
        _hidden(),
        device.driver_needed(),
        device.architectures(),
    )


def _supported(observed: Observed) -> str:
    """Return which driver and cards this torch would run with."""
    if not observed.needs or not observed.code:
        return ""
    needs = f"This torch (CUDA {observed.built}) needs a driver of R{observed.needs} or newer"
    return f". {needs} and has code for {', '.join(observed.code)}"


def _hidden() -> str | None:
    name = "CUDA_VISIBLE_DEVICES"
    return f"{name}={os.environ[name]}" if os.environ.get(name, "0") in ("", "-1", "NoDevFiles") else None


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
