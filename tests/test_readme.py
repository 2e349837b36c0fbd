"""The commands of the README and of the list of commands, run as shown."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from helpers import ROOT
from pages import GUIDE, README, blocks, commands
from PIL import Image

from study import data
from study.home.folder import Home

ELSEWHERE = ("cluster", "submit", "ui", "reproduce", "data", "delete", "init", "predict", "evaluate")
"""Those that serve, fetch data, take an hour or need files of their own; the last two come from the page on models."""


def test_the_first_commands_are_those_that_ci_and_newcomers_type() -> None:
    first, tests, *_ = (block.text.splitlines()[0] for block in blocks("sh", README))
    assert first == "pip install uv && uv run study run quickstart"
    assert tests == "pip install uv && uv run pytest"


SHELL = """\
set -eu
pip() { [ "$*" = "install uv" ]; }
uv() { [ "$1" = run ] && shift && case "$1" in study) "$PYTHON" -m "$@" ;; pytest) ;; *) false ;; esac; }
set -x
"""
"""What stands for installing, which a fresh machine tries, and for these tests themselves."""


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_its_shell_blocks_run_from_top_to_bottom_in_one_shell(tmp_path: Path) -> None:
    """As a newcomer types them, who has a folder of photographs: each line ends well, and leaves what it is for."""
    digits = data.load({"name": "biased_digits", "rho": 0.9}).splits["train"]
    assert digits.bias is not None
    (tmp_path / "photos").mkdir()
    rows = ["file,species,background"]
    for number, image in enumerate(digits.inputs[:600]):
        Image.fromarray(image.transpose(1, 2, 0)).save(tmp_path / "photos" / f"{number}.png")
        species, background = digits.target[number] % 2, digits.bias[number] % 2
        rows.append(f"{number}.png,{('wren', 'robin')[species]},{('land', 'water')[background]}")
    (tmp_path / "photos" / "labels.csv").write_text("\n".join(rows) + "\n")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("STUDY_", "MLFLOW_", "RAY_"))}
    environment |= {"PYTHON": sys.executable, "STUDY_DATA": str(tmp_path / "data"), "PYTHONPATH": str(ROOT)}
    typed = SHELL + "".join(block.text for block in blocks("sh", README))
    done = subprocess.run(
        ["bash", "-c", typed], cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(pd.read_csv(tmp_path / "classes.csv")) == 600
    home = Home(tmp_path / "studies")
    assert {folder.name for folder in home.list_studies()} >= {"quickstart", "birds", "birds-final", "there", "fetched"}
    assert home.find_study("fetched").best_file.is_file()  # of which study train makes a model
    assert (tmp_path / "report" / "report.html").is_file()


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_commands_run_as_shown(tmp_path: Path) -> None:
    """One after the other in a fresh folder, as a reader types them, with fewer trials."""
    (tmp_path / "photos").mkdir()
    for number, image in enumerate(data.load({"name": "biased_digits", "rho": 0.95}).splits["val"].inputs[:3]):
        Image.fromarray(image.transpose(1, 2, 0)).save(tmp_path / "photos" / f"{number}.png")
    (tmp_path / "list.csv").write_text("photo\nphotos/0.png\nphotos/2.png\n")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("STUDY_HOME", None)
    listed = [given for given in commands(GUIDE / "commands.md") if given[0] not in ELSEWHERE]
    fitted = [given for given in commands(GUIDE / "models.md") if given[0] in ("predict", "evaluate")]
    chosen = [given for given in commands(GUIDE / "selection.md") if given[0] == "export"]
    assert {given[0] for given in listed} >= {"run", "status", "resume", "report", "compare", "confirm", "train"}
    for given in (*listed, *fitted, *chosen):
        if "--address" in given:
            continue
        line = ["study", *(word.replace("trials=50", "trials=16") for word in given)]
        done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
        ended = given[0] == "resume" and "nothing to go on with" in done.stderr
        assert done.returncode == 0 or ended, f"{shlex.join(line)}\n{done.stdout}\n{done.stderr}"
