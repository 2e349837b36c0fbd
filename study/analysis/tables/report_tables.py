"""The report's tables, as text."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from study.analysis.statistics import debiasing_metrics, formatting
from study.analysis.statistics.trials_frame import param_key_columns, trial_label, trial_param_text
from study.metrics.summary_metrics import list_summary_metrics
from study.ranking import Candidate, Results
from study.ranking.arms import Arm, arm_of_candidate, metrics_of_both_splits
from study.ranking.candidates import search_statistics
from study.ranking.final_model import ensemble_statistics
from study.ranking.study_summary import metrics_at_other_epochs
from study.spec import StudySpec
from study.spec.objective import TrialScore

MAX_LISTED_CONFIGURATIONS = 10  # configurations that the report lists


def best_configurations_table(results: Results) -> pd.DataFrame:
    """Return the best complete configurations of the search, the best first, then the baseline, as text.

    Columns: each metric in the search, on the fresh seeds once any ran on some, and the parameters that any of them
    has. A trial that breaks a limit has `BROKEN_CONSTRAINT_MARK` behind its number, see `broken_constraints_note`.
    """
    spec = results.spec
    listed = _listed_candidates(results)
    keys = param_key_columns(spec, results.record.trials.values())
    texts = {key: [trial_param_text(spec, candidate.trial, key) for candidate in listed] for key in keys}
    texts = {key: of_key for key, of_key in texts.items() if set(of_key) != {formatting.MISSING_TEXT}}
    metrics = {name: f"{_metric_title(spec, name)} in the search" for name in spec.objective.needed_metrics}
    are_confirmed = any(candidate.confirm_trials for candidate in listed)
    rows = []
    for place, candidate in enumerate(listed):
        mark = f" {BROKEN_CONSTRAINT_MARK}" if _judging_score(results, candidate).total_violation > 0 else ""
        row = {"trial": trial_label(candidate.trial) + mark}
        for name, title in metrics.items():
            row[title] = formatting.format_mean_and_deviation(name, search_statistics(spec, candidate, name))
        row |= _fresh_seed_columns(spec, candidate) if are_confirmed else {}
        rows.append(row | {key: of_key[place] for key, of_key in texts.items()})
    return pd.DataFrame(rows)


BROKEN_CONSTRAINT_MARK = "†"
"""Stands behind the number of a trial that breaks a limit."""


def broken_constraints_note(results: Results) -> str:
    """Return which limits the trials that `best_configurations_table` marks break; empty where it marks none."""
    scores = (_judging_score(results, candidate) for candidate in _listed_candidates(results))
    broken = results.spec.objective.broken_constraints(*scores)
    where = f", by the means on {formatting.fresh_seeds_text(results.spec)} where there are any" * results.is_confirmed
    return f"{BROKEN_CONSTRAINT_MARK} breaks {' or '.join(map(str, broken))}{where}." if broken else ""


def _listed_candidates(results: Results) -> list[Candidate]:
    return [*results.ranked_search[:MAX_LISTED_CONFIGURATIONS], *([results.baseline] if results.baseline else [])]


def _judging_score(results: Results, candidate: Candidate) -> TrialScore:
    return (candidate.confirmed_score if results.is_confirmed else None) or candidate.score


def _fresh_seed_columns(spec: StudySpec, candidate: Candidate) -> dict[str, str]:
    seeds = formatting.seed_numbers_text([trial.seed for trial in candidate.confirm_trials])
    arm, metrics = replace(arm_of_candidate(spec, candidate), trials=candidate.confirm_trials), spec.objective.metrics
    where = formatting.fresh_seeds_text(spec)
    titles = [f"{name} on {where}" for name in metrics] if len(metrics) > 1 else [f"confirmed on {where}"]
    means = (formatting.format_mean_and_deviation(name, arm.metric_statistics(name)) for name in metrics)
    return {**dict(zip(titles, means, strict=True)), "seeds": seeds}


def _metric_title(spec: StudySpec, name: str) -> str:
    """Return a metric's name; with several metrics also which values are better."""
    return formatting.metric_with_direction(spec, name) if spec.objective.has_several_metrics else name


def summary_table_metrics(results: Results) -> list[str]:
    """Return the metrics of the report's summary, see `study.metrics.summary_metrics.list_summary_metrics`."""
    names = metrics_of_both_splits(results.spec, list(_compared_arms_by_name(results).values()))
    own, cells = results.spec.objective.needed_metrics, results.record.group_sample_counts.cells
    return list_summary_metrics(own, names, cells) or names[:2]


def summary_table(results: Results) -> pd.DataFrame:
    """Return `baseline_and_result_table` for `summary_table_metrics`, with the split's error where that is known.

    That is how far the value of the best or the final training may be off because its split is a sample. A final
    training also has the interval by both errors.
    """
    by_name = _compared_arms_by_name(results)
    arm = by_name.get("best") or by_name.get("final") or by_name.get("baseline")
    metrics = _metrics_with_value(summary_table_metrics(results), by_name)
    frame = baseline_and_result_table(results, metrics)
    errors = [debiasing_metrics.sampling_standard_error(results.record, arm, name) if arm else None for name in metrics]
    if any(error is not None for error in errors):
        printed = [
            formatting.MISSING_TEXT if error is None else formatting.format_difference(name, error, signed=False)
            for name, error in zip(metrics, errors, strict=True)
        ]
        place = len(frame.columns) - (2 if ensemble_statistics(results.record) else 1)
        frame.insert(place, "split's error", printed)
        if arm and results.spec.final_seeds is not None:
            found = [debiasing_metrics.statistics_with_sampling_error(results.record, arm, name) for name in metrics]
            ends = [
                formatting.format_value_interval(name, spread.confidence_interval() if spread else None)
                for name, spread in zip(metrics, found, strict=True)
            ]
            frame.insert(place + 1, "95% interval", ends)
    return frame


def baseline_and_result_table(results: Results, metrics: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the baseline against the study's result, or the final training alone, as text: a row per metric.

    The study's own metrics on both splits come first. Columns: mean ± sd of each arm, the difference with its 95%
    interval or what a final training's networks reach as one model, the seeds.

    Args:
        metrics: to show; None: all.
    """
    by_name, won = _compared_arms_by_name(results), results.best
    rows = []
    known, ensemble = {name: arm for name, arm in by_name.items() if arm}, ensemble_statistics(results.record)
    if metrics is None:
        metrics = metrics_of_both_splits(results.spec, list(by_name.values()))
    for metric in _metrics_with_value(metrics, by_name):
        row = {"metric": metric}
        for name, arm in known.items():
            title = f"{name} ({arm.label})" if arm.label not in (name, "final training") else name
            if name == "best" and results.references_above_best:
                title = title.replace("best", "result" if results.reference_as_result else "search")
            elif name == "best":
                is_behind = won is not None and won.trial.stage == "baseline"
                title = title.replace("best", formatting.name_of_best(results) + " of the search" * is_behind)
            row[title] = formatting.format_mean_and_deviation(metric, arm.metric_statistics(metric))
        if len(known) == 2:
            gain = known["best"].difference_to(known["baseline"], metric)
            row["difference"] = row["95% interval"] = formatting.MISSING_TEXT
            if gain:
                ends = formatting.printed_interval_ends(gain)
                row["difference"] = formatting.format_difference(metric, gain.value, beside=ends)
                row["95% interval"] = formatting.format_difference_interval(metric, gain)
        if ensemble:
            row["ensemble"] = formatting.format_metric_value(
                metric, ensemble[metric].mean if metric in ensemble else None
            )
        row["seeds"] = " / ".join(dict.fromkeys(_seed_numbers_text(arm, metric) for arm in known.values()))
        rows.append(row)
    return pd.DataFrame(rows)


def _seed_numbers_text(arm: Arm, metric: str) -> str:
    """Return the seeds behind an arm's value; what needs no search has none."""
    return "no seed" if arm.is_fitted_without_seed else formatting.seed_numbers_text(arm.metric_seeds(metric))


def _metrics_with_value(metrics: Sequence[str], by_name: dict[str, Arm | None]) -> list[str]:
    """Return those of the metrics of which an arm has a value."""
    return [name for name in metrics if any(arm and arm.metric_statistics(name) for arm in by_name.values())]


def other_epochs_table(results: Results) -> pd.DataFrame:
    """Return the study's metrics at other epochs than the chosen one; empty without any.

    See `study.ranking.study_summary.metrics_at_other_epochs`.
    """
    by_arm = {
        name: {
            f"{metric} {which}": spread
            for which, of in metrics_at_other_epochs(results.spec, arm.trials).items()
            for metric, spread in of.items()
        }
        for name, arm in _compared_arms_by_name(results).items()
        if arm
    }
    names = dict.fromkeys(name for values in by_arm.values() for name in values)
    rows = [
        {
            "beside": name,
            **{
                who: formatting.format_mean_and_deviation(name.split()[0], values.get(name))
                for who, values in by_arm.items()
            },
        }
        for name in names
    ]
    return pd.DataFrame(rows)


def _compared_arms_by_name(results: Results) -> dict[str, Arm | None]:
    if results.spec.final_seeds is not None:
        return {"final": results.final_training_arm}
    baseline, best = results.baseline_and_result_arms
    return {"baseline": baseline, "best": best}
