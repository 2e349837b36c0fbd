"""The pages that go from a folder or a table to a registered model, run word for word in an empty folder."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from pages import GUIDE, blocks, commands

IMAGES, TABLE = GUIDE / "walk-through.md", GUIDE / "walk-through-table.md"
Run = Callable[..., str]


@pytest.mark.parametrize("page", [IMAGES, TABLE])
def test_every_line_of_its_shell_blocks_is_a_command(page: Path) -> None:
    lines = [line for block in blocks("sh", page) for line in block.text.splitlines()]
    assert len(list(commands(page))) == len(lines) > 8


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a command in an empty folder, and gives what it prints."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for name in ("STUDY_HOME", "MLFLOW_TRACKING_URI"):
        environment.pop(name, None)
    environment["STUDY_DATA"] = str(tmp_path / "data")

    def run(*line: str) -> str:
        done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{shlex.join(line)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


def agree(folder: Path, told: str, column: str) -> None:
    """Files and registry give the same classes, and Python the same for the first two."""
    assert (folder / "classes.csv").read_bytes() == (folder / "registered.csv").read_bytes()
    for row in pd.read_csv(folder / "classes.csv").head(2).to_dict("records"):
        assert f"{row[column]}" in told
        shown = [float(number) for number in re.findall(r"\d\.\d{6}", told)]  # of two rows together, not of all
        assert any(number == pytest.approx(row["confidence"], abs=2e-6) for number in shown)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_page_of_images_runs_from_top_to_bottom(tmp_path: Path, run: Run) -> None:
    for given in commands(IMAGES):
        run("study", *given)
    shown = next(block.text for block in blocks("text", IMAGES))
    assert (tmp_path / "photos" / "labels.csv").read_text().startswith(shown)
    assert len(list((tmp_path / "photos").glob("*.png"))) == 1797
    assert (tmp_path / "report" / "report.html").is_file()
    assert (tmp_path / "studies" / "digits-final" / "model_card.md").is_file()
    (block,) = blocks("python", IMAGES)
    agree(tmp_path, run(sys.executable, "-c", block.text), "file")


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_page_of_a_table_runs_from_top_to_bottom(tmp_path: Path, run: Run) -> None:
    made, used = blocks("python", TABLE)
    run(sys.executable, "-c", made.text)
    shown = next(block.text for block in blocks("text", TABLE))
    assert (tmp_path / "patients.csv").read_text().startswith(shown)
    for given in commands(TABLE):
        told = run("study", *given)
        if given[0] == "plan":
            assert re.search(r"slow, b +\d+ +18 ", told), "as the page says"
    assert (tmp_path / "report" / "report.html").is_file()
    assert (tmp_path / "studies" / "patients-final" / "model_card.md").is_file()
    assert len(pd.read_csv(tmp_path / "classes.csv")) == 442
    agree(tmp_path, run(sys.executable, "-c", used.text), "class")
