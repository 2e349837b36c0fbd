"""How much each searched parameter matters to the study's metric, as bars."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from study.analysis.figures.style import BLUE, ORANGE, label, legend, new, styled
from study.analysis.statistics import formatting
from study.analysis.statistics.importance import importances
from study.home.record import StudyRecord
from study.spec import StudySpec


@styled
def importance(spec: StudySpec, record: StudyRecord) -> Figure | None:
    """`importances` as bars, each with the number of trials behind it."""
    frame = importances(spec, record)
    if not len(frame):
        return None
    figure, (axes, *_) = new(_title(spec, frame), 1.5 + 0.55 * len(frame))
    places = range(len(frame) - 1, -1, -1)
    for shift, name, colour, meaning in (
        (0.19, "fanova", BLUE, "over the whole space (fANOVA)"),
        (-0.19, "ped_anova", ORANGE, "among the best tenth (PED-ANOVA)"),
    ):
        axes.barh([place + shift for place in places], frame[name], height=0.34, color=colour, label=meaning)
    for place, (_, row) in zip(places, frame.iterrows(), strict=True):
        for shift, name in ((0.19, "fanova"), (-0.19, "ped_anova")):
            axes.annotate(
                f"{100 * row[name]:.0f}%",
                (row[name], place + shift),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8.5,
            )
    counts = [formatting.count(int(count), "trial") for count in frame["trials"]]
    axes.set_yticks(list(places), [f"{label(key)}\n{n}" for key, n in zip(frame.index, counts, strict=True)])
    axes.set_xlabel("importance, share")
    axes.set_xlim(0, 1.08)
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    legend(figure, axes)
    return figure


def _title(spec: StudySpec, frame: pd.DataFrame) -> str:
    if frame["trials"].nunique() > 1:  # shares of different totals
        return f"Importance for {spec.metric}, among the parameters that the same trials have"
    share = 100 * frame["fanova"].iloc[0]
    return f"{frame.index[0]} matters most to {spec.metric}: {share:.0f}% of the importance (fANOVA)"
