"""Who installs the wheel gets no Ray and no MLflow that this package was never tried with."""

import tomllib
from importlib.metadata import version

import pytest
from helpers import ROOT
from packaging.requirements import Requirement
from packaging.version import Version


@pytest.mark.parametrize("library", ["ray", "mlflow"])
def test_a_library_ends_below_the_minor_version_after_the_one_that_is_tried_here(library: str) -> None:
    """How a bound is raised is said in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (wanted,) = (one for one in map(Requirement, project["dependencies"]) if one.name == library)
    (bound,) = (Version(one.version) for one in wanted.specifier if one.operator == "<")
    tried = Version(version(library))
    assert tried in wanted.specifier
    assert bound == Version(f"{tried.major}.{tried.minor + 1}"), f"{library} {tried} is tried here"
