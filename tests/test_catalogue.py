"""Modules found by name."""

import subprocess
import sys
from pathlib import Path

from study import catalogue


def test_only_modules_with_the_attribute_are_found() -> None:
    found = catalogue.find_modules("study.data.sets", "Options")
    assert "biased_digits" in found
    assert "dataset" not in found
    assert found["biased_digits"].__name__ == "study.data.sets.biased_digits"
    assert list(found) == sorted(found)


def test_a_new_file_is_found_without_being_listed(tmp_path: Path) -> None:
    package = tmp_path / "things"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "second.py").write_text("Options = 2\n")
    (package / "first.py").write_text("Options = 1\n")
    (package / "helper.py").write_text("other = 1\n")
    code = (
        "from study.catalogue import find_modules; "
        "print({n: m.Options for n, m in find_modules('things', 'Options').items()})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[1]}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "{'first': 1, 'second': 2}"
