"""The ready files of `cluster/`, read."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from helpers import ROOT

CLUSTER = ROOT / "cluster"


def documents(path: Path) -> list[dict[str, Any]]:
    """The YAML documents of a file."""
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def pairs(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every key and index below a YAML node, as a path, and what it holds."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*path, key), value
        yield from pairs(value, (*path, key))


def image_environment() -> dict[str, str]:
    """What the image sets for every container."""
    text = (CLUSTER / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.search(r"^ENV (.*)$", text, re.MULTILINE)
    assert found is not None
    return dict(one.split("=", 1) for one in found.group(1).split())
