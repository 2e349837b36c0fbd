"""A training function is checked in a process of its own, whatever its module does when it is imported."""

import os
from pathlib import Path

import pytest

from study.commands.training_functions import accepted_arguments
from study.errors import UserError

MINE = """
import os
os.environ["LEFT_BY_A_CHECK"] = "yes"
os.chdir("/")
{first}
def train(config, seed):
    yield {{}}
"""


def test_what_a_function_takes_is_told_and_nothing_of_its_import_stays(tmp_path: Path) -> None:
    (tmp_path / "mine_that_is_checked.py").write_text(MINE.format(first=""))
    here = os.getcwd()
    assert accepted_arguments("mine_that_is_checked:train", str(tmp_path)) == ["config", "seed"]
    assert (os.getcwd(), os.environ.get("LEFT_BY_A_CHECK")) == (here, None)


@pytest.mark.parametrize(
    ("first", "told"),
    [
        ("raise ValueError('é' * 40_000)", "ValueError: éé"),  # more than a pipe takes
        ("raise ValueError('\\udcfc')", "ValueError: "),
        ("os._exit(3)", "its process ended with status 3"),
    ],
)
def test_why_it_cannot_be_imported_is_told(first: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "mine_that_fails_here.py").write_text(MINE.format(first=first), encoding="utf-8")
    with pytest.raises(UserError, match=told):
        accepted_arguments("mine_that_fails_here:train", str(tmp_path))
