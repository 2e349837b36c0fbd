"""The architecture page against the code: its picture of the rooms, its tables of rooms and of places."""

import ast
import re
from collections.abc import Mapping
from itertools import pairwise

from helpers import ROOT
from pages import GUIDE, blocks
from test_rooms import ABOVE, ALLOWED, EVERYWHERE, LOOSE

PAGE = GUIDE / "architecture.md"
TEXT = PAGE.read_text(encoding="utf-8")
ROOMS = {importer: imported - LOOSE for importer, imported in ALLOWED.items() if importer not in EVERYWHERE}
"""The table of imports without what any room may import, and without the modules at the root, which are no rooms."""


def reachable(start: str, arrows: Mapping[str, set[str]]) -> set[str]:
    """The rooms that a room imports, by whatever way."""
    ways = {further for room in arrows[start] for further in reachable(room, arrows)}
    return arrows[start] | ways


def drawn(arrows: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The arrows that do not follow from others."""
    return {
        importer: {
            room for room in imported if not any(room in reachable(other, arrows) for other in imported - {room})
        }
        for importer, imported in arrows.items()
    }


def picture() -> str:
    """What the page has to show."""
    top = list(reversed(ABOVE))
    highest = sorted(set(ROOMS) - set().union(*ROOMS.values()))
    inner = [f"    {room.replace('.', '_')}[{room}]" for room in sorted(ROOMS) if "." in room]
    dotted = [f"    {above} -.-> {below}" for above, below in pairwise(top)]
    dotted += [f"    {top[-1]} -.-> {room.replace('.', '_')}" for room in highest]
    solid = [
        f"    {importer.replace('.', '_')} --> {room.replace('.', '_')}"
        for importer, imported in drawn(ROOMS).items()
        for room in sorted(imported)
    ]
    return "\n".join(["flowchart TD", *inner, *dotted, *solid, ""])


def test_the_picture_has_the_rooms_and_arrows_of_the_table() -> None:
    """Where this fails because rooms changed: the wanted picture is in the message, to be copied into the page."""
    (block,) = blocks("mermaid", PAGE)
    assert block.text == picture(), picture()


def test_the_table_of_rooms_names_each() -> None:
    rows = re.search(r"\| room \| what it is for \|\n\|---\|---\|\n((?:\|.*\n)+)", TEXT)
    assert rows
    assert sorted(re.findall(r"^\| `([\w.]+)`", rows[1], re.MULTILINE)) == sorted({*ALLOWED, *ABOVE})


PLACES = re.findall(r"\| `(study/[\w/]+\.py)`, `(\w+)` \|", TEXT)


def test_what_the_page_places_is_there() -> None:
    assert len(PLACES) >= 10
    for file, name in PLACES:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        assert name in names, file
