"""Two metrics at once: accuracy against a fairness gap, and the front of a study with several metrics."""

import re
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
    GREY,
    MIN_MARKS,
    ORANGE,
    VERMILLION,
    Mark,
    among,
    legend,
    metric_axis,
    new,
    plain,
    styled,
)
from study.analysis.statistics import formatting
from study.ranking import Candidate, Results, SeedStatistics, epochs, spread
from study.ranking.difference import Side, side_of
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


def undominated(
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
    return metrics is not None and len(set(undominated(results.spec, _points(results, *metrics), *metrics))) > 1


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
    line = undominated(spec, points, *names)
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


# The front, in its first two metrics: in the search, on fresh seeds and on test.


Point = tuple[float, float]

FRONT_MARK: Mark = {**COMPLETE_MARK, "color": ORANGE, "zorder": 4.5}


@styled
def front(results: Results) -> Figure | None:
    """Draw the front of a study with several metrics in its first two: the second across, the first up.

    The first panel has every configuration in the search, the second those that ran on fresh seeds, with their front,
    the third these on test, where it was read. None for a study with one metric.
    """
    if not results.spec.objective.several or results.spec.final_seeds is not None:
        return None
    names = results.spec.objective.metrics[1], results.spec.objective.metrics[0]
    found, on_front = results.judged, [candidate for candidate, _ in results.front]
    searched = [(each, at) for each in results.comparable if (at := point(results.spec, each, *names))]
    if not searched:
        return None
    is_fresh = any(score is candidate.confirmed_score for candidate, score in found)
    sides = [side_of(results.spec, candidate) for candidate, _ in found] if is_fresh else []
    tests = f"test/{names[0].split('/')[1]}", f"test/{names[1].split('/')[1]}"
    panels = [(of, sides) for of in (names, tests) if sides and any(side.spread(of[0]) for side in sides)]
    figure, (first, *others) = new(_front_title(results, found[0][0]), 3.9, 1 + len(panels), sharey=False)
    numbers = {candidate.trial.number for candidate in on_front}
    _front_search(results, first, searched, numbers, not is_fresh, found[0][0])
    for axes, (of, shown) in zip(others, panels, strict=True):
        _fresh(results.spec, axes, shown, numbers, of)
    legend(figure, first)
    return figure


def joins_front(results: Results) -> bool:
    """Return whether the figure has a line that joins the front: of two metrics and more than one configuration."""
    return len(results.spec.objective.metrics) == 2 and len({score.gains for _, score in results.front}) > 1


def _front_search(
    results: Results,
    axes: Axes,
    searched: Sequence[tuple[Candidate, Point]],
    on_front: set[int],
    is_line: bool,
    best: Candidate,
) -> None:
    spec, by_number = results.spec, {candidate.trial.number: at for candidate, at in searched}
    names = spec.objective.metrics[1], spec.objective.metrics[0]
    mark = among(COMPLETE_MARK, len(searched))
    points = [at for candidate, at in searched if candidate.trial.stage == "search"]
    if points:
        axes.scatter(*zip(*points, strict=True), label=f"complete, {formatting.searched(spec)}", **mark)
    line = [by_number[number] for number in on_front if number in by_number]
    if line:
        axes.scatter(*zip(*line, strict=True), label="on the front", **FRONT_MARK)
    if is_line:
        _join(spec, axes, line)
    limits(spec, axes, names)
    if at := by_number.get(best.trial.number):
        axes.scatter(*[[x] for x in at], label=formatting.best(results), **BEST_MARK, zorder=6)
    if reference := [at for candidate, at in searched if candidate.trial.stage == "baseline"]:
        axes.scatter(*zip(*reference, strict=True), label="baseline", **BASELINE_MARK, zorder=5)
    axes.margins(0.12)
    axes.set_title("the search, validation", loc="left")
    _name_axes(spec, axes, names)


def _fresh(spec: StudySpec, axes: Axes, sides: Sequence[Side], on_front: set[int], names: tuple[str, str]) -> None:
    """Draw means and standard deviations on one split, with the numbers of the trials on the front.

    The first of `sides` is the chosen one.
    """
    line = []
    for place, side in enumerate(sides):
        x, y = side.spread(names[0]), side.spread(names[1])
        if x is None or y is None:
            continue
        colour = ORANGE if side.number in on_front else GREY
        mark: Mark = BASELINE_MARK if side.label == "baseline" else {**COMPLETE_MARK, "color": colour}
        mark = {**mark, "zorder": 5}
        axes.errorbar(x.mean, y.mean, xerr=x.deviation, yerr=y.deviation, color=colour, elinewidth=1.3)
        axes.scatter([x.mean], [y.mean], **mark)
        if place == 0:
            axes.scatter([x.mean], [y.mean], **BEST_MARK, zorder=6)
        if side.number in on_front and side.label != "baseline":
            at = (x.mean, y.mean)
            axes.annotate(str(side.number), at, xytext=(5, 5), textcoords="offset points", fontsize=8.5, zorder=7)
        line += [(x.mean, y.mean)] if side.number in on_front else []
    is_test = names[0].startswith("test")
    if not is_test:
        _join(spec, axes, line)
    limits(spec, axes, names)
    axes.margins(0.2)
    axes.set_title(f"{formatting.fresh(spec)}, {'test' if is_test else 'validation'}", loc="left")
    _name_axes(spec, axes, names)
    axes.set_ylabel("")


def _name_axes(spec: StudySpec, axes: Axes, names: tuple[str, str]) -> None:
    """Name the axes in several lines each, as there are up to three panels side by side."""
    name_axes(spec, axes, names)
    note = axes.get_xlabel()[len(plain(names[0])) :].replace(" (", "\n(")
    axes.set(xlabel=_broken(plain(names[0])) + note, ylabel=axes.get_ylabel().replace(" (", "\n("))


PANEL_CHARACTERS = 20
"""Characters of a line below one of three panels."""


def _broken(name: str) -> str:
    """Return a metric's name in lines that fit below a panel, broken behind `/` and `_`."""
    lines = [""]
    for part in re.findall(r"[^/_]*[/_]?", name):
        if lines[-1] and len(lines[-1] + part) > PANEL_CHARACTERS:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _join(spec: StudySpec, axes: Axes, line: Sequence[Point]) -> None:
    """Join the front by steps; of three metrics it is no line in two of them."""
    if len(spec.objective.metrics) == 2 and len(set(line)) > 1:
        steps: Literal["post", "pre"] = "post" if spec.objective.modes[1] == "min" else "pre"
        axes.step(*zip(*sorted(line), strict=True), where=steps, color=ORANGE, linewidth=1.8, label="front", zorder=3)


def _front_title(results: Results, best: Candidate) -> str:
    """Return what was chosen of the front, with its values in all metrics."""
    spec, side = results.spec, side_of(results.spec, best)
    values = ", ".join(f"{short(name)} {formatting.mean(name, side.spread(name))}" for name in spec.objective.metrics)
    label = side.label.capitalize()
    return f"{label}, {formatting.best(results)}: {values}"
