"""The figures as interactive Plotly plots for the HTML page: the reader can point at a trial, zoom and filter.

Each function draws the same as the Matplotlib figure of its name, and is called where that has something to draw.
"""

from collections.abc import Callable, Mapping

import plotly.graph_objects as go

from study.analysis.figures.interactive.bars import ablation, importance
from study.analysis.figures.interactive.curves import learning_curves, progress
from study.analysis.figures.interactive.parameters import parallel, parameters
from study.analysis.figures.interactive.search import best_over_time, hypervolume
from study.analysis.figures.interactive.seeds import seeds
from study.analysis.figures.interactive.surface import ranks, surface
from study.analysis.figures.interactive.timeline import timeline
from study.analysis.figures.interactive.tuning_curve import tuning_curve
from study.analysis.figures.interactive.two_metrics import trade_off, worst_group
from study.home.record import StudyRecord
from study.spec import StudySpec

INTERACTIVE: Mapping[str, Callable[[StudySpec, StudyRecord], go.Figure]] = {
    "seeds": seeds,
    "ablation": ablation,
    "learning_curves": learning_curves,
    "trade_off": trade_off,
    "hypervolume": hypervolume,
    "worst_group": worst_group,
    "parameters": parameters,
    "importance": importance,
    "surface": surface,
    "ranks": ranks,
    "parallel": parallel,
    "progress": progress,
    "best_over_time": best_over_time,
    "timeline": timeline,
    "tuning_curve": tuning_curve,
}
