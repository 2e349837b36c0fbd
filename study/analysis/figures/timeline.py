"""When each trial ran, in as many lanes as trials ran at once: what is empty was idle."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from study.analysis.figures.best_over_time import unit_of
from study.analysis.figures.style import BLUE, ORANGE, PALE, RASTERIZED, VERMILLION, legend, new, plain, styled
from study.analysis.statistics import formatting
from study.analysis.statistics.occupancy import busy, occupancy, places
from study.home.record import StudyRecord
from study.spec import StudySpec

STATES = {
    "complete": BLUE,
    "pruned": PALE,
    "failed": VERMILLION,
    "running": ORANGE,
    "waiting": ORANGE,
    "interrupted": ORANGE,
}
NAMED = 12
"""Lanes at most that have a name each."""


@styled
def timeline(spec: StudySpec, record: StudyRecord) -> Figure | None:
    """A bar for each run of a trial, a lane per trial at once. Pauses of the study are
    left out."""
    frame = occupancy(record)
    if len(frame) < 2 or not frame["end"].max():
        return None
    lanes = places(frame)
    scale, unit = unit_of(float(frame["end"].max()))
    figure, (axes, *_) = new(title(frame), 1.7 + 0.28 * min(NAMED, len(lanes)))
    for state, colour in STATES.items():
        of_state = frame[frame["state"] == state]
        for place, (node, lane) in enumerate(lanes):
            runs = of_state[(of_state["node"] == node) & (of_state["lane"] == lane)]
            if len(runs):
                spans = list(zip(runs["start"] / scale, (runs["end"] - runs["start"]) / scale, strict=True))
                edge: dict[str, Any] = {"edgecolors": "white", "linewidths": 0.5 if len(frame) < RASTERIZED else 0.0}
                axes.broken_barh(spans, (place - 0.38, 0.76), facecolors=colour, **edge)
        if len(of_state):
            axes.broken_barh([], (0, 0), facecolors=colour, label=state)
    axes.set_ylim(len(lanes) - 0.5, -0.5)
    if len(lanes) <= NAMED:
        axes.set_yticks(range(len(lanes)), [plain(name) for name in names(lanes)])
    else:
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(f"{unit}, without pauses")
    legend(figure, axes)
    return figure


def names(lanes: list[tuple[str, int]]) -> list[str]:
    """What each lane is called: a number from 1, behind its node where there are several."""
    several = len({node for node, _ in lanes}) > 1
    return [f"{node} {lane + 1}" if several else str(lane + 1) for node, lane in lanes]


def title(frame: pd.DataFrame) -> str:
    """How many trials ran at once, and how much of that time was used."""
    lanes = len(places(frame))
    share = f"{100 * busy(frame):.0f}%"
    return f"{formatting.count(lanes, 'trial')} at once at most; a trial ran in {share} of the time of each place"
