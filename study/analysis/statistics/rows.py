"""A frame of trials that knows its study."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from study.home.record import StudyRecord
from study.spec import StudySpec

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Source:
    """The study behind a frame, and what was computed of it, by name."""

    spec: StudySpec
    record: StudyRecord
    known: dict[str, Any] = field(default_factory=dict)


class TrialsFrame(pd.DataFrame):
    """Rows of trials with their `source`: pruned trials are estimated from courses that no row holds.

    Selections of rows and columns keep it; what is joined, concatenated or read from a file does not have it.
    """

    _metadata = ["source"]  # noqa: RUF012  # as pandas asks of a subclass: what a selection keeps
    source: Source | None = None

    @property
    def _constructor(self) -> "Callable[..., TrialsFrame]":
        return TrialsFrame
