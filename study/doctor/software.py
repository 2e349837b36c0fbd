"""Python, and the libraries that this package needs."""

import platform
import sys
from collections.abc import Iterator
from importlib import metadata

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from study.doctor.finding import Finding
from study.home.provenance import LIBRARIES

PACKAGE = "contrastive-study"
INSTALL = "uv sync, or pip install --upgrade with the versions of this project's pyproject.toml"


def python() -> Iterator[Finding]:
    """Version, interpreter and platform."""
    message = f"{platform.python_version()} ({sys.executable}) on {platform.platform()}"
    supported = SpecifierSet(_declared("Requires-Python"))
    if supported.contains(platform.python_version(), prereleases=True):
        yield Finding("python", "ok", message)
    else:
        yield Finding(
            "python", "problem", f"{message}; {supported} is needed", "another Python: uv python install 3.12"
        )


def libraries() -> Iterator[Finding]:
    """Versions of the main libraries, and which of all needed libraries are missing or have an unsuitable version."""
    versions = ", ".join(f"{name} {_version(name) or 'missing'}" for name in LIBRARIES)
    problems = [problem for problem in map(_version_problem, _requirements()) if problem]
    if not problems:
        yield Finding("libraries", "ok", versions)
    else:
        yield Finding("libraries", "problem", f"{versions}; {'; '.join(problems)}", INSTALL)


def torch() -> Iterator[Finding]:
    """What torch was built for; `gpus` checks whether that fits the GPUs."""
    try:
        import torch
    except (ImportError, OSError) as error:
        message = f"cannot be imported: {' '.join(str(error).split())[:300]}"
        yield Finding("torch", "problem", message, f"nothing runs without it: {INSTALL}")
        return
    built = f"CUDA {torch.version.cuda}" if torch.version.cuda else f"ROCm {torch.version.hip}"
    is_cpu_only = not torch.version.cuda and not torch.version.hip
    yield Finding("torch", "ok", f"{torch.__version__}, built for {'the CPU alone' if is_cpu_only else built}")


def torchvision() -> Iterator[Finding]:
    """Whether torchvision's own operators work: they fail if it was built for another torch."""
    import torch

    try:
        import torchvision

        torchvision.ops.nms(torch.zeros(0, 4), torch.zeros(0), 0.5)
    except (ImportError, RuntimeError, AttributeError) as error:
        message = f"does not fit this torch: {' '.join(str(error).split())[:200]}"
        yield Finding("torchvision", "problem", message, "install the two together, from one index: " + INSTALL)
        return
    yield Finding("torchvision", "ok", str(torchvision.__version__))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _declared(field: str) -> str:
    """A field of this package's metadata; empty where it runs from a folder without being installed."""
    try:
        return metadata.metadata(PACKAGE)[field] or ""
    except (metadata.PackageNotFoundError, KeyError):
        return ""


def _requirements() -> list[Requirement]:
    """The libraries that this package needs, without its extras."""
    try:
        declared = metadata.requires(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return [Requirement(name) for name in LIBRARIES]
    requirements = [Requirement(text) for text in declared]
    return [
        requirement
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    ]


def _version_problem(requirement: Requirement) -> str | None:
    """What is wrong with an installed library's version, None if nothing is."""
    installed = _version(requirement.name)
    if installed is None:
        return f"{requirement.name} is not installed"
    if not requirement.specifier.contains(installed, prereleases=True):
        return f"{requirement.name} {installed} is installed, {requirement.specifier} is needed"
    return None
