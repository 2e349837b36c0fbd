"""The share of a cluster that a study was submitted with."""

from collections.abc import Mapping
from typing import Annotated

from annotated_types import Ge, Le
from pydantic import Strict
from pydantic.dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The part that a study may have of a cluster beside other studies of its owner.

    Attributes:
        share: of the trials that run at once.
        slots: most trials at once; None: as many as there is room for.
    """

    share: Annotated[float, Strict(), Ge(0.01), Le(100)] = 1.0
    slots: Annotated[int, Strict(), Ge(1)] | None = None

    @classmethod
    def of(cls, metadata: Mapping[str, str]) -> "Limits":
        """Return the limits that a study's job was submitted with; the defaults where one of them cannot be used."""
        try:
            slots = int(metadata["slots"]) if "slots" in metadata else None
            return cls(float(metadata.get("share", 1.0)), slots)
        except ValueError:
            return cls()

    def tags(self) -> dict[str, str]:
        """Return what a job is submitted with, as `of` reads it."""
        slots = {} if self.slots is None else {"slots": str(self.slots)}
        return {"share": f"{self.share:g}", **slots}


UNLIMITED = Limits()
"""Limits of a study for which none are given."""
