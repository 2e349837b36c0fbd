"""The best value of the search over the time that it took."""

from typing import Any

from matplotlib.figure import Figure

from study.analysis.figures.style import BLACK, BLUE, metric_axis, new, plain, styled
from study.analysis.statistics import formatting
from study.analysis.statistics.search_efficiency import best_so_far, search_time
from study.home.record import StudyRecord
from study.ranking import baseline
from study.spec import StudySpec

UNITS = ((2 * 86400, 86400, "days"), (2 * 3600, 3600, "hours"), (120, 60, "minutes"), (0, 1, "seconds"))
TIMES = {"seconds": "since the first trial began", "busy_seconds": "of trial time, summed over trials"}


@styled
def best_over_time(spec: StudySpec, record: StudyRecord) -> Figure | None:
    """The best value of the complete trials so far, over wall-clock time and over the trials' summed time."""
    frame = best_so_far(spec, record).dropna(subset=["best"])
    if len(frame) < 2:
        return None
    baseline_candidate = baseline(record, spec)
    total = search_time(record)
    best = frame["best"].tolist()
    figure, panels = new(_title(spec, best, frame["busy_seconds"].tolist(), total["busy_seconds"]), 3.4, 2)
    for axes, (column, description) in zip(panels, TIMES.items(), strict=True):
        end = total[column]
        scale, unit = unit_of(end)
        times = [seconds / scale for seconds in (*frame[column], end)]
        axes.step(times, [*best, best[-1]], where="post", color=BLUE, linewidth=2.2)
        axes.scatter(times[-1:], best[-1:], color=BLUE, s=24, zorder=3)
        if baseline_candidate:
            axes.axhline(baseline_candidate.value, color=BLACK, linewidth=1.3, linestyle="--")
        axes.set_xlim(left=0)
        axes.set_xlabel(f"{unit} {description}")
        metric_axis(axes, spec.metric)
    panels[0].set_ylabel(f"best {plain(spec.metric)} so far")
    if baseline_candidate:
        spot: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "xytext": (0, 4), "textcoords": "offset points"}
        panels[0].annotate(
            "baseline", (0.02, baseline_candidate.value), color=BLACK, fontsize=9.5, fontweight="bold", **spot
        )
    return figure


def unit_of(seconds: float) -> tuple[int, str]:
    """The unit in which a span is easy to read: its length in seconds, and its name."""
    return next((scale, name) for least, scale, name in UNITS if seconds >= least)


def _title(spec: StudySpec, best: list[float], busy: list[float], total: float) -> str:
    """The share of the search's time after which it was within a tenth of its final gain."""
    gained = best[-1] - best[0]
    place = next(place for place, value in enumerate(best) if abs(best[-1] - value) <= 0.1 * abs(gained))
    share = 100 * busy[place] / total if total else 100.0
    first, last = (formatting.value(spec.metric, value) for value in (best[place], best[-1]))
    return f"{spec.metric} {first} after {share:.0f}% of the trial time, {last} in the end"
