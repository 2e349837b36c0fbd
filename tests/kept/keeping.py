"""The kept values: where they lie, and what differs from them."""

import gzip
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VALUES = Path(__file__).parent / "values"
RELATIVE, TRAINED, OPTIMISED = 1e-9, 1e-6, 1e-4
"""How far a float may be from the kept one, relative to it; on another kind of machine, of what was trained, and of
what the sampler `gp` proposes, which maximises a function until that hardly changes."""


@dataclass(frozen=True)
class Change:
    """A value that is not the kept one; None: there is none."""

    place: tuple[str, ...]
    kept: Any
    now: Any

    def __str__(self) -> str:
        return f"{' | '.join(self.place)}: kept {self.kept!r}, now {self.now!r}"


ABSENT = "not there"
"""In place of the value of a key that one side lacks; null is a value."""


def changes(kept: Any, now: Any, relative: float = RELATIVE, place: tuple[str, ...] = ()) -> Iterator[Change]:
    """Every difference, by its place: study, table, row, column."""
    if isinstance(kept, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*kept, *now]):
            yield from changes(kept.get(key, ABSENT), now.get(key, ABSENT), relative, (*place, key))
    elif isinstance(kept, float) and isinstance(now, float | int) and not isinstance(now, bool):
        if not math.isclose(kept, now, rel_tol=relative, abs_tol=relative * 1e-3):
            yield Change(place, kept, now)
    elif isinstance(kept, dict) or isinstance(now, dict):
        parts: Any = kept if isinstance(kept, dict) else now
        yield Change(place, *((f"{len(parts)} entries", now) if parts is kept else (kept, f"{len(parts)} entries")))
    elif kept != now or type(kept) is not type(now):
        yield Change(place, kept, now)


def told(found: list[Change], most: int = 20) -> str:
    """Changes as lines, and how many more there are."""
    rest = len(found) - most
    lines = [str(change) for change in found[:most]]
    return "\n".join([f"{len(found)} kept values changed:", *lines, *([f"... and {rest} more"] if rest > 0 else [])])


def load(name: str) -> Any:
    """Kept values by the name of their file; nothing where there are none."""
    path = VALUES / name
    if not path.exists():
        return {}
    content = path.read_bytes()
    return json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)


def save(name: str, values: Any) -> None:
    """Keep values: as text, or packed where the name ends in `.gz`."""
    VALUES.mkdir(exist_ok=True)
    content = (json.dumps(values, indent=1, ensure_ascii=False) + "\n").encode()
    (VALUES / name).write_bytes(gzip.compress(content, 9, mtime=0) if name.endswith(".gz") else content)
