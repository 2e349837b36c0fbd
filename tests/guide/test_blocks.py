"""Code blocks of the README and the guide: study files load, Python runs, names that sentences use are there."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers import ROOT, Told, quickstart, write_ledger
from pages import GUIDE, Block, blocks

from study.home.folder import Home
from study.spec import load_study
from study.spec.suite import load_suite
from study.spec.yaml_document import shipped_studies_folder

ADDING = GUIDE / "adding-things.md"
YAML, PYTHON, TOML = blocks("yaml"), blocks("python"), blocks("toml")


def test_the_whole_study_file_is_the_shipped_quickstart(tmp_path: Path) -> None:
    (block,) = (block for block in YAML if not block.kind)
    (tmp_path / "shown.yaml").write_text(block.text)
    assert load_study(str(tmp_path / "shown.yaml")).to_document() == load_study("quickstart").to_document()


def laid_over(document: Mapping[str, Any], fragment: Mapping[str, Any]) -> dict[str, Any]:
    """A study file whose sections have the fragment's keys in place of their own."""
    return {**document, **{section: {**document.get(section, {}), **keys} for section, keys in fragment.items()}}


FRAGMENTS = [block for block in YAML if block.kind.startswith("fragment of ")]


@pytest.mark.parametrize("block", FRAGMENTS, ids=[block.name for block in FRAGMENTS])
def test_a_fragment_goes_with_the_study_file_that_it_names(block: Block, tmp_path: Path) -> None:
    name, fragment = block.kind.removeprefix("fragment of "), yaml.safe_load(block.text)
    whole = laid_over(yaml.safe_load((shipped_studies_folder() / f"{name}.yaml").read_text(encoding="utf-8")), fragment)
    (tmp_path / "laid-over.yaml").write_text(yaml.safe_dump(whole))
    spec = load_study(str(tmp_path / "laid-over.yaml"))
    assert spec.to_document() != load_study(name).to_document()


def test_every_yaml_block_is_a_study_file_or_says_what_it_is_part_of() -> None:
    kinds = [block.kind for block in YAML if block not in FRAGMENTS]
    assert sorted(kinds) == ["", "own function", "suite", "with the modules of this page"]


def test_the_study_file_of_a_function_of_ones_own_loads(tmp_path: Path) -> None:
    (block,) = (block for block in YAML if block.kind == "own function")
    (tmp_path / "own.yaml").write_text(block.text)
    assert load_study(str(tmp_path / "own.yaml")).training_function == "my_module:train"


def test_the_suite_loads(tmp_path: Path) -> None:
    (block,) = (block for block in YAML if block.kind == "suite")
    (tmp_path / "mine.yaml").write_text(block.text)
    suite = load_suite(str(tmp_path / "mine.yaml"))
    assert len(suite.searches) == 2 * 2 * 3


@pytest.mark.slow
def test_the_modules_of_the_page_on_adding_things_run(tmp_path: Path) -> None:
    """In a copy of the package, each in the file that its first line names, with the study file of the same page."""
    for folder in ("study", "search_spaces"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    modules = blocks("python", ADDING)
    for block in modules:
        place = re.match(r"# (study/\S+\.py); ", block.text)
        assert place
        assert not (tmp_path / place[1]).exists()
        (tmp_path / place[1]).write_text(block.text, encoding="utf-8")
    assert len(modules) == 2
    (study,) = (block for block in YAML if block.page == ADDING)
    (tmp_path / "own.yaml").write_text(study.text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "study", "trial", "own.yaml"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "val/worst_group_accuracy" in done.stdout


def test_the_tables_of_the_page_on_reports_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STUDY_HOME", str(tmp_path))
    folder = Home.locate().create_study(
        quickstart("name=mine", "search.sampler=random", "search.early_stopping.name=none")
    )
    folder.ledger_file.unlink(missing_ok=True)
    params = [{"method.alpha": 0.01 * n, "method.lambda": 1.0, "method.epsilon": 0.1} for n in range(1, 6)]
    worst = {"val/worst_class_accuracy": 0.1}
    trials = (Told("search", [0.5, 0.1 * n], params=p, further=worst) for n, p in enumerate(params, 5))
    write_ledger(folder.ledger_file, *trials)
    monkeypatch.chdir(tmp_path)
    for block in PYTHON:
        if block.page.name == "reports.md":
            exec(compile(block.text, str(block.page), "exec"), {})
    assert "±" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_page_on_python_runs_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in PYTHON:
        if block.page.name == "python.md":
            exec(compile(block.text, str(block.page), "exec"), names)
    assert "study mine" in capsys.readouterr().out
    assert (tmp_path / "curves.png").is_file()
    assert names["views"].grad is not None
    assert names["own"].state == "complete"
    assert names["own"].best.metrics["test/accuracy"].count == 3


def test_every_python_block_is_run_by_a_test() -> None:
    pages = {"adding-things.md", "python.md", "reports.md", "walk-through.md"}
    pages.add("walk-through-table.md")
    assert {block.page.name for block in PYTHON} == pages


def test_toml_is_toml() -> None:
    assert all(tomllib.loads(block.text)["project"]["entry-points"] for block in TOML)


MESSAGES = re.findall(r"^\| `([^`]+)` \|", (GUIDE / "recovery.md").read_text(encoding="utf-8"), re.MULTILINE)


def test_the_messages_of_the_page_on_trouble_are_messages() -> None:
    """All their parts but those where a name goes stand in the code."""
    assert len(MESSAGES) >= 6
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "study").rglob("*.py"))
    joined = re.sub(r'"\s*f?"', "", source)
    parts = [part for message in MESSAGES for part in re.split(r"\.\.\.|\. |NAME|FILE|[:`]", message)]
    assert [part for part in parts if part.strip() not in joined] == []
