"""Python, and the libraries that this package stands on."""

import platform
import sys
from collections.abc import Iterator
from importlib import metadata

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from study.doctor.finding import Finding
from study.home.provenance import LIBRARIES

PACKAGE = "contrastive-study"
INSTALL = "uv sync, or pip install --upgrade with what this project's pyproject.toml says"


def python() -> Iterator[Finding]:
    """Version, interpreter and platform."""
    told = f"{platform.python_version()} ({sys.executable}) on {platform.platform()}"
    wanted = SpecifierSet(_declared("Requires-Python"))
    if wanted.contains(platform.python_version(), prereleases=True):
        yield Finding("python", "ok", told)
    else:
        yield Finding("python", "problem", f"{told}; {wanted} is needed", "another Python: uv python install 3.12")


def libraries() -> Iterator[Finding]:
    """Versions of the main libraries, and each of which another version is needed."""
    shown = ", ".join(f"{name} {_version(name) or 'missing'}" for name in LIBRARIES)
    unfit = [told for told in map(_unfit, _requirements()) if told]
    if not unfit:
        yield Finding("libraries", "ok", shown)
    else:
        yield Finding("libraries", "problem", f"{shown}; {'; '.join(unfit)}", INSTALL)


def torch() -> Iterator[Finding]:
    """What torch was built for; whether that fits the GPU is another finding."""
    try:
        import torch
    except (ImportError, OSError) as error:
        told = f"cannot be imported: {' '.join(str(error).split())[:300]}"
        yield Finding("torch", "problem", told, f"nothing runs without it: {INSTALL}")
        return
    built = f"CUDA {torch.version.cuda}" if torch.version.cuda else f"ROCm {torch.version.hip}"
    nothing = not torch.version.cuda and not torch.version.hip
    yield Finding("torch", "ok", f"{torch.__version__}, built for {'the CPU alone' if nothing else built}")


def torchvision() -> Iterator[Finding]:
    """Whether torchvision's own operators work: they do not where it was built for another torch."""
    import torch

    try:
        import torchvision

        torchvision.ops.nms(torch.zeros(0, 4), torch.zeros(0), 0.5)
    except (ImportError, RuntimeError, AttributeError) as error:
        told = f"does not fit this torch: {' '.join(str(error).split())[:200]}"
        yield Finding("torchvision", "problem", told, "install the two together, from one index: " + INSTALL)
        return
    yield Finding("torchvision", "ok", str(torchvision.__version__))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _declared(field: str) -> str:
    """A field of this package's metadata; nothing where it was not installed but lies about."""
    try:
        return metadata.metadata(PACKAGE)[field] or ""
    except (metadata.PackageNotFoundError, KeyError):
        return ""


def _requirements() -> list[Requirement]:
    """What this package needs without its extras."""
    try:
        given = metadata.requires(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return [Requirement(name) for name in LIBRARIES]
    found = [Requirement(text) for text in given]
    return [one for one in found if one.marker is None or one.marker.evaluate({"extra": ""})]


def _unfit(wanted: Requirement) -> str | None:
    """What is wrong with an installed library, None if nothing is."""
    there = _version(wanted.name)
    if there is None:
        return f"{wanted.name} is not installed"
    if not wanted.specifier.contains(there, prereleases=True):
        return f"{wanted.name} {there} is installed, {wanted.specifier} is needed"
    return None
