"""The page that goes from a folder to a registered model, run word for word in an empty folder."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from pages import GUIDE, blocks, commands

PAGE = GUIDE / "walk-through.md"


def test_every_line_of_its_shell_blocks_is_a_command() -> None:
    lines = [line for block in blocks("sh", PAGE) for line in block.text.splitlines()]
    assert len(list(commands(PAGE))) == len(lines) > 8


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_page_runs_from_top_to_bottom(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for name in ("STUDY_HOME", "MLFLOW_TRACKING_URI"):
        environment.pop(name, None)
    environment["STUDY_DATA"] = str(tmp_path / "data")

    def run(*line: str) -> str:
        done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{shlex.join(line)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    for given in commands(PAGE):
        run("study", *given)
    shown = next(block.text for block in blocks("text", PAGE))
    assert (tmp_path / "photos" / "labels.csv").read_text().startswith(shown)
    assert len(list((tmp_path / "photos").glob("*.png"))) == 1797
    assert (tmp_path / "report" / "report.html").is_file()
    assert (tmp_path / "studies" / "digits-final" / "model_card.md").is_file()
    assert (tmp_path / "classes.csv").read_bytes() == (tmp_path / "registered.csv").read_bytes()
    (block,) = blocks("python", PAGE)
    told = run(sys.executable, "-c", block.text)
    classes = pd.read_csv(tmp_path / "classes.csv")
    for row in classes.itertuples():
        if row.Index < 2:
            assert f"{row.file}" in told
            assert f"{row.confidence:.6f}" in told
