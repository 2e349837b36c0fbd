"""What the search bought: its best value over the time that it took."""

from typing import Any

from matplotlib.figure import Figure

from study.analysis.figures.style import BLACK, BLUE, metric_axis, new, plain, styled
from study.analysis.statistics import formatting
from study.analysis.statistics.search_efficiency import best_so_far
from study.home.record import StudyRecord
from study.ranking import baseline
from study.spec import StudySpec

UNITS = ((2 * 86400, 86400, "days"), (2 * 3600, 3600, "hours"), (120, 60, "minutes"), (0, 1, "seconds"))
TIMES = {"seconds": "of the clock, since the first trial began", "busy_seconds": "of trials, all together"}


@styled
def bought(spec: StudySpec, record: StudyRecord) -> Figure | None:
    """The best value at full budget so far, over the time of the clock and over that of the trials."""
    frame = best_so_far(spec, record).dropna(subset=["best"])
    if len(frame) < 2:
        return None
    reference = baseline(record, spec)
    figure, panels = new(_title(spec, frame["best"].tolist(), frame["busy_seconds"].tolist()), 3.4, 2)
    for axes, (column, said) in zip(panels, TIMES.items(), strict=True):
        scale, unit = unit_of(float(frame[column].max()))
        axes.step(frame[column] / scale, frame["best"], where="post", color=BLUE, linewidth=2.2)
        axes.scatter(frame[column].iloc[-1:] / scale, frame["best"].iloc[-1:], color=BLUE, s=24, zorder=3)
        if reference:
            axes.axhline(reference.value, color=BLACK, linewidth=1.3, linestyle="--")
        axes.set_xlim(left=0)
        axes.set_xlabel(f"{unit} {said}")
        metric_axis(axes, spec.metric)
    panels[0].set_ylabel(f"best {plain(spec.metric)} so far")
    if reference:
        spot: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "xytext": (0, 4), "textcoords": "offset points"}
        panels[0].annotate("baseline", (0.02, reference.value), color=BLACK, fontsize=9.5, fontweight="bold", **spot)
    return figure


def unit_of(seconds: float) -> tuple[int, str]:
    """Seconds of the unit in which a span is read well, and its name."""
    return next((scale, name) for least, scale, name in UNITS if seconds >= least)


def _title(spec: StudySpec, best: list[float], busy: list[float]) -> str:
    """When the search was first within a tenth of what it gained in the end."""
    gained = best[-1] - best[0]
    place = next(place for place, value in enumerate(best) if abs(best[-1] - value) <= 0.1 * abs(gained))
    share = 100 * busy[place] / busy[-1] if busy[-1] else 100.0
    reached, last = (formatting.value(spec.metric, value) for value in (best[place], best[-1]))
    return f"{spec.metric} {reached} after {share:.0f}% of the trials' time, {last} in the end"
