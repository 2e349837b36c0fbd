"""The study's metric over two parameters at once."""

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from study.analysis.figures.style import (
    BEST_MARK,
    GREY,
    RASTERIZED,
    fade,
    label,
    legend,
    metric_axis,
    new,
    plain,
    styled,
)
from study.analysis.statistics import formatting
from study.analysis.statistics.importance import explained
from study.home.record import StudyRecord, TrialRecord
from study.ranking import candidates, searched
from study.spec import StudySpec
from study.spec.schema import Domain

LEAST = 10
"""Complete trials that a figure over two parameters needs."""

IN_A_TILE = 3
"""Trials that a tile needs: the mean of one or two says nothing of so wide a place."""

COLOURS = "cividis"  # made for colour-blind readers (Nuñez et al. 2018); of values the best is darkest


@dataclass(frozen=True)
class ParameterPair:
    """Two parameters, and the complete trials of the search that have both.

    Attributes:
        keys, domains: of the parameter on the horizontal axis, then of the one on the vertical axis.
        trials: in the order of the ranking.
        spots: where each lies, and its value, (N, 3).
    """

    keys: tuple[str, str]
    domains: tuple[Domain, Domain]
    trials: list[TrialRecord]
    spots: np.ndarray

    def at(self, trial: TrialRecord) -> tuple[float, float] | None:
        """Return where a trial lies; None if it has no place on an axis."""
        x, y = (_place(domain, trial.params.get(key)) for domain, key in zip(self.domains, self.keys, strict=True))
        return None if x is None or y is None else (x, y)

    def tiles(self) -> tuple[list[np.ndarray], np.ndarray]:
        """The edges of tiles over both axes, and the mean of the trials in each, NaN where there are too few."""
        count = int(np.clip(np.sqrt(len(self.spots) / 2), 2, 12))
        edges = [_edges(domain, count) for domain in self.domains]
        x, y, values = self.spots.T
        sums, counts = (np.histogram2d(x, y, bins=edges, weights=weights)[0] for weights in (values, None))
        return edges, np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts >= IN_A_TILE)

    def range(self) -> tuple[float, float]:
        """The least and the largest of complete trials and tiles."""
        values = np.concatenate([self.spots[:, 2], self.tiles()[1].ravel()])
        return float(np.nanmin(values)), float(np.nanmax(values))


def parameter_pair(spec: StudySpec, record: StudyRecord) -> ParameterPair | None:
    """The two numeric parameters that explain most together; where importance says nothing, the first two.

    Only pairs that at least ten complete trials have in common. None without such a pair.
    """
    found = explained(spec, record)
    numeric = {key: domain for key, domain in spec.search.space.items() if _is_numeric(domain)}
    pairs = sorted(combinations(numeric, 2), key=lambda pair: -found.together(*pair))
    complete = searched(record, spec)
    for across, up in pairs:
        empty = ParameterPair((across, up), (numeric[across], numeric[up]), [], np.empty((0, 3)))
        placed = [(candidate, at) for candidate in complete if (at := empty.at(candidate.trial))]
        if len(placed) >= LEAST:
            spots = np.array([(*at, candidate.value) for candidate, at in placed])
            trials = [candidate.trial for candidate, _ in placed]
            return replace(empty, trials=trials, spots=spots)
    return None


@styled
def surface(spec: StudySpec, record: StudyRecord) -> Figure | None:
    """The metric over two parameters: each complete trial, and means over tiles."""
    pair = parameter_pair(spec, record)
    if pair is None:
        return None
    count = formatting.count(len(pair.trials), "complete trial")
    figure, (axes, *_) = new(_title(spec, pair, count), 4.8)
    _scale(axes, "x", pair.domains[0])
    _scale(axes, "y", pair.domains[1])
    axes.grid(visible=False)
    x, y, values = pair.spots.T
    cmap = f"{COLOURS}_r" if spec.mode == "max" else COLOURS
    (across, up), means = pair.tiles()
    low, high = pair.range()
    shades: dict[str, Any] = {"cmap": cmap, "vmin": low, "vmax": high}
    axes.pcolormesh(across, up, means.T, alpha=0.45, linewidth=0, rasterized=True, **shades)
    pruned = [trial for trial in record.by_stage("search") if trial.state == "pruned"]
    _pruned(axes, [at for trial in pruned if (at := pair.at(trial))])
    many = len(values) > 300
    shades |= {"s": 18 if many else 46, "edgecolors": "white", "linewidths": 0.5, "zorder": 3}
    marks = axes.scatter(x, y, c=values, label="complete", rasterized=len(values) > RASTERIZED, **shades)
    best = pair.at(candidates(record, spec)[0].trial)
    if best:
        axes.scatter([best[0]], [best[1]], label="best", zorder=5, **BEST_MARK)
    axes.set(xlabel=label(pair.keys[0]), ylabel=label(pair.keys[1]))
    metric_axis(figure.colorbar(marks, ax=axes, label=plain(spec.metric), pad=0.02).ax, spec.metric)
    legend(figure, axes)
    return figure


def _title(spec: StudySpec, pair: ParameterPair, complete: str) -> str:
    """Return a title with how many trials are behind the colours."""
    return f"{spec.metric} of {complete} over {pair.keys[0]} and {pair.keys[1]}"


def _pruned(axes: Axes, spots: list[tuple[float, float]]) -> None:
    if spots:
        x, y = zip(*spots, strict=True)
        mark: dict[str, Any] = {"marker": "v", "s": 18, "facecolors": "none", "edgecolors": GREY, "linewidths": 0.8}
        many = len(spots) > RASTERIZED
        axes.scatter(x, y, label="pruned", alpha=fade(len(spots)), rasterized=many, **mark)


def _is_numeric(domain: Domain) -> bool:
    if domain.choices is None:
        return domain.low != domain.high
    return len(domain.choices) > 1 and all(type(choice) in (int, float) for choice in domain.choices)


# Where values lie on an axis: numbers on a linear or log scale, choices side by side.


def _place(domain: Domain, value: Any) -> float | None:
    """Return where a value lies; None if it has no place on the axis."""
    if domain.choices is not None:
        names, name = list(map(formatting.setting, domain.choices)), formatting.setting(value)
        return float(names.index(name)) if name in names else None
    return None if value is None or (domain.log and value <= 0) else float(value)


def _edges(domain: Domain, count: int) -> np.ndarray:
    """The ends of cells that cover the axis: about `count` equal ones, or one for each choice."""
    if domain.choices is not None:
        return np.arange(len(domain.choices) + 1) - 0.5
    low, high = _ends(domain)
    return np.geomspace(low, high, count + 1) if domain.log else np.linspace(low, high, count + 1)


def _scale(axes: Axes, which: str, domain: Domain) -> None:
    """Give an axis ticks and scale."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    if domain.choices is not None:
        axis.set_ticks(range(len(domain.choices)), list(map(formatting.setting, domain.choices)))
    elif domain.log:
        axes.set(**{f"{which}scale": "log"})
        axis.set_major_formatter(FuncFormatter(lambda value, _: formatting.setting(float(value))))
        axis.set_minor_formatter(NullFormatter())
        low, high = _ends(domain)
        if high < 10 * low:  # the axis may have no power of ten
            ticks = [low, float(np.sqrt(low * high)), high]
            axis.set_ticks(ticks, [formatting.setting(tick, 2) for tick in ticks])


def _ends(domain: Domain) -> tuple[float, float]:
    assert domain.low is not None
    assert domain.high is not None
    return float(domain.low), float(domain.high)
