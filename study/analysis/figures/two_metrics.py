"""Two metrics at once: accuracy against a fairness gap. Several: `study.analysis.figures.front_figure`."""

from collections.abc import Sequence
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study.analysis.figures.style import (
    BASELINE_MARK,
    BEST_MARK,
    BLACK,
    BLUE,
    COMPLETE_MARK,
    MIN_MARKS,
    ORANGE,
    VERMILLION,
    among,
    legend,
    metric_axis,
    new,
    plain,
    styled,
)
from study.analysis.statistics import formatting
from study.ranking import Candidate, Results, SeedStatistics, epochs, spread
from study.ranking.difference import Side
from study.spec import StudySpec, objective
from study.spec.objective import Objective

GAPS = (
    "equalized_odds",
    "equalized_odds_difference",
    "equal_opportunity",
    "demographic_parity",
    "accuracy_parity",
)


@styled
def trade_off(results: Results) -> Figure | None:
    """Draw accuracy over the fairness gap (FSCL paper Fig. 9): the search with its front, and fresh seeds.

    Of a final training with several metrics, the first over the second: its study has the figure of the front instead.
    """
    spec = results.spec
    metrics = trade_off_metrics(results) if spec.final_seeds is not None or not spec.objective.several else None
    if metrics is None:
        return None
    across, up = metrics
    reference, points = results.baseline, _points(results, across, up)
    names, measured = confirmed(results, across, up)
    if max(map(len, trade_off_marks(results))) < MIN_MARKS:
        return None
    if measured:
        ends = [measured[0], *([measured[-1]] if measured[-1][0].label == "baseline" else [])]
        where = f" on {'test' if names[0].startswith('test') else 'validation'}, {formatting.fresh(results.spec)}"
        title = _title(names, [(side.label, x.mean, y.mean) for side, (x, y) in ends], where)
    else:
        at = point(spec, reference, across, up) if reference else None
        title = _title(
            metrics, [(formatting.best(results), *points[0][1]), *([("baseline", *at)] if at else [])], " in the search"
        )
    figure, drawn = new(title, 4.0, bool(points) + bool(measured))
    axes = iter(drawn)
    if points:
        _search(results, next(axes), points, (across, up))
    if measured:
        _confirmed(spec, next(axes), measured, names)
    legend(figure, drawn[0])
    return figure


def trade_off_marks(results: Results) -> tuple[Sequence[object], Sequence[object]]:
    """Return what has both metrics: of the search, with the baseline, and of the configurations on fresh seeds."""
    metrics = trade_off_metrics(results)
    if metrics is None:
        return [], []
    points, reference = _points(results, *metrics), results.baseline
    at = point(results.spec, reference, *metrics) if reference and points else None
    return [*points, *([at] if at else [])], confirmed(results, *metrics)[1]


def trade_off_metrics(results: Results) -> tuple[str, str] | None:
    """Return the two metrics to weigh against one another, (across, up); None where the study has no such pair."""
    if results.spec.objective.several:
        up, across = results.spec.objective.metrics[:2]
        return across, up
    split, name = results.spec.metric.split("/")
    reported = _reported(results)
    if name in GAPS:
        return (results.spec.metric, f"{split}/accuracy") if f"{split}/accuracy" in reported else None
    gap = next((gap for gap in GAPS if f"{split}/{gap}" in reported), None)
    return (f"{split}/{gap}", results.spec.metric) if gap and results.spec.metric in reported else None


def value_of(spec: StudySpec, candidate: Candidate, name: str) -> float | None:
    """Return a metric of a configuration in the search: the mean over its replicates; None where one lacks it."""
    found = spread(epochs.value(spec.objective, trial, name) for trial in candidate.replicates)
    return found.mean if found and found.count == len(candidate.replicates) else None


def point(spec: StudySpec, candidate: Candidate, across: str, up: str) -> tuple[float, float] | None:
    """Return both metrics of a configuration; None where one is missing."""
    x, y = value_of(spec, candidate, across), value_of(spec, candidate, up)
    return None if x is None or y is None else (x, y)


def confirmed(
    results: Results, across: str, up: str
) -> tuple[tuple[str, str], list[tuple[Side, tuple[SeedStatistics, SeedStatistics]]]]:
    """Return the configurations on fresh seeds, or the final training, on the test split where it was read.

    Returns:
        The two metrics' names on that split, and the statistics of both over seeds for each configuration.
    """
    sides = results.fresh_sides
    for names in ((f"test/{across.split('/')[1]}", f"test/{up.split('/')[1]}"), (across, up)):
        spreads = [(side, side.spread(names[0]), side.spread(names[1])) for side in sides]
        if measured := [(side, (x, y)) for side, x, y in spreads if x and y]:
            break
    return names, measured


def front(
    spec: StudySpec, points: Sequence[tuple[Candidate, tuple[float, float]]], across: str, up: str
) -> list[tuple[float, float]]:
    """Return the points that keep the constraints and are not dominated in these metrics, from left to right."""
    kept = sorted(at for candidate, at in points if candidate.score.violation == 0)
    goal = Objective((across, up), (spec.direction(across) or "max", spec.direction(up) or "max"))
    scores = [score for x, y in kept if (score := goal.score({across: x, up: y}))]
    return [kept[place] for place in objective.front(scores)]


def has_front(results: Results) -> bool:
    """Return whether several configurations are on the front of the trade-off, so that it is drawn."""
    metrics = trade_off_metrics(results)
    return metrics is not None and len(set(front(results.spec, _points(results, *metrics), *metrics))) > 1


def _points(results: Results, across: str, up: str) -> list[tuple[Candidate, tuple[float, float]]]:
    """Return the configurations of the search with both metrics."""
    return [(candidate, at) for candidate in results.candidates if (at := point(results.spec, candidate, across, up))]


def _search(
    results: Results,
    axes: Axes,
    points: list[tuple[Candidate, tuple[float, float]]],
    names: tuple[str, str],
) -> None:
    spec, reference, places = results.spec, results.baseline, [place for _, place in points]
    mark = among(COMPLETE_MARK, len(points))
    axes.scatter(*zip(*places, strict=True), label=f"complete, {formatting.searched(spec)}", **mark)
    line = front(spec, points, *names)
    if len(set(line)) > 1:
        steps: Literal["post", "pre"] = "post" if spec.direction(names[0]) == "min" else "pre"
        axes.step(*zip(*line, strict=True), where=steps, color=ORANGE, linewidth=1.8, label="front", zorder=3)
    limits(spec, axes, names)
    axes.scatter(*[[x] for x in points[0][1]], label=formatting.best(results), **BEST_MARK, zorder=6)
    at = point(spec, reference, *names) if reference else None
    if at:
        axes.scatter(*[[x] for x in at], label="baseline", **BASELINE_MARK, zorder=5)
    axes.set_title("the search, validation split", loc="left")
    name_axes(spec, axes, names)


def _confirmed(
    spec: StudySpec,
    axes: Axes,
    measured: list[tuple[Side, tuple[SeedStatistics, SeedStatistics]]],
    names: Sequence[str],
) -> None:
    for place, (side, (x, y)) in enumerate(measured):
        colour = BLACK if side.label == "baseline" else BLUE
        axes.errorbar(
            x.mean, y.mean, xerr=x.deviation, yerr=y.deviation, fmt="o", color=colour, markersize=6, elinewidth=1.3
        )
        above = place % 2 == 0
        axes.annotate(
            plain(side.label),
            (x.mean, y.mean),
            xytext=(7, 7 if above else -7),
            textcoords="offset points",
            va="bottom" if above else "top",
            color=colour,
            fontweight="bold",
            fontsize=9.5,
        )
    axes.margins(0.18)
    split = "test" if names[0].startswith("test") else "validation"
    axes.set_title(f"{formatting.fresh(spec)}, {split} split, mean ± sd", loc="left")
    name_axes(spec, axes, names)


def name_axes(spec: StudySpec, axes: Axes, names: Sequence[str]) -> None:
    axes.set(xlabel=_axis_label(spec, names[0]), ylabel=_axis_label(spec, names[1]))
    metric_axis(axes, names[0], "x")
    metric_axis(axes, names[1])


def limits(spec: StudySpec, axes: Axes, names: Sequence[str]) -> None:
    """Draw lines at the limits on these two metrics: the study's constraints, and those of the choice."""
    for limit in dict.fromkeys((*spec.objective.constraints, *spec.objective.choose.limits)):
        if limit.metric in names:
            line = axes.axvline if limit.metric == names[0] else axes.axhline
            line(limit.limit, label=plain(str(limit)), color=VERMILLION, linewidth=1.2, linestyle=":")


def _reported(results: Results) -> set[str]:
    """Return the metrics of the trials' last reports."""
    return {name for trial in results.record.trials.values() for name in (trial.reports[-1] if trial.reports else ())}


def _title(names: tuple[str, str], told: Sequence[tuple[str, float, float]], where: str) -> str:
    """Return both metrics, across and up, of some configurations, and where they are from."""
    across, up = names
    texts = [f"{formatting.value(up, y)} and {formatting.value(across, x)} ({label})" for label, x, y in told]
    return f"{short(up).capitalize()} and {short(across)}{where}: {', '.join(texts)}"


def short(name: str) -> str:
    return "accuracy" if name.endswith("/accuracy") else name.split("/")[1].replace("_", " ")


LONG_NAME_CHARACTERS = 24
"""Length above which the name of a metric and its note take two lines on an axis."""


def _axis_label(spec: StudySpec, name: str) -> str:
    words = plain(name)
    space = "\n" if len(words) > LONG_NAME_CHARACTERS else " "
    return f"{words}{space}(lower is better)" if spec.direction(name) == "min" else words
