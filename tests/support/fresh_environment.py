"""A virtual environment that has some of the distributions that are installed here, and nothing else."""

import sys
import venv
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement


def environment(place: Path, names: Iterable[str]) -> Path:
    """Make one with these distributions and all that they require, and return its Python.

    Their files are linked, not installed again: nothing is downloaded, and versions are those of the tests.
    """
    venv.EnvBuilder(symlinks=True).create(place)
    packages = place / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    for found in _closure(names):
        for name in {file.parts[0] for file in found.files or () if ".." not in file.parts}:
            link, target = packages / name, Path(str(found.locate_file(name)))
            if not link.exists() and name != "__pycache__":
                link.symlink_to(target)
    return place / "bin" / "python"


def _closure(names: Iterable[str]) -> list[Distribution]:
    waiting, found = [Requirement(name) for name in names], dict[str, Distribution]()
    while waiting:
        requirement = waiting.pop()
        key = requirement.name.lower().replace("_", "-")
        if key in found:
            continue
        try:
            found[key] = distribution(requirement.name)
        except PackageNotFoundError:  # of another platform
            continue
        needs = (Requirement(line) for line in found[key].requires or ())
        waiting += [need for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    return list(found.values())
