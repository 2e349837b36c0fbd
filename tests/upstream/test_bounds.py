"""Who installs the wheel gets no Ray and no MLflow that this package was never tried with."""

import tomllib
from importlib.metadata import version

import pytest
from helpers import ROOT
from packaging.requirements import Requirement
from packaging.version import Version


@pytest.mark.parametrize("library", ["ray", "mlflow"])
def test_a_library_ends_below_the_next_major_version(library: str) -> None:
    """Where the lowest versions are tried, these are the lowest that are allowed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (wanted,) = (one for one in map(Requirement, project["dependencies"]) if one.name == library)
    (bound,) = (Version(one.version) for one in wanted.specifier if one.operator == "<")
    (lowest,) = (Version(one.version) for one in wanted.specifier if one.operator == ">=")
    tried = Version(version(library))
    assert tried in wanted.specifier
    assert bound == Version(f"{tried.major + 1}") or tried.release[:2] == lowest.release[:2], (
        f"{library} {tried} is tried here"
    )
