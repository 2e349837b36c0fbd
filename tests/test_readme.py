"""What the README shows is there and works."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from helpers import ROOT
from PIL import Image

from study import data, methods
from study.cli import app
from study.spec import load_study

README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "study" / "guide").glob("*.md")), ROOT / "cluster" / "README.md"]
CLUSTER = ("cluster", "submit", "jobs")


def blocks(language: str, page: Path = README) -> list[str]:
    """The code blocks of a language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def commands(page: Path = README) -> Iterator[list[str]]:
    """The arguments of every `study` command in a shell block."""
    for block in blocks("sh", page):
        for line in block.replace("\\\n", " ").splitlines():
            if found := re.match(r"(?:.* && )?(?:uv run )?study (.*)", line):
                yield shlex.split(found[1], comments=True)


COMMANDS = [(page, given) for page in PAGES for given in commands(page)]


@pytest.mark.parametrize(("page", "given"), COMMANDS, ids=[" ".join(given) for _, given in COMMANDS])
def test_every_command_is_one(page: Path, given: list[str]) -> None:
    """With options and arguments that it takes; nothing is run."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands"):
        with command.make_context("study", list(given), resilient_parsing=True) as context:
            name, command, given = command.resolve_command(context, given)
    assert command is not None
    command.make_context(name, list(given))


def test_there_are_commands_to_look_at() -> None:
    names = {given[0] for _, given in COMMANDS}
    assert {"run", "plan", "status", "resume", "report", "export", "train", "predict", "confirm", "submit"} <= names


LINKS = [
    (page, link)
    for page in PAGES
    for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
    if not link.startswith(("http:", "https:"))
]


@pytest.mark.parametrize(("page", "link"), LINKS, ids=[f"{page.name}: {link}" for page, link in LINKS])
def test_every_link_leads_somewhere(page: Path, link: str) -> None:
    assert (page.parent / link).exists()


def test_the_study_file_is_the_shipped_one(tmp_path: Path) -> None:
    block = next(block for block in blocks("yaml") if block.startswith("name: quickstart"))
    (tmp_path / "shown.yaml").write_text(block)
    assert load_study(str(tmp_path / "shown.yaml")).to_document() == load_study("quickstart").to_document()


@pytest.mark.parametrize("block", blocks("python"), ids=lambda block: block.splitlines()[0])
def test_python_is_python(block: str) -> None:
    compile(block, "README.md", "exec")


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_commands_run_as_shown(tmp_path: Path) -> None:
    """One after the other in a fresh folder, as a reader types them, with fewer trials; those that serve, fetch data or
    take an hour aside."""
    (tmp_path / "photos").mkdir()
    for number, image in enumerate(data.load({"name": "biased_digits", "rho": 0.95}).splits["val"].inputs[:3]):
        Image.fromarray(image.transpose(1, 2, 0)).save(tmp_path / "photos" / f"{number}.png")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("STUDY_HOME", None)
    for given in commands():
        if given[0] in ("ui", "reproduce", "data", "delete", "init", *CLUSTER) or "--address" in given:
            continue
        line = ["study", *(word.replace("trials=50", "trials=16") for word in given)]
        done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
        ended = given[0] == "resume" and "nothing to go on with" in done.stderr
        assert done.returncode == 0 or ended, f"{shlex.join(line)}\n{done.stdout}\n{done.stderr}"
    example = next(block for block in blocks("python") if "study.analysis" in block)
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "±" in done.stdout


def test_the_table_names_every_data_set_and_method() -> None:
    """In one of the tables, so that a new one is not forgotten."""
    rows = [row for row in README.read_text(encoding="utf-8").splitlines() if row.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set(data.names()) | set(methods.names()) <= named
