"""The rank of each complete trial over every two searched parameters."""

from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from study.analysis.figures.scale import Scale
from study.analysis.figures.style import RASTERIZED, label, new, plain, styled
from study.analysis.statistics import formatting
from study.analysis.statistics.frame import param, varied
from study.analysis.statistics.importance import explained
from study.home.record import StudyRecord
from study.ranking import searched
from study.spec import StudySpec

LEAST = 10
"""Complete trials that a figure over two parameters needs."""

PANELS = 6
COLOURS = "cividis_r"


@styled
def ranks(spec: StudySpec, record: StudyRecord) -> Figure | None:
    """Each complete trial over two parameters, coloured by its rank: an outlying value hides no other."""
    pairs = pairs_of(spec, record)
    count = len(searched(record, spec))
    if not pairs or count < LEAST:
        return None
    columns = min(3, len(pairs))
    rows = -(-len(pairs) // columns)
    figure, panels = new(_title(spec, count, len(pairs)), 1.2 + 2.6 * rows, columns, rows, sharey=False)
    shades = None
    for axes, (across, up) in zip(panels, pairs, strict=False):
        for which, key in (("x", across), ("y", up)):
            Scale.of(varied(spec)[key]).apply(axes, which)
        x, y, rank, _ = placed(spec, record, across, up)
        marks: dict[str, Any] = {
            "cmap": COLOURS,
            "vmin": 1,
            "vmax": count,
            "s": 26,
            "edgecolors": "white",
            "linewidths": 0.4,
        }
        shades = axes.scatter(x, y, c=rank, rasterized=count > RASTERIZED, **marks)
        axes.set(xlabel=label(across), ylabel=label(up))
    for axes in panels[len(pairs) :]:
        axes.set_visible(False)
    assert shades is not None
    bar = figure.colorbar(shades, ax=list(panels), label=f"rank by {plain(spec.metric)}, 1 is the best", pad=0.02)
    bar.ax.invert_yaxis()
    return figure


def pairs_of(spec: StudySpec, record: StudyRecord) -> list[tuple[str, str]]:
    """Every two searched parameters, those that explain most together first, six pairs at most."""
    found = explained(spec, record)
    pairs = sorted(combinations(varied(spec), 2), key=lambda pair: -found.together(*pair))
    return pairs[:PANELS]


def placed(
    spec: StudySpec, record: StudyRecord, across: str, up: str
) -> tuple[list[float], list[float], list[int], np.ndarray]:
    """Where each complete trial that has both parameters lies, the worst first: x, y, rank from 1, and number."""
    scales = [Scale.of(varied(spec)[key]) for key in (across, up)]
    rows = []
    for rank, candidate in enumerate(searched(record, spec), 1):
        x, y = (scale.place(param(spec, candidate.trial, key)) for scale, key in zip(scales, (across, up), strict=True))
        if x is not None and y is not None:
            rows.append((x, y, rank, candidate.trial.number))
    rows.reverse()
    return [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows], np.array([r[3] for r in rows], dtype=int)


def _title(spec: StudySpec, count: int, pairs: int) -> str:
    trials = formatting.count(count, "complete trial")
    return f"Rank by {spec.metric} of {trials} over {'two parameters' if pairs == 1 else 'every two parameters'}"
