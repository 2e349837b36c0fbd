"""The package as a whole: what a wheel holds, what each command costs to look at."""

import doctest
import os
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path

import pytest
from helpers import ROOT


def imported_by(code: str) -> set[str]:
    """The large libraries that a program has imported at its end."""
    large = {"torch", "ray", "mlflow", "optuna", "pandas", "pydantic"}
    program = f"import sys\n{code}\nprint(*{large} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.slow
def test_the_package_itself_imports_nothing_heavy() -> None:
    assert imported_by("import study; study.run") >= {"pydantic"}  # what is asked for is there
    assert imported_by("import study; study.UserError, study.__version__") == set()


@pytest.mark.slow
def test_a_loss_needs_pytorch_alone() -> None:
    looked_up = "import study; loss = study.loss('sup_con')"
    assert imported_by(looked_up) == set()
    assert imported_by(f"{looked_up}; import torch; loss(torch.randn(2, 4, 8), target=torch.tensor([0, 0, 1, 1]))") == {
        "torch"
    }


@pytest.mark.slow
def test_the_driver_of_a_training_function_needs_no_pytorch() -> None:
    """It is four tenths of such a driver's memory."""
    code = (
        "import study.sweep.tune_adapters, study.tracking.ledger_to_mlflow, study.analysis.report.write_report\nimport "
        "study.driver.run\nfrom study.api.run_study import build_function_study\ndef train(config): yield {}\ngiven = "
        "{'name': 'mine', 'metric': 'val/f1', 'maximize': True, 'epochs': 1, 'fixed': {}, 'baseline': "
        "None}\nbuild_function_study(train, space={'x': (0.0, 1.0)}, assignments=[], **given)"
    )
    assert "torch" not in imported_by(code)


def test_help_and_version_import_nothing_heavy() -> None:
    assert imported_by("import study.cli\ntry: study.cli.app(['--help'])\nexcept SystemExit: pass") == set()


@pytest.mark.slow
def test_a_wheel_finds_its_study_files_and_has_the_guide(tmp_path: Path) -> None:
    """The built wheel, unpacked far from the checkout, knows quickstart by name."""
    code = "import hatchling.build, sys; print(hatchling.build.build_wheel(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    site = tmp_path / "site"
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(site)
    assert (site / "study" / "search_spaces" / "quickstart.yaml").is_file()
    assert (site / "study" / "search_spaces" / "study.schema.json").is_file()
    assert (site / "study" / "search_spaces" / "suites" / "quickstart_suite.yaml").is_file()
    assert (site / "study" / "analysis" / "report" / "templates" / "report.html.j2").is_file()
    assert (site / "study" / "published" / "fairkl-table12.yaml").is_file()
    assert (site / "study" / "py.typed").is_file()
    pages = {path.name for path in (ROOT / "study" / "guide").iterdir()}
    assert "index.md" in pages
    assert {path.name for path in (site / "study" / "guide").iterdir()} == pages
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
            "--fast",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(site))
    assert "1 baseline + 7 searched" in done.stdout


NEEDS_A_STUDY = ("study.analysis.", "study.api.study_object", "study.api.run_study")


@pytest.mark.parametrize("file", sorted(file for file in (ROOT / "study").rglob("*.py") if ">>>" in file.read_text()))
def test_examples_of_docstrings_work(file: Path) -> None:
    name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
    if not name.startswith(NEEDS_A_STUDY):
        assert doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS).failed == 0
