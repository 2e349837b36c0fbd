"""A frame of trials that knows its study."""

from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Callable

    from study.analysis.statistics.pruned import Pruned


class TrialsFrame(pd.DataFrame):
    """Rows of trials with `pruned`: their pruned trials are estimated from courses that no row holds.

    Selections of rows and columns keep it; what is joined, concatenated or read from a file does not have it.
    """

    _metadata = ["pruned"]  # noqa: RUF012  # as pandas asks of a subclass: what a selection keeps
    pruned: "Pruned | None" = None

    @property
    def _constructor(self) -> "Callable[..., TrialsFrame]":
        return TrialsFrame
