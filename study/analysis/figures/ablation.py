"""The way from the baseline to the best, one step at a time."""

from collections.abc import Sequence
from textwrap import shorten

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from study.analysis.figures.style import BLACK, BLUE, GREY, VERMILLION, metric_axis, new, plain, styled
from study.analysis.statistics import formatting
from study.analysis.statistics.ablation_effects import Effect, ablation_effects
from study.home.record import StudyRecord
from study.spec import StudySpec


@styled
def ablation(spec: StudySpec, record: StudyRecord) -> Figure | None:
    """A bar per step on the path with its interval, on both splits; None before the path is complete on a seed."""
    paths = paths_of(spec, record)
    if not paths:
        return None
    first, gain = next(iter(paths.values()))
    title = f"{_steps(first)} to {_change(next(iter(paths)), gain)}"
    figure, panels = new(title, 1.6 + 0.42 * len(first), 2, sharey=True)
    for axes, (name, (path, _)) in zip(panels, paths.items(), strict=False):
        _draw(spec, axes, name, path)
    panels[0].set_yticks(range(len(first)), [plain(shorten(effect.label, 40)) for effect in first])
    panels[0].set_ylim(len(first) - 0.5, -0.5)
    for axes in panels[len(paths) :]:
        axes.set_visible(False)
    return figure


def paths_of(spec: StudySpec, record: StudyRecord) -> dict[str, tuple[list[Effect], Effect]]:
    """The steps of the path and the whole gain, by metric: the study's own on both splits, where it is complete."""
    return {
        name: (path, gain)
        for name, effects in ablation_effects(spec, record).items()
        if name in (spec.metric, spec.test_metric)
        and (gain := next(effect for effect in effects if effect.part == "gain")).difference
        and (path := [effect for effect in effects if effect.part == "path"])
    }


def _steps(path: Sequence[Effect]) -> str:
    return f"From the baseline in {formatting.count(len(path) - 1, 'step')}"


def _change(name: str, gain: Effect) -> str:
    assert gain.difference is not None
    change = formatting.change(name, gain.difference.value)
    between = formatting.interval(name, gain.difference)
    return f"{change} on {name}" if between == formatting.MISSING else f"{change} ({between}) on {name}"


def _draw(spec: StudySpec, axes: Axes, name: str, path: Sequence[Effect]) -> None:
    """The bars of one metric: each begins where the one before it ended."""
    assert path[0].values is not None
    sign = -1.0 if spec.direction(name) == "min" else 1.0
    at = path[0].values.mean
    axes.plot([at], [0], "|", color=BLACK, markersize=18, markeredgewidth=2.2)
    for height, step in enumerate(path[1:], 1):
        assert step.difference is not None
        colour = BLUE if sign * step.difference.value >= 0 else VERMILLION
        axes.barh(height, step.difference.value, left=at, height=0.5, color=colour, alpha=0.75)
        axes.plot([at, at], [height - 1, height + 0.25], color=GREY, linewidth=0.8)
        if step.difference.interval:
            low, high = step.difference.interval
            axes.plot([at + low, at + high], [height, height], color=BLACK, linewidth=1.4)
        at += step.difference.value
    axes.plot([at], [len(path) - 1], "|", color=BLACK, markersize=18, markeredgewidth=2.2)
    axes.use_sticky_edges = False  # a bar's end is no end of the axis
    axes.margins(x=0.08)
    axes.set_xlabel(plain(name))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    metric_axis(axes, name, "x")
