"""The package as a whole: what imports what, what a wheel holds, what each command costs to look at."""

import ast
import os
import subprocess
import sys
import zipfile
from collections import defaultdict
from pathlib import Path

import pytest
from helpers import ROOT

ALLOWED = {
    "errors": set(),
    "knobs": set(),
    "catalogue": {"errors"},
    "losses": {"knobs"},
    "data": {"catalogue", "errors", "knobs"},
    "models": {"catalogue", "data", "errors", "knobs"},
    "methods": {"catalogue", "data", "errors", "knobs", "losses", "models"},
    "training": {"catalogue", "data", "errors", "knobs", "methods", "models"},
    "objective": set(),
    "digest": set(),
    "spec": {"data", "digest", "errors", "knobs", "methods", "models", "objective", "training"},
    "epochs": set(),
    "logs": set(),
    "lease": set(),
    "ledger": {"errors", "lease"},
    "record": {"epochs", "errors", "ledger"},
    "ranking": {"objective", "record", "spec"},
    "home_format": {"errors"},
    "home": {"errors", "home_format", "ledger", "spec"},
    "provenance": {"catalogue"},
    "published": {"errors"},
    "address": {"errors"},
    "cluster": {"address", "errors", "home", "logs", "spec", "status"},
    "sweep": {
        "address",
        "data",
        "errors",
        "home",
        "ledger",
        "logs",
        "objective",
        "provenance",
        "ranking",
        "record",
        "spec",
        "training",
    },
    "summary": {"ranking", "record", "spec"},
    "trained": {"data", "digest", "errors", "home", "ledger", "methods", "ranking", "record", "spec", "training"},
    "tracking": {"address", "errors", "home", "ledger", "logs", "ranking", "record", "spec", "summary", "trained"},
    "analysis": {"data", "errors", "home", "objective", "ranking", "record", "spec", "summary", "training"},
}
"""Which part may import which: the way of the data goes one way. Parts above these, as `run` and `cli`, may use all."""

LIBRARIES = {
    "ray": {"address", "cluster", "sweep"},
    "mlflow": {"tracking"},
    "optuna": {"analysis", "sweep"},
    "matplotlib": {"analysis"},
    "plotly": {"analysis"},
}
"""The only parts that import each of these."""


def imports() -> dict[str, set[str]]:
    """Each part of the package (a module or folder of `study/`) and the modules that it imports."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in (ROOT / "study").rglob("*.py"):
        part = path.relative_to(ROOT / "study").parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found[part] |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = {f"study.{alias.name}" for alias in node.names} if node.module == "study" else {node.module}
                found[part] |= names
    return found


@pytest.mark.parametrize("part", ALLOWED)
def test_the_way_of_the_data_goes_one_way(part: str) -> None:
    parts = {name.split(".")[1] for name in imports()[part] if name.startswith("study.")} - {"__version__"}
    assert parts - {part} <= ALLOWED[part]


@pytest.mark.parametrize("library", LIBRARIES)
def test_each_library_is_imported_in_one_place(library: str) -> None:
    parts = {part for part, names in imports().items() if any(name.split(".")[0] == library for name in names)}
    assert parts == LIBRARIES[library]


def test_help_and_version_import_nothing_heavy() -> None:
    code = (
        "import sys, study.cli\n"
        "try: study.cli.app(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'torch', 'ray', 'mlflow', 'optuna', 'pandas', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_wheel_finds_its_study_files(tmp_path: Path) -> None:
    """The built wheel, unpacked far from the checkout, knows quickstart by name."""
    code = "import hatchling.build, sys; print(hatchling.build.build_wheel(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    site = tmp_path / "site"
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(site)
    assert (site / "study" / "search_spaces" / "quickstart.yaml").is_file()
    assert (site / "study" / "search_spaces" / "study.schema.json").is_file()
    assert (site / "study" / "analysis" / "templates" / "report.html.j2").is_file()
    assert (site / "study" / "published" / "fairkl-table12.yaml").is_file()
    metadata = next(site.glob("*.dist-info"))
    assert "License-Expression: Apache-2.0" in (metadata / "METADATA").read_text(encoding="utf-8")
    assert "Apache License" in (metadata / "licenses" / "study" / "LICENSE").read_text(encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import study; print(study.__file__); from study.cli import main; main()",
            "plan",
            "quickstart",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(site))
    assert "1 baseline + 23 searched" in done.stdout
