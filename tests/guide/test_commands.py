"""Every command that the README and the guide show exists, with the options that are shown; some are run."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer.main
from pages import GUIDE, PAGES, blocks, commands, inline_commands
from pictures import picture
from typer.testing import CliRunner

from study.cli import app

OF_ALL = ("--verbose", "--version", "--help")


def resolve(given: list[str]) -> tuple[Any, str | None, list[str]]:
    """The command that is meant, the name by which it was called, and its own arguments."""
    command: Any = typer.main.get_command(app)
    name: str | None = None
    while hasattr(command, "commands") and (given or name is None):
        with command.make_context("study", list(given), resilient_parsing=True) as context:
            name, command, given = command.resolve_command(context, given)
    return command, name, given


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_is_one(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With options and arguments that it takes; nothing is run. Where the shell has a cluster, no address is needed."""
    monkeypatch.delenv("STUDY_ADDRESS", raising=False)
    if re.search(r"cluster status \| grep export|^export STUDY_ADDRESS=", page.read_text(encoding="utf-8"), re.M):
        monkeypatch.setenv("STUDY_ADDRESS", "http://127.0.0.1:8265")
    for shown in commands(page):
        command, name, given = resolve(shown)
        assert command is not None, shown
        command.make_context(name, list(given))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_command_that_a_sentence_names_is_one(page: Path) -> None:
    """With options that it has; arguments may be left out there."""
    for named in inline_commands(page):
        if named[0] not in (*OF_ALL, "COMMAND"):
            command, _, given = resolve(named)
            options = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
            assert {word for word in given if word.startswith("-")} <= {*options, "--help"}, named


def test_there_are_commands_to_look_at() -> None:
    shown, named = ({given[0] for page in PAGES for given in each(page)} for each in (commands, inline_commands))
    assert {"run", "plan", "status", "resume", "report", "export", "train", "predict", "confirm", "submit"} <= shown
    assert {"resume", "doctor", "confirm", "stop", "logs"} <= named


def test_every_command_is_shown_in_the_list_of_commands() -> None:
    root: Any = typer.main.get_command(app)
    page = GUIDE / "commands.md"
    named = {given[0] for given in (*commands(page), *inline_commands(page))}
    assert {name for name, command in root.commands.items() if not command.hidden} <= named


def test_shell_blocks_are_shell() -> None:
    for block in blocks("sh"):
        done = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), block


OWN = [given for given in commands(GUIDE / "own-data.md") if given[0] in ("init", "plan", "trial")]


@pytest.mark.slow
def test_the_way_to_own_data_works_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On images and a table as the page describes them, in its order, nobody being there to answer questions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "studies"))
    text = next(block.text for block in blocks("text", GUIDE / "own-data.md"))
    header = text.splitlines()[1]
    for number in range(60):
        picture(tmp_path / "photos" / f"{number:04}.jpg", number)
    rows = [f"{n:04}.jpg,{('landbird', 'waterbird')[n % 2]},{('land', 'water')[n // 2 % 2]}" for n in range(60)]
    (tmp_path / "photos" / "labels.csv").write_text("\n".join([header, *rows]))
    people = [f"{n % 7},{n % 5},{('yes', 'no')[n % 2]},{('f', 'm')[n // 2 % 2]}" for n in range(80)]
    (tmp_path / "loans.csv").write_text("\n".join(["income,sum,repaid,sex", *people]))
    for given in OWN:
        done = CliRunner().invoke(app, given)
        assert done.exit_code == 0, f"{shlex.join(given)}\n{done.output}\n{done.exception}"
