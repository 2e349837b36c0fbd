"""Where values of a searched parameter lie on an axis: numbers on a linear or log scale, choices side by side."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

from study.analysis.figures.style import plain
from study.analysis.statistics import formatting
from study.spec.schema import Domain

LETTERS = 24
"""Letters that fit in a row below a panel."""


@dataclass(frozen=True)
class Scale:
    """The axis of one parameter.

    Attributes:
        domain: the values that the search may give to it.
        names: of the choices, in order; empty for a range.
    """

    domain: Domain
    names: tuple[str, ...]

    @classmethod
    def of(cls, domain: Domain, further: Iterable[Any] = ()) -> "Scale":
        """The scale of a domain, with further values (the baseline's) among its choices."""
        if domain.choices is None:
            return cls(domain, ())
        return cls(domain, tuple(dict.fromkeys(formatting.setting(choice) for choice in [*domain.choices, *further])))

    def place(self, value: Any) -> float | None:
        """Where a value lies; None if it has no place on the axis."""
        if self.domain.choices is not None:
            text = formatting.setting(value)
            return float(self.names.index(text)) if text in self.names else None
        return None if value is None or (self.domain.log and value <= 0) else float(value)

    def share(self, value: Any) -> float | None:
        """The same as a fraction of the axis' length from its start; None also outside of the searched range."""
        low, high = self.ends()
        place = self.place(value)
        if place is None or not low <= place <= high or low == high:
            return 0.5 if place == low == high else None
        low, high, place = np.log10([low, high, place]) if self.domain.log else (low, high, place)
        return float((place - low) / (high - low))

    def ticks(self) -> list[tuple[float, str]]:
        """Positions along the axis (as `share`) and their labels: every choice, or both ends and middle of a range."""
        if self.domain.choices is not None:
            return [(index / max(1, len(self.names) - 1), name) for index, name in enumerate(self.names)]
        low, high = self.ends()
        middle = float(np.sqrt(low * high)) if self.domain.log else (low + high) / 2
        return [(share, formatting.setting(value, 2)) for share, value in ((0.0, low), (0.5, middle), (1.0, high))]

    def edges(self, count: int) -> np.ndarray:
        """The ends of cells that cover the axis: about `count` equal ones, or one for each choice."""
        low, high = self.ends()
        if self.domain.choices is not None:
            return np.arange(len(self.names) + 1) - 0.5
        return np.geomspace(low, high, count + 1) if self.domain.log else np.linspace(low, high, count + 1)

    def apply(self, axes: Axes, which: str = "x") -> None:
        """Give an axis ticks and scale."""
        axis = axes.xaxis if which == "x" else axes.yaxis
        if self.domain.choices is None:
            if self.domain.log:
                axes.set(**{f"{which}scale": "log"})
                axis.set_major_formatter(FuncFormatter(lambda value, _: formatting.setting(float(value))))
                axis.set_minor_formatter(NullFormatter())
                low, high = self.ends()
                if high < 10 * low:  # the axis may have no power of ten
                    axis.set_ticks([low, float(np.sqrt(low * high)), high], [name for _, name in self.ticks()])
            axes.margins(x=0.08 if which == "x" else None, y=0.08 if which == "y" else None)
            return
        axis.set_ticks(range(len(self.names)), [plain(name) for name in self.names])
        if which == "x" and sum(map(len, self.names)) > LETTERS:
            axes.tick_params(axis="x", labelrotation=35)
            for text in axes.get_xticklabels():
                text.set(ha="right", rotation_mode="anchor", fontsize=8.5)
        axes.set(**{f"{which}lim": (-0.6, len(self.names) - 0.4)})
        axes.grid(visible=False, axis="x" if which == "x" else "y")

    def ends(self) -> tuple[float, float]:
        """Where the axis begins and ends."""
        if self.domain.choices is not None:
            return 0.0, float(len(self.names) - 1)
        assert self.domain.low is not None
        assert self.domain.high is not None
        return float(self.domain.low), float(self.domain.high)
