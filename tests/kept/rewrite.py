"""Keeps what the program computes now, and lists what changes: `python tests/kept/rewrite.py [--only PART ...]`.

Read the list before you commit: each line is a number, a decision or a sentence that users get otherwise than before.
PART is the name of a study, `words`, `forms`, `losses` or `metrics`.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[number]) for number in (1, 2)] + [str(Path(__file__).parents[1] / "support")]

from kept import keeping, reading  # noqa: E402 (the folders of the tests come first)

OTHERS = ("words", "forms", "losses", "metrics")


def main(only: list[str]) -> None:
    """Rewrite the values of some parts, or of all."""
    wanted = only or [*reading.STUDIES, *OTHERS]
    if unknown := set(wanted) - {*reading.STUDIES, *OTHERS}:
        sys.exit(
            f"{', '.join(sorted(unknown))}: no part of the suite. There are: {', '.join([*reading.STUDIES, *OTHERS])}"
        )
    for name in reading.STUDIES:
        if name in wanted:
            _rewrite(f"{name}.json.gz", name, reading.values(name))
    if "words" in wanted:
        _rewrite("words.json", "words", reading.all_words())
    if printed := [name for name in reading.STUDIES if name in wanted]:
        kept = keeping.load("documents.json.gz")
        _rewrite("documents.json.gz", "documents", kept | {name: reading.documents(name) for name in printed})
    if "forms" in wanted:
        _rewrite("forms.json", "forms", reading.forms())
    if "losses" in wanted:
        _rewrite("losses.json", "losses", reading.losses())
    if "metrics" in wanted:
        kept = keeping.load("metrics.json")
        kept[reading.machine()] = reading.metrics()
        _rewrite("metrics.json", "metrics", kept)


def _rewrite(file: str, name: str, now: Any) -> None:
    found = list(keeping.changes(keeping.load(file), now, place=(name,)))
    _list(found)
    if found:
        keeping.save(file, now)


def _list(found: list[keeping.Change]) -> None:
    for change in found:
        print(change)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="PART")
    main(parser.parse_args().only)
