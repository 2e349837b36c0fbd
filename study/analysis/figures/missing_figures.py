"""Why a figure of a study is not drawn."""

from collections.abc import Container

from study.analysis.figures.result_figures import ablation_path_effects_by_metric, trials_with_curve
from study.analysis.figures.style import MIN_PLOTTED_CONFIGURATIONS
from study.analysis.figures.trade_off_figures import metrics_in_search, trade_off_configurations, trade_off_metrics
from study.analysis.statistics import formatting
from study.analysis.statistics.importance import compute_importances
from study.analysis.statistics.trials_frame import varied_domains
from study.ranking import Results
from study.text import pluralise

SEARCH_FIGURES_IN_WORDS = {"importance": "how important each parameter is", "trade_off": "one metric over the other"}
"""What each figure shows that the report names as missing, where the study could have it."""


def why_figure_missing(name: str, results: Results) -> str | None:
    """Return why a figure is not drawn, to stand behind a colon; None where it is drawn."""
    spec, is_final = results.spec, results.spec.final_seeds is not None
    if name == "seeds" and is_final:
        return None if results.fresh_seed_arms else "no seed of the final training is complete"
    if name == "seeds":
        why = f"no configuration has run on {formatting.fresh_seeds_text(spec)} (study confirm {spec.name})"
        return None if results.fresh_seed_arms else why
    if name == "learning_curves":
        return None if trials_with_curve(results) else f"no trial has reported {spec.metric} in two epochs"
    if name == "ablation" and not is_final:
        has_path = bool(ablation_path_effects_by_metric(results))
        return None if has_path else f"its steps have not run on a seed (study ablate {spec.name})"
    if name == "front" and not spec.objective.has_several_metrics:
        return "it has one metric"
    if name == "front" and not is_final:
        has_points = any(metrics_in_search(spec, each, *spec.objective.metrics[1::-1]) for each in results.ranked_all)
        return None if has_points else "no trial has a value of each metric"
    if name == "importance" and not is_final:
        return compute_importances(results).why_missing or None
    if name == "trade_off" and spec.objective.has_several_metrics and not is_final:
        return "the figure of the front has its metrics"
    if name == "trade_off":
        if trade_off_metrics(results) is None:
            return "the trials do not report the study's metric with a fairness gap or a second metric"
        marks = max(map(len, trade_off_configurations(results)))
        has = f"{pluralise(marks, 'configuration')} {'has' if marks == 1 else 'have'} both metrics"
        return f"{has}, {MIN_PLOTTED_CONFIGURATIONS} are needed" if marks < MIN_PLOTTED_CONFIGURATIONS else None
    return "a final training searches nothing"


def why_search_figures_missing(results: Results, drawn: Container[str]) -> list[str]:
    """Return a sentence for each reason for which figures of `SEARCH_FIGURES_IN_WORDS` are not drawn.

    Figures that this study cannot have, as of parameters where none is searched, are left out.
    """
    if results.spec.final_seeds is not None:
        return []
    by_reason: dict[str, list[str]] = {}
    has_pair = trade_off_metrics(results) is not None and not results.spec.objective.has_several_metrics
    possible = {"trade_off": has_pair, "importance": bool(varied_domains(results.spec))}
    for name, words in SEARCH_FIGURES_IN_WORDS.items():
        reason = None if name in drawn else why_figure_missing(name, results)
        if reason and possible[name]:
            by_reason.setdefault(reason, []).append(words)
    return [
        f"Not shown: {formatting.join_with_and(words)}. The reason: {reason}." for reason, words in by_reason.items()
    ]
