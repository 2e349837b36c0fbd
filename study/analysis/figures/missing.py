"""Why a figure of a study is not drawn."""

from collections.abc import Container

from study.analysis.figures.style import MIN_MARKS
from study.analysis.figures.two_metrics import trade_off_marks, trade_off_metrics
from study.analysis.statistics import formatting
from study.analysis.statistics.frame import varied
from study.analysis.statistics.importance import explained
from study.ranking import Results

OF_SEARCH = {
    "importance": "how important each parameter is",
    "trade_off": "one metric over the other",
    "slice": "the metric over each parameter",
    "parallel_coordinate": "all parameters side by side",
    "optimization_history": "the metric in the order of the trials",
}
"""What each figure shows that the report names as missing, where the study could have it."""


def why_missing(name: str, results: Results) -> str | None:
    """Return why a figure is not drawn, to stand behind a colon; None where it is drawn."""
    search = results.without_extensions
    if name == "seeds":
        return f"no configuration has run on {formatting.fresh(results.spec)} (study confirm {results.spec.name})"
    if name == "ablation":
        return f"its steps have not run on a seed (study ablate {results.spec.name})"
    if name == "learning_curves":
        return f"no trial has reported {results.spec.metric}"
    if name == "importance":
        return explained(search).missing or None
    if name == "front":
        return "it has one metric" if not results.spec.objective.several else "no trial has a value of each metric"
    if name == "trade_off" and results.spec.objective.several and results.spec.final_seeds is None:
        return "the figure of the front has its metrics"
    if name == "trade_off":
        if trade_off_metrics(search) is None:
            return "the trials do not report the study's metric with a fairness gap or a second metric"
        return _too_few(
            max(map(len, trade_off_marks(search))),
            "configuration",
            "configurations",
            "both metrics",
        )
    if results.spec.final_seeds is not None:
        return "a final training searches nothing"
    needed = {"slice": 1, "parallel_coordinate": 2}.get(name, 0)
    if len(varied(results.spec)) < needed:
        return f"{formatting.count(len(varied(results.spec)), 'parameter')} searched, {needed} needed"
    return _too_few(len(search.searched), "trial of the search", "trials of the search", "a value")


def not_shown(results: Results, drawn: Container[str]) -> list[str]:
    """Return a sentence for each reason for which figures of `OF_SEARCH` are not drawn.

    Figures that this study cannot have, as of parameters where none is searched, are left out.
    """
    if results.spec.final_seeds is not None:
        return []
    by_reason: dict[str, list[str]] = {}
    has_pair = trade_off_metrics(results) is not None and not results.spec.objective.several
    possible = {"trade_off": has_pair, "parallel_coordinate": len(varied(results.spec)) > 1}
    for name, words in OF_SEARCH.items():
        reason = None if name in drawn else why_missing(name, results)
        if reason and possible.get(name, bool(varied(results.spec))):
            by_reason.setdefault(reason, []).append(words)
    return [f"Not shown: {formatting.listed(words)}. The reason: {reason}." for reason, words in by_reason.items()]


def _too_few(marks: int, what: str, whats: str, having: str) -> str | None:
    has = f"{formatting.count(marks, what, whats)} {'has' if marks == 1 else 'have'} {having}"
    return f"{has}, {MIN_MARKS} are needed" if marks < MIN_MARKS else None
