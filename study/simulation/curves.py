"""Where the learning curves of a simulated study come from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Curve:
    """What one trial reports.

    Attributes:
        values: (epochs, metrics), NaN where there is no number.
        seconds: that one epoch takes.
    """

    values: NDArray[np.floating[Any]]
    seconds: float


class Curves(Protocol):
    """The curves of one course of a study."""

    @property
    def metrics(self) -> Sequence[str]:
        """Names of what a trial reports, as `val/accuracy`; those of the test split are told once it is read."""

    @property
    def rows(self) -> Sequence[Mapping[str, Any]] | None:
        """The configurations that alone can be tried, None: any can."""

    def curve(self, params: Mapping[str, Any], seed: int) -> Curve:
        """The curve of a configuration on the search's seed (0) or a fresh one (from 1 on)."""

    def fresh(self, params: Mapping[str, Any], metric: str) -> float | None:
        """What a configuration is worth at its last epoch on average over fresh seeds; None: not known.

        Args:
            metric: as `val/accuracy`; the same metric of the test split is taken where there is one.
        """
