"""The page of selection rules has the table of rules: each of them, in its order, with what it needs."""

import re
from pathlib import Path

import study
from study.metrics.rules import RULES

PAGE = (Path(study.__file__).parent / "guide" / "selection.md").read_text(encoding="utf-8")


def test_the_table_of_rules_is_that_of_the_code() -> None:
    table = PAGE.partition("## Rules, by what they need")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(.+?)` \| (.+?) \|", table, re.MULTILINE)
    assert rows == [(rule.name, rule.needs) for rule in RULES]
