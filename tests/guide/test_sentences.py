"""The table of every sentence: what each rests on is there."""

import re

from helpers import ROOT
from pages import RESULTS

SECTION = (RESULTS / "sentences.md").read_text(encoding="utf-8")
TABLE = SECTION.partition("\n|---|---|---|\n")[2].partition("\n\n")[0]
ROWS = re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", TABLE, re.MULTILINE)
SIMULATIONS = ROOT / "tests" / "benchmarks" / "simulations"
MODULES = {path.stem for path in SIMULATIONS.glob("*.py")} - {"__init__", "row"}


def spans(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_there_is_a_table_of_at_most_sixty_rows() -> None:
    assert 40 < len(ROWS) == TABLE.count("\n") + 1 <= 60
    assert all(where and spans(rests) for _, where, rests in ROWS)


def test_what_they_rest_on_is_there_and_every_simulation_is_named() -> None:
    named = {name for _, _, rests in ROWS for name in spans(rests)}
    tests = {name for name in named if name.endswith(".py")}
    assert [name for name in sorted(tests) if not (ROOT / name).is_file()] == []
    assert named - tests == MODULES
