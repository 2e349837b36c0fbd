"""Why a figure of a study is not drawn."""

from collections.abc import Container

from study.analysis.figures.result_figures import paths_of, with_curve
from study.analysis.figures.style import MIN_MARKS
from study.analysis.figures.two_metrics import point, trade_off_marks, trade_off_metrics
from study.analysis.statistics import formatting
from study.analysis.statistics.frame import varied
from study.analysis.statistics.importance import explained
from study.ranking import Results
from study.text import counted

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
    search, spec, is_final = results.without_extensions, results.spec, results.spec.final_seeds is not None
    if name == "seeds" and is_final:
        return None if results.fresh_sides else "no seed of the final training is complete"
    if name == "seeds":
        why = f"no configuration has run on {formatting.fresh(spec)} (study confirm {spec.name})"
        return None if results.fresh_sides else why
    if name == "learning_curves":
        return None if with_curve(results) else f"no trial has reported {spec.metric}"
    if name == "ablation" and not is_final:
        return None if paths_of(results) else f"its steps have not run on a seed (study ablate {spec.name})"
    if name == "front" and not spec.objective.several:
        return "it has one metric"
    if name == "front" and not is_final:
        has_points = any(point(spec, each, *spec.objective.metrics[1::-1]) for each in results.comparable)
        return None if has_points else "no trial has a value of each metric"
    if name == "importance" and not is_final:
        return explained(search).missing or None
    if name == "trade_off" and spec.objective.several and not is_final:
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
    if is_final:
        return "a final training searches nothing"
    needed = {"slice": 1, "parallel_coordinate": 2}.get(name, 0)
    if len(varied(spec)) < needed:
        return f"{counted(len(varied(spec)), 'parameter')} searched, {needed} needed"
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
    has = f"{counted(marks, what, whats)} {'has' if marks == 1 else 'have'} {having}"
    return f"{has}, {MIN_MARKS} are needed" if marks < MIN_MARKS else None
