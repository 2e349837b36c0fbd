"""Two metrics at once: accuracy against a fairness gap, and the front of a study with several metrics."""

from collections.abc import Collection, Sequence
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study.analysis.figures.point_labels import LabelledPoint, label_points
from study.analysis.figures.style import (
    BASELINE_MARK,
    BEST_MARK,
    BLACK,
    BLUE,
    COMPLETE_MARK,
    GREY,
    MIN_PLOTTED_CONFIGURATIONS,
    ORANGE,
    REFERENCE_MARK,
    VERMILLION,
    MarkStyle,
    add_figure_legend,
    escape_dollars,
    format_metric_axis,
    mark_style_for_count,
    new_figure,
    with_figure_style,
    wrap_metric_name,
)
from study.analysis.statistics import formatting
from study.metrics import GAP_METRICS
from study.ranking import Candidate, FittedReference, Results, SeedStatistics
from study.ranking.arms import Arm, arm_of_candidate
from study.ranking.candidates import search_statistics
from study.spec import StudySpec, objective
from study.spec.objective import Objective, TrialScore

MetricValuePair = tuple[float, float]

BREAKS_CONSTRAINT_MARK: MarkStyle = {"color": "white", "edgecolors": GREY, "linewidths": 1.2}
"""How the mark of a configuration that breaks a limit differs from others."""


@with_figure_style
def plot_trade_off(results: Results) -> Figure | None:
    """Plot accuracy over the fairness gap (FSCL paper Fig. 9): the search with its front, and fresh seeds.

    Of a final training with several metrics, the first over the second: its study has the figure of the front instead.
    """
    spec = results.spec
    has_front = spec.objective.has_several_metrics and spec.final_seeds is None
    metrics = None if has_front else trade_off_metrics(results)
    if metrics is None:
        return None
    across, up = metrics
    baseline, points = results.baseline, _search_metric_values(results, across, up, results.ranked_search)
    names, measured = fresh_seed_arms_with_both_metrics(results, across, up)
    if max(map(len, trade_off_configurations(results))) < MIN_PLOTTED_CONFIGURATIONS:
        return None
    if measured:
        ends = [measured[0], *([measured[-1]] if measured[-1][0].label == "baseline" else [])]
        where = f" on {_split_text(names)}, {formatting.fresh_seeds_text(spec)}"
        title = _trade_off_title(names, [(arm.label, x.mean, y.mean) for arm, (x, y) in ends], where)
    else:
        at = metrics_in_search(spec, baseline, across, up) if baseline else None
        told = [(formatting.name_of_best(results), *points[0][1]), *([("baseline", *at)] if at else [])]
        title = _trade_off_title(metrics, told, " in the search")
    figure, drawn = new_figure(title, 4.0, bool(points) + bool(measured))
    axes, both = iter(drawn), [*points, *_search_metric_values(results, across, up, [baseline] if baseline else [])]
    if points:
        line = undominated_points(spec, points, across, up)
        _plot_search_configurations(results, next(axes), both, metrics, line, points[0][1])
    arms = [arm for arm, _ in measured]
    named = [_plot_fresh_seed_means(results, next(axes), arms, names)] if arms else []
    if arms and (marked := reference_in_trade_off(results)):
        x, y = (arm_of_candidate(spec, marked).metric_statistics(name) for name in names)
        assert x
        assert y
        panel, points_of_panel = named[0]
        panel.scatter([x.mean], [y.mean], label=f"reference: {marked.name_in_sentence}", **REFERENCE_MARK, zorder=3)
        points_of_panel.append((x.mean, y.mean, "reference"))
    add_figure_legend(figure, *drawn)
    label_points(figure, named)
    return figure


def is_trade_off_front_drawn(results: Results) -> bool:
    """Tell whether the figure joins the configurations of the search that no other beats in both metrics."""
    metrics = trade_off_metrics(results)
    if metrics is None:
        return False
    points = _search_metric_values(results, *metrics, results.ranked_search)
    return len(set(undominated_points(results.spec, points, *metrics))) > 1


def trade_off_configurations(results: Results) -> tuple[Sequence[object], Sequence[object]]:
    """Return what has both metrics: of the search, with the baseline, and of the configurations on fresh seeds."""
    metrics = trade_off_metrics(results)
    if metrics is None:
        return [], []
    points, baseline = _search_metric_values(results, *metrics, results.ranked_search), results.baseline
    at = metrics_in_search(results.spec, baseline, *metrics) if baseline and points else None
    return [*points, *([at] if at else [])], fresh_seed_arms_with_both_metrics(results, *metrics)[1]


def trade_off_metrics(results: Results) -> tuple[str, str] | None:
    """Return the two metrics to weigh against one another, (across, up); None where the study has no such pair."""
    if results.spec.objective.has_several_metrics:
        up, across = results.spec.objective.metrics[:2]
        return across, up
    split, name = results.spec.metric.split("/")
    reported = {name for trial in results.record.trials.values() for report in trial.reports[-1:] for name in report}
    if name in GAP_METRICS:
        return (results.spec.metric, f"{split}/accuracy") if f"{split}/accuracy" in reported else None
    gap = next((gap for gap in GAP_METRICS if f"{split}/{gap}" in reported), None)
    return (f"{split}/{gap}", results.spec.metric) if gap and results.spec.metric in reported else None


def metrics_in_search(spec: StudySpec, candidate: Candidate, across: str, up: str) -> MetricValuePair | None:
    """Return both metrics of a configuration in the search, means over its replicates; None where one lacks them."""
    x, y = (search_statistics(spec, candidate, name) for name in (across, up))
    return (x.mean, y.mean) if x and y and x.count == y.count == len(candidate.replicates) else None


def fresh_seed_arms_with_both_metrics(
    results: Results, across: str, up: str
) -> tuple[tuple[str, str], list[tuple[Arm, tuple[SeedStatistics, SeedStatistics]]]]:
    """Return the configurations on fresh seeds, or the final training, on the test split where it was read.

    Returns:
        The two metrics' names on that split, and the statistics of both over seeds for each configuration.
    """
    arms = results.fresh_seed_arms
    for names in ((f"test/{across.split('/')[1]}", f"test/{up.split('/')[1]}"), (across, up)):
        spreads = [(arm, arm.metric_statistics(names[0]), arm.metric_statistics(names[1])) for arm in arms]
        if measured := [(arm, (x, y)) for arm, x, y in spreads if x and y]:
            break
    return names, measured


def reference_in_trade_off(results: Results) -> FittedReference | None:
    """Return the reference that is the result, or the best, where it has the metrics of what ran on fresh seeds."""
    pair, best = trade_off_metrics(results), results.reference_as_result or results.best_reference
    if pair is None or best is None or results.spec.final_seeds is not None:
        return None
    names, measured = fresh_seed_arms_with_both_metrics(results, *pair)
    return best if measured and all(best.metrics.get(name) is not None for name in names) else None


def undominated_points(
    spec: StudySpec, points: Sequence[tuple[Candidate, MetricValuePair]], across: str, up: str
) -> list[MetricValuePair]:
    """Return the points that keep the constraints and are not dominated in these metrics, from left to right."""
    kept = sorted(at for candidate, at in points if candidate.score.total_violation == 0)
    goal = Objective((across, up), (spec.direction(across) or "max", spec.direction(up) or "max"))
    scores = [score for x, y in kept if (score := goal.score_of_report({across: x, up: y}))]
    return [kept[place] for place in objective.front_positions(scores)]


def _search_metric_values(
    results: Results, across: str, up: str, candidates: Sequence[Candidate]
) -> list[tuple[Candidate, MetricValuePair]]:
    """Return those of the configurations that have both metrics in the search."""
    pairs = ((candidate, metrics_in_search(results.spec, candidate, across, up)) for candidate in candidates)
    return [(candidate, at) for candidate, at in pairs if at]


def _plot_search_configurations(
    results: Results,
    axes: Axes,
    points: Sequence[tuple[Candidate, MetricValuePair]],
    names: tuple[str, str],
    line: Sequence[MetricValuePair],
    best: MetricValuePair | None,
    on_front: Sequence[MetricValuePair] = (),
) -> None:
    """Plot the configurations of the search and the baseline.

    Args:
        line: the front, to join.
        best: of what leads, for a ring.
        on_front: to mark as such.
    """
    spec = results.spec
    _plot_configuration_marks(spec, axes, [pair for pair in points if pair[0].trial.stage != "baseline"])
    if on_front:
        axes.scatter(*zip(*on_front, strict=True), label="on the front", **FRONT_MARK)
    _plot_front_line(spec, axes, line, names[0])
    plot_constraint_lines(spec, axes, names)
    if best:
        axes.scatter(*[[x] for x in best], label=formatting.name_of_best(results), **BEST_MARK, zorder=6)
    for candidate, at in points:
        if candidate.trial.stage == "baseline":
            _plot_baseline_mark(axes, candidate, at)
    axes.margins(0.12)
    axes.set_title("the search, validation", loc="left")
    label_metric_axes(spec, axes, names)


def _plot_configuration_marks(spec: StudySpec, axes: Axes, points: Sequence[tuple[Candidate, MetricValuePair]]) -> None:
    """Mark the configurations of the search, apart from the others those that break a limit."""
    label = f"complete, {formatting.search_value_basis_text(spec)}"
    breaks = broken_constraints_text(spec, *(candidate.score for candidate, _ in points))
    hollow: MarkStyle = {**COMPLETE_MARK, **BREAKS_CONSTRAINT_MARK}
    for is_broken, look, words in ((True, hollow, breaks), (False, COMPLETE_MARK, label)):
        if places := [at for candidate, at in points if (candidate.score.total_violation > 0) is is_broken]:
            axes.scatter(*zip(*places, strict=True), label=words, **mark_style_for_count(look, len(points)))


def broken_constraints_text(spec: StudySpec, *scores: TrialScore) -> str:
    """Return which limits the scores miss, for a legend; empty where they keep all."""
    broken = " or ".join(map(str, spec.objective.broken_constraints(*scores)))
    return broken and escape_dollars(f"breaks {broken}")


def _plot_baseline_mark(axes: Axes, baseline: Candidate, at: MetricValuePair) -> None:
    """Mark the baseline, hollow where it breaks a limit."""
    is_broken = baseline.score.total_violation > 0
    mark: MarkStyle = {**BASELINE_MARK, **BREAKS_CONSTRAINT_MARK} if is_broken else BASELINE_MARK
    axes.scatter(*[[x] for x in at], label=f"baseline{', breaks a limit' * is_broken}", **mark, zorder=5)


def _plot_fresh_seed_means(
    results: Results, axes: Axes, arms: Sequence[Arm], names: tuple[str, str], on_front: Collection[int] | None = None
) -> tuple[Axes, list[LabelledPoint]]:
    """Plot means and standard deviations on one split; return where they are, with what labels to write beside them.

    Args:
        on_front: trials of the front of the study's metrics, which alone have names then, and of which the first of
            `arms` is the chosen one; None: it has no such front, and the first and the baseline have names.
    """
    spec = results.spec
    broken = {each.trial.number: score for each, score in results.scored_candidates if score.total_violation > 0}
    breaks = broken_constraints_text(spec, *broken.values())
    line, points = [], list[LabelledPoint]()
    for place, arm in enumerate(arms):
        x, y = (arm.metric_statistics(name) for name in names)
        if x is None or y is None:
            continue
        is_baseline, is_front = arm.label == "baseline", arm.trial_number in (on_front or ())
        colour = BLACK if is_baseline else BLUE if on_front is None else ORANGE if is_front else GREY
        mark: MarkStyle = BASELINE_MARK if is_baseline else {**COMPLETE_MARK, "color": colour}
        mark = {**mark, **(BREAKS_CONSTRAINT_MARK if arm.trial_number in broken else {}), "zorder": 5}
        axes.errorbar(
            x.mean, y.mean, xerr=x.standard_deviation, yerr=y.standard_deviation, color=colour, elinewidth=1.3
        )
        axes.scatter([x.mean], [y.mean], label=breaks if arm.trial_number in broken else None, **mark)
        if place == 0 and on_front is not None:
            axes.scatter([x.mean], [y.mean], **BEST_MARK, zorder=6)
        is_named = is_baseline or place == 0 if on_front is None else is_front and not is_baseline
        points.append((x.mean, y.mean, arm.label if is_named else ""))
        line += [(x.mean, y.mean)] if is_front else []
    split = _split_text(names)
    if split != "test" and len(spec.objective.metrics) == 2:  # of three it is no line in two of them
        _plot_front_line(spec, axes, line, names[0])
    plot_constraint_lines(spec, axes, names)
    axes.margins(0.25)
    axes.set_title(f"{formatting.fresh_seeds_text(spec)}, {split}", loc="left")
    label_metric_axes(spec, axes, names)
    return axes, points


def _split_text(names: Sequence[str]) -> str:
    return "test" if names[0].startswith("test") else "validation"


def label_metric_axes(spec: StudySpec, axes: Axes, names: Sequence[str]) -> None:
    """Name the axes in several lines each, as there are up to three panels side by side."""
    words = [wrap_metric_name(escape_dollars(name)) for name in names]
    notes = ["\n(lower is better)" if spec.direction(name) == "min" else "" for name in names]
    axes.set(xlabel=words[0] + notes[0], ylabel=words[1] + notes[1])
    format_metric_axis(axes, names[0], "x")
    format_metric_axis(axes, names[1])


def plot_constraint_lines(spec: StudySpec, axes: Axes, names: Sequence[str]) -> None:
    """Plot lines at the limits on these two metrics."""
    for constraint in spec.objective.constraints:
        if constraint.metric in names:
            line = axes.axvline if constraint.metric == names[0] else axes.axhline
            label = escape_dollars(str(constraint))
            line(constraint.limit, label=label, color=VERMILLION, linewidth=1.2, linestyle=":")


def _trade_off_title(names: tuple[str, str], told: Sequence[tuple[str, float, float]], where: str) -> str:
    """Return both metrics, across and up, of some configurations, and where they are from."""
    across, up = names
    texts = [
        f"{formatting.format_metric_value(up, y)} and {formatting.format_metric_value(across, x)} ({label})"
        for label, x, y in told
    ]
    return f"{short_metric_name(up).capitalize()} and {short_metric_name(across)}{where}: {', '.join(texts)}"


def short_metric_name(name: str) -> str:
    return "accuracy" if name.endswith("/accuracy") else name.split("/")[1].replace("_", " ")


# The front, in its first two metrics: in the search, on fresh seeds and on test.


FRONT_MARK: MarkStyle = {**COMPLETE_MARK, "color": ORANGE, "zorder": 4.5}


@with_figure_style
def plot_front(results: Results) -> Figure | None:
    """Plot the front of a study with several metrics in its first two: the second across, the first up.

    The first panel has every configuration in the search, the second those that ran on fresh seeds, with their front,
    the third these on test, where it was read. None for a study with one metric.
    """
    if not results.spec.objective.has_several_metrics or results.spec.final_seeds is not None:
        return None
    names = results.spec.objective.metrics[1], results.spec.objective.metrics[0]
    found = results.scored_candidates
    searched = _search_metric_values(results, *names, results.ranked_all)
    if not searched:
        return None
    is_fresh = any(score is candidate.confirmed_score for candidate, score in found)
    arms = [arm_of_candidate(results.spec, candidate) for candidate, _ in found] if is_fresh else []
    tests = f"test/{names[0].split('/')[1]}", f"test/{names[1].split('/')[1]}"
    panels = [(of, arms) for of in (names, tests) if arms and any(arm.metric_statistics(of[0]) for arm in arms)]
    figure, (first, *others) = new_figure(_front_title(results, found[0][0]), 3.9, 1 + len(panels), sharey=False)
    numbers = {candidate.trial.number for candidate, score in results.front if score.total_violation == 0}
    on_front = [at for each, at in searched if each.trial.number in numbers]
    line = on_front if not is_fresh and len(results.spec.objective.metrics) == 2 else []
    chosen = found[0][0].trial.number
    best = next((at for each, at in searched if each.trial.number == chosen), None)
    _plot_search_configurations(results, first, searched, names, line, best, on_front)
    points = [
        _plot_fresh_seed_means(results, axes, shown, of, numbers)
        for axes, (of, shown) in zip(others, panels, strict=True)
    ]
    add_figure_legend(figure, first, *others)
    label_points(figure, points)
    return figure


def _plot_front_line(spec: StudySpec, axes: Axes, line: Sequence[MetricValuePair], across: str) -> None:
    """Join the front of two metrics by steps."""
    if len(set(line)) > 1:
        steps: Literal["post", "pre"] = "post" if spec.direction(across) == "min" else "pre"
        axes.step(*zip(*sorted(line), strict=True), where=steps, color=ORANGE, linewidth=1.8, label="front", zorder=3)


def _front_title(results: Results, best: Candidate) -> str:
    """Return what was chosen of the front, with its values in all metrics."""
    spec, arm = results.spec, arm_of_candidate(results.spec, best)
    names = spec.objective.metrics
    values = ", ".join(f"{short_metric_name(name)} {formatting.format_arm_mean(arm, name)}" for name in names)
    return f"{arm.label.capitalize()}, {formatting.name_of_best(results)}: {values}"
