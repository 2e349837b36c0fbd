"""The commands where nothing below the user's home can be written, and the output shows ASCII alone."""

import csv
import json
from pathlib import Path

import pytest
from command import Command
from PIL import Image

C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""Names of files, and what is printed, are ASCII for Python. By itself it takes UTF-8 in this locale."""

BARE = C_LOCALE | {"HOME": "/dev/null/home", "STUDY_DATA": "", "XDG_CACHE_HOME": "", "MPLCONFIGDIR": ""}

SMALL = ("search.trials=1", "train.epochs=1", "search.confirm.top=1", "search.confirm.seeds=2")


def photographs(folder: Path) -> None:
    """Photographs of two classes, whose names and labels are not ASCII."""
    folder.mkdir()
    rows = [("file", "class", "light")]
    for number in range(60):
        rows.append((f"ü{number}.png", ("hund", "bär")[number % 2], ("tag", "nächtens")[number // 2 % 2]))
        Image.new("RGB", (8, 8), (number * 4, 100 * (number % 2), 50)).save(folder / rows[-1][0])
    with (folder / "labels.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


@pytest.mark.slow
def test_a_study_is_run_and_read(tmp_path: Path) -> None:
    """With photographs and words that are not ASCII."""
    photographs(tmp_path / "bücher")
    study = Command(tmp_path / "studies", tmp_path)
    init = ("init", "buch", "--data", "bücher", "--target", "class", "--bias", "light")
    made = study(*init, **BARE)
    assert made.returncode == 0, made.stderr
    assert made.stderr.isascii()
    sets = [word for one in SMALL for word in ("--set", one)]
    ran = study("run", "buch.yaml", *sets, **BARE)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
    assert "study buch" in ran.stdout
    assert "+-" in ran.stdout
    assert ran.stdout.isascii()
    commands = (["status", "buch"], ["list"], ["report", "buch"], ["spaces"], ["data", "list"])
    more = (["plan", "buch.yaml", "--fast"], ["guide", "keys"], ["export", "buch", "-o", "best.yaml"])
    for command in (*commands, *more):
        for given in (BARE, BARE | {"PYTHONUTF8": "1", "PYTHONIOENCODING": "ascii"}):
            done = study(*command, **given)
            assert (done.returncode, done.stderr) == (0, ""), (command, done.stderr)
            assert done.stdout
            assert done.stdout.isascii()
    told = study("status", "grün", **BARE)
    assert (told.returncode, "Traceback" in told.stderr, told.stderr.isascii()) == (2, False, True)
    assert json.loads(study("status", "buch", "--json", **BARE).stdout)["name"] == "buch"
