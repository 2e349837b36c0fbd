"""The front of a study with several metrics, in its first two: in the search, on fresh seeds and on test."""

from collections.abc import Sequence
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study.analysis.figures.style import (
    BASELINE_MARK,
    BEST_MARK,
    COMPLETE_MARK,
    GREY,
    ORANGE,
    Mark,
    among,
    legend,
    new,
    styled,
)
from study.analysis.figures.two_metrics import limits, name_axes, point, short
from study.analysis.statistics import formatting
from study.ranking import Candidate, Results
from study.ranking.difference import Side, side_of
from study.spec import StudySpec

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
    figure, (first, *others) = new(_title(results, found[0][0]), 3.9, 1 + len(panels), sharey=False)
    numbers = {candidate.trial.number for candidate in on_front}
    _search(results, first, searched, numbers, not is_fresh, found[0][0])
    for axes, (of, shown) in zip(others, panels, strict=True):
        _fresh(results.spec, axes, shown, numbers, of)
    legend(figure, first)
    return figure


def joins_front(results: Results) -> bool:
    """Return whether the figure has a line that joins the front: of two metrics and more than one configuration."""
    return len(results.spec.objective.metrics) == 2 and len({score.gains for _, score in results.front}) > 1


def _search(
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
    """Name the axes in two lines each, as there are up to three panels side by side."""
    name_axes(spec, axes, names)
    axes.set(xlabel=axes.get_xlabel().replace(" (", "\n("), ylabel=axes.get_ylabel().replace(" (", "\n("))


def _join(spec: StudySpec, axes: Axes, line: Sequence[Point]) -> None:
    """Join the front by steps; of three metrics it is no line in two of them."""
    if len(spec.objective.metrics) == 2 and len(set(line)) > 1:
        steps: Literal["post", "pre"] = "post" if spec.objective.modes[1] == "min" else "pre"
        axes.step(*zip(*sorted(line), strict=True), where=steps, color=ORANGE, linewidth=1.8, label="front", zorder=3)


def _title(results: Results, best: Candidate) -> str:
    """Return what was chosen of the front, with its values in all metrics."""
    spec, side = results.spec, side_of(results.spec, best)
    values = ", ".join(f"{short(name)} {formatting.mean(name, side.spread(name))}" for name in spec.objective.metrics)
    label = side.label.capitalize()
    return f"{label}, {formatting.best(results)}: {values}"
