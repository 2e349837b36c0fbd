"""Figures of the search that Optuna draws: with Plotly, to point at. Each has the name of Optuna's function."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil, floor, log10
from typing import TypedDict

import plotly.graph_objects as go
from optuna import visualization
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from study.analysis.figures.missing import OF_SEARCH
from study.analysis.figures.style import BLACK, MIN_MARKS
from study.analysis.statistics.frame import thin, varied
from study.metrics import in_percent
from study.ranking import Results
from study.ranking.as_optuna import as_optuna, in_memory
from study.spec import StudySpec

Draw = Callable[[Results, Study], go.Figure | None]

MAX_SHOWN_TRIALS = 300
"""Largest number of trials in a figure of parameters; of more, some are chosen evenly."""


def by_optuna(results: Results, names: Iterable[str] | None = None) -> dict[str, go.Figure]:
    """Return those of Optuna's figures, all unless `names` are given, that have something to show."""
    results = results.without_extensions
    if len(results.searched) < MIN_MARKS:
        return {}
    study = as_optuna(results)
    drawn = {name: OPTUNA[name](results, study) for name in names or OPTUNA}
    titles = {name: OF_SEARCH[name].capitalize().replace("The metric", results.spec.metric) for name in drawn}
    return {name: plain(figure, titles[name]) for name, figure in drawn.items() if figure and figure.data}


def optimization_history(results: Results, study: Study) -> go.Figure:
    """Plot the value of each complete trial, the best so far, and the baseline."""
    figure = visualization.plot_optimization_history(study, **_target(results.spec))
    figure.update_traces(hovertemplate="trial %{x}: %{y}<extra></extra>")
    return _of_values(results, figure)


def slices(results: Results, study: Study) -> go.Figure | None:
    """Plot the metric over each searched parameter; return None without one."""
    keys = _keys(results.spec, study)
    if not keys:
        return None
    figure = visualization.plot_slice(_few(results, study), keys, **_target(results.spec))
    figure.update_traces(hovertemplate="trial %{marker.color}: %{x}, %{y}<extra></extra>")
    for panel in figure.data:
        axis = figure.layout[(panel.xaxis or "x").replace("x", "xaxis")]
        if axis.type == "log":
            axis.update(tickvals=log_ticks(panel.x))
    return _of_values(results, figure)


def parallel_coordinate(results: Results, study: Study) -> go.Figure | None:
    """Plot each complete trial as a line through its values and parameters; return None below two parameters."""
    keys, several = _keys(results.spec, study), results.spec.objective.several
    if len(keys) < 2:
        return None
    few, draw = _few(results, study), visualization.plot_parallel_coordinate
    figure = draw(few, keys) if several else draw(few, keys, **_target(results.spec))
    shares = {axis for axis, metric in enumerate(results.spec.objective.metrics) if in_percent(metric)}
    for number in figure.layout.annotations:
        number.update(bgcolor="white", text=f"{100 * float(number.text):.3g}%" if number.x in shares else number.text)
    if not several and shares:
        figure.update_traces(marker_colorbar_tickformat=".1~%", selector={"mode": "markers"})
    return figure.update_traces(opacity=0.8, selector={"mode": "lines"})


def log_ticks(values: Sequence[float], most: int = 4) -> list[float]:
    """Return at most so many round numbers on a logarithmic axis that holds these positive values."""
    low, high = min(values), max(values)
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [float(f"{step}e{power}") for power in powers for step in steps]
        ticks = [tick for tick in ticks if 0.8 * low <= tick <= 1.25 * high]
        if len(ticks) <= most:
            break
    return ticks[:: ceil(len(ticks) / most) or 1]


OPTUNA: Mapping[str, Draw] = {
    "slice": slices,
    "parallel_coordinate": parallel_coordinate,
    "optimization_history": optimization_history,
}
"""Functions that draw the figures, by the names in the page and in `Study.figure`."""


class Target(TypedDict):
    """What Optuna's functions of one value take: the value of a trial, None: its only one, and its name."""

    target_name: str
    target: Callable[[FrozenTrial], float] | None


def _target(spec: StudySpec) -> Target:
    """Return the options by which Optuna's functions of one value take the study's metric, the first of several."""
    several = len(spec.objective.metrics) > 1
    return {"target_name": spec.metric, "target": (lambda trial: trial.values[0]) if several else None}


def _keys(spec: StudySpec, study: Study) -> list[str]:
    """Return the searched parameters that a complete trial has."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return [key for key in varied(spec) if any(key in trial.params for trial in complete)]


def _few(results: Results, study: Study) -> Study:
    """Return a study with at most `MAX_SHOWN_TRIALS` of the complete trials, the best among them."""
    kept = {candidate.trial.number for candidate in thin(results.searched, MAX_SHOWN_TRIALS)}
    return in_memory(results.spec, [trial for trial in study.trials if trial.number in kept])


def _of_values(results: Results, figure: go.Figure) -> go.Figure:
    """Add the baseline's value to a figure as a dashed line, and show accuracies in percent."""
    if reference := results.baseline:
        figure.add_hline(reference.value, line={"color": BLACK, "dash": "dash", "width": 1})
    return figure.update_yaxes(tickformat=".1~%" if in_percent(results.spec.metric) else None)


def plain(figure: go.Figure, title: str) -> go.Figure:
    """Give a figure a title, a white ground and the width of its place.

    Tags in texts of users are escaped; colours are darkened, so that none is too light on white.
    """
    rows = len({axis.domain for axis in figure.select_yaxes()})
    above = {"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom"}
    height, margin = 200 + 200 * rows, {"l": 60, "r": 20, "t": 60, "b": 60}
    heading = {"text": title, "x": 0.01, "y": 1 - 24 / height, "yref": "container", "yanchor": "middle"}
    figure.update_layout(template="plotly_white", width=None, height=height, legend=above, title=heading)
    figure.update_layout(margin=margin, font_size=13)
    figure.update_xaxes(exponentformat="e").update_yaxes(exponentformat="e")
    return go.Figure(_untagged(figure.to_dict()))


def _untagged(value: object) -> object:
    if isinstance(value, str):
        if rgb := re.fullmatch(r"rgb\(([\d.]+), *([\d.]+), *([\d.]+)\)", value):
            return f"rgb({', '.join(f'{0.8 * float(part):.0f}' for part in rgb.groups())})"
        return re.sub(r"<(?!/?(?:b|br|extra)>)", "&lt;", value)
    if isinstance(value, Mapping):
        return {key: _untagged(one) for key, one in value.items()}
    return [_untagged(one) for one in value] if isinstance(value, list | tuple) else value
