"""Every seed of the confirmed or finally trained configurations."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from study.analysis.figures.style import BLACK, BLUE, GREY, metric_axis, new, plain, styled
from study.analysis.statistics import formatting
from study.analysis.statistics.difference import Side, fresh_sides
from study.analysis.statistics.frame import metric
from study.home.record import StudyRecord
from study.spec import StudySpec


@styled
def seeds(spec: StudySpec, record: StudyRecord) -> Figure | None:
    """The metric on every fresh seed, with mean and standard deviation, on both splits."""
    sides = fresh_sides(spec, record)
    if not sides:
        return None
    metrics = [spec.metric, *([spec.test_metric] if any(side.spread(spec.test_metric) for side in sides) else [])]
    figure, panels = new(_seeds_title(spec, sides), 1.5 + 0.45 * len(sides), 2, sharex=True)
    for axes, name in zip(panels, metrics, strict=False):
        for height, side in enumerate(reversed(sides)):
            _seed_row(axes, side, name, height)
        axes.set_yticks(range(len(sides)), [plain(side.label) for side in reversed(sides)])
        axes.set_ylim(-0.6, len(sides) - 0.4)
        axes.set_xlabel(f"{plain(name)}: seeds, mean ± sd")
        axes.xaxis.set_major_locator(MaxNLocator(5))
        metric_axis(axes, name, "x")
    for axes in panels[len(metrics) :]:
        axes.set_visible(False)
    return figure


def _seeds_title(spec: StudySpec, sides: Sequence[Side]) -> str:
    ends = [sides[0], *sides[1:][-1:]] if sides[-1].label == "baseline" else sides[:1]
    means = " against ".join(
        f"{formatting.mean(spec.metric, side.spread(spec.metric))} ({side.label})" for side in ends
    )
    return f"{'Final' if sides[0].trials[0].stage == 'final' else 'Fresh'} seeds give {means}"


def _seed_row(axes: Axes, side: Side, name: str, height: int) -> None:
    colour = BLACK if side.label == "baseline" else BLUE
    values = [value for trial in side.trials if (value := metric(side.spec, trial, name)) is not None]
    spread = side.spread(name)
    if spread is None:
        axes.annotate(
            "not read", (0.02, height), xycoords=("axes fraction", "data"), color=GREY, va="center", fontsize=9.5
        )
        return
    axes.errorbar(
        spread.mean, height, xerr=spread.deviation, fmt="|", color=colour, markersize=16, markeredgewidth=2.2, capsize=0
    )
    axes.scatter(values, [height] * len(values), s=26, facecolors="white", edgecolors=colour, linewidths=1.3, zorder=3)
