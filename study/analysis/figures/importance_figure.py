"""The share of the metric's variance that each searched parameter explains, as bars with intervals."""

from matplotlib.figure import Figure

from study.analysis.figures.style import BLUE, GREY, ORANGE, PALE, label, new, styled
from study.analysis.statistics.importance import Importances, Share, explained
from study.ranking import Results
from study.spec import StudySpec
from study.text import counted

MUCH = 0.1
"""A share that is worth a sentence; said only where the whole interval is above it."""


@styled
def importance(results: Results) -> Figure | None:
    """Draw `explained` as bars: each parameter alone, their interactions, the remainder."""
    found = explained(results)
    if not found.shares:
        return None
    bars = bars_of(found)
    figure, (axes, *_) = new(title(results.spec, found), 1.4 + 0.5 * len(bars))
    for place, (_, share, colour) in enumerate(reversed(bars)):
        axes.barh(place, share.value, height=0.6, color=colour)
        axes.plot([share.low, share.high], [place, place], color=GREY, linewidth=1.6)
        words = f"{percent(share)}  ({100 * share.low:.0f} to {100 * share.high:.0f})"
        at = max(share.high, share.value)
        axes.annotate(words, (at, place), xytext=(5, 0), textcoords="offset points", va="center", fontsize=8.5)
    axes.set_yticks(range(len(bars)), [name for name, _, _ in reversed(bars)])
    axes.set_xlabel(f"share of the variance of {results.spec.metric} over the space, 95% interval")
    axes.set_xlim(0, 1.2)
    axes.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1.0], ["0", "20%", "40%", "60%", "80%", "100%"])
    axes.grid(visible=False, axis="y")
    return figure


def bars_of(found: Importances) -> list[tuple[str, Share, str]]:
    """Return label, share and colour of each bar: parameters by share, then interactions and remainder."""
    bars: list[tuple[str, Share, str]] = [
        (f"{label(key)}\n{counted(found.trials[key], 'trial')}", share, BLUE) for key, share in found.shares.items()
    ]
    bars += [("interactions of pairs", found.interactions, ORANGE)] if found.interactions else []
    bars += [("remainder: noise, and\nwhat is not resolved", found.remainder, PALE)] if found.remainder else []
    return bars


def title(spec: StudySpec, found: Importances) -> str:
    """Return what is sure enough to be said in a sentence."""
    key, share = next(iter(found.shares.items()))
    over = "among the trials that early stopping let through" if found.selected else "over the space"
    if share.low >= MUCH:
        return f"{key} alone explains {_words(share)} of the variance of {spec.metric} {over}"
    said = f"No parameter alone surely explains {100 * MUCH:.0f}% of the variance of {spec.metric} {over}"
    together = found.interactions
    return said + (f"; interactions explain {_words(together)}" if together and together.low >= MUCH else "")


def percent(share: Share) -> str:
    """Return a share as `48%`."""
    return f"{100 * share.value:.0f}%"


def _words(share: Share) -> str:
    return f"{percent(share)} (95%: {100 * share.low:.0f} to {100 * share.high:.0f})"
