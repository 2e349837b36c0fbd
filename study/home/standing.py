"""A submitted study's priority and limits among the others of its cluster, as its job was told."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

MOST = 100.0
"""The highest share."""


@dataclass(frozen=True)
class Standing:
    """A driver's priority and limits among others on its cluster.

    Attributes:
        priority: of its turn to begin; higher ones first.
        share: of the trials that run at once, beside that of other studies.
        slots: trials that it may run at once at most; None: as many as there is room for.
    """

    priority: int = 0
    share: float = 1.0
    slots: int | None = None

    @classmethod
    def of(cls, metadata: Mapping[str, str]) -> "Standing":
        """From what a job was submitted with; what is no number there is left at its default."""
        values: dict[str, Any] = {}
        for name, kind in (("priority", int), ("share", float), ("slots", int)):
            with suppress(KeyError, ValueError):
                values[name] = kind(metadata[name])
        found = cls(**values)
        sound = 0 < found.share <= MOST and (found.slots is None or found.slots > 0)
        return found if sound else cls(found.priority)

    def tags(self) -> dict[str, str]:
        """Return what a job is submitted with, as `of` reads it, and the moment."""
        slots = {} if self.slots is None else {"slots": str(self.slots)}
        return {"priority": str(self.priority), "share": f"{self.share:g}", "submitted": repr(time.time()), **slots}


USUAL = Standing()
"""That of a study of which nothing is said."""
