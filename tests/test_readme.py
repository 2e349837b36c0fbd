"""The commands of the README and of the list of commands, run as shown."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pages import GUIDE, README, blocks, commands
from PIL import Image

from study import data

ELSEWHERE = ("cluster", "submit", "jobs", "ui", "reproduce", "data", "delete", "init", "predict", "evaluate")
"""Those that serve, fetch data, take an hour or need files of their own; the last two come from the page on models."""


def test_the_first_commands_are_those_that_ci_and_newcomers_type() -> None:
    first, tests, *_ = (block.text.splitlines()[0] for block in blocks("sh", README))
    assert first == "pip install uv && uv run study run quickstart"
    assert tests == "pip install uv && uv run pytest"


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
