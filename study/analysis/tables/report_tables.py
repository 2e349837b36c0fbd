"""The report's tables, as text."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from study.analysis.statistics import debiasing_metrics, formatting
from study.analysis.statistics.frame import numbered, param_keys, shown
from study.home.record import StudyRecord
from study.metrics import selection_rules
from study.ranking import Candidate, Results, SeedStatistics, epochs, spread
from study.ranking.difference import NO_TRIAL, Difference, Side, side_of, split_metrics
from study.ranking.summary import beside
from study.spec import StudySpec

STATES = ("complete", "pruned", "failed", "interrupted", "running", "waiting")

TOP = 10  # configurations that the report lists
STAGES = ("baseline", "search", "replicate", "confirm", "rule", "ablation", "final")


def printed_configurations(results: Results) -> pd.DataFrame:
    """Return the best complete configurations of the search, the best first, then the baseline, as text.

    Columns: each metric in the search, on the fresh seeds once any ran on some, and the parameters.
    """
    spec = results.spec
    keys = param_keys(spec, results.record.trials.values())
    listed = [*results.candidates[:TOP], results.baseline]
    metrics = {name: f"{_title(spec, name)} in the search" for name in spec.objective.needed}
    are_confirmed = any(candidate and candidate.repeats for candidate in listed)
    rows = [
        {
            "trial": numbered(candidate.trial),
            **{title: formatting.mean(name, _in_search(spec, candidate, name)) for name, title in metrics.items()},
            **(_on_fresh_seeds(spec, candidate) if are_confirmed else {}),
            **{key: shown(spec, candidate.trial, key) for key in keys},
        }
        for candidate in listed
        if candidate is not None
    ]
    return pd.DataFrame(rows)


def _on_fresh_seeds(spec: StudySpec, candidate: Candidate) -> dict[str, str]:
    seeds = formatting.seed_list([trial.seed for trial in candidate.repeats])
    side, metrics = replace(side_of(spec, candidate), trials=candidate.repeats), spec.objective.metrics
    titles = (
        [f"{name} on {formatting.fresh(spec)}" for name in metrics]
        if len(metrics) > 1
        else [f"confirmed on {formatting.fresh(spec)}"]
    )
    means = (formatting.mean(name, side.spread(name)) for name in metrics)
    return {**dict(zip(titles, means, strict=True)), "seeds": seeds}


def _title(spec: StudySpec, name: str) -> str:
    """Return a metric's name; with several metrics also which values are better."""
    return formatting.with_direction(spec, name) if spec.objective.several else name


def summary_metrics(results: Results) -> list[str]:
    """Return the metrics of the summary, see `study.metrics.selection_rules.leading`."""
    names = split_metrics(results.spec, list(_sides_by_name(results).values()))
    return selection_rules.leading(results.spec.objective.needed, names, results.record.groups.cells) or names[:2]


def printed_first(results: Results) -> pd.DataFrame:
    """Return the rows of `printed_summary` for `summary_metrics`, with the split's error where it is known.

    It is how far the value of the best or the final training may be off because its split is a sample. A final training
    also has the interval by both errors.
    """
    by_name = _sides_by_name(results)
    side = by_name.get("best") or by_name.get("final") or by_name.get("baseline")
    metrics = _measured(summary_metrics(results), by_name)
    frame = printed_summary(results, metrics)
    errors = [debiasing_metrics.sampling_error(results.record, side, name) if side else None for name in metrics]
    if any(error is not None for error in errors):
        printed = [
            formatting.MISSING if error is None else formatting.change(name, error, signed=False)
            for name, error in zip(metrics, errors, strict=True)
        ]
        frame.insert(len(frame.columns) - 1, "split's error", printed)
        if side and results.spec.final_seeds is not None:
            found = [debiasing_metrics.with_error(results.record, side, name) for name in metrics]
            ends = [
                formatting.between(name, spread.interval() if spread else None)
                for name, spread in zip(metrics, found, strict=True)
            ]
            frame.insert(len(frame.columns) - 1, "95% interval", ends)
    return frame


def printed_summary(results: Results, metrics: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the baseline against the study's result, or the final training alone, as text: a row per metric.

    The study's own metrics on both splits come first. Columns: mean ± sd of each side, the difference with its 95%
    interval, the seeds.

    Args:
        metrics: to show; None: all.
    """
    by_name, won = _sides_by_name(results), results.best
    rows = []
    known = {name: side for name, side in by_name.items() if side}
    for metric in _measured(
        split_metrics(results.spec, list(by_name.values())) if metrics is None else metrics, by_name
    ):
        row = {"metric": metric}
        for name, side in known.items():
            title = f"{name} ({side.label})" if side.label not in (name, "final training") else name
            if name == "best" and results.above:
                title = title.replace("best", "result" if results.unbeaten else "search")
            elif name == "best":
                is_behind = won is not None and won.trial.stage == "baseline"
                title = title.replace("best", formatting.best(results) + " of the search" * is_behind)
            row[title] = formatting.mean(metric, side.spread(metric))
        if len(known) == 2:
            gain = _gain(by_name, metric)
            row["difference"] = formatting.change(metric, gain.value) if gain else formatting.MISSING
            row["95% interval"] = formatting.interval(metric, gain) if gain else formatting.MISSING
        row["seeds"] = " / ".join(dict.fromkeys(_seeds_of(side, metric) for side in known.values()))
        rows.append(row)
    return pd.DataFrame(rows)


def _seeds_of(side: Side, metric: str) -> str:
    """Return the seeds behind a side's value; what needs no search has none."""
    return "no seed" if side.number == NO_TRIAL else formatting.seed_list(side.seeds(metric))


def _measured(metrics: Sequence[str], by_name: dict[str, Side | None]) -> list[str]:
    """Return those of the metrics of which a side has a value."""
    return [name for name in metrics if any(side and side.spread(name) for side in by_name.values())]


def printed_beside(results: Results) -> pd.DataFrame:
    """Return the study's metrics at other epochs than the chosen one; empty without any.

    See `study.ranking.summary.beside`.
    """
    by_side = {
        name: {
            f"{metric} {which}": spread
            for which, of in beside(results.spec, side.trials).items()
            for metric, spread in of.items()
        }
        for name, side in _sides_by_name(results).items()
        if side
    }
    names = dict.fromkeys(name for values in by_side.values() for name in values)
    rows = [
        {
            "beside": name,
            **{side: formatting.mean(name.split()[0], values.get(name)) for side, values in by_side.items()},
        }
        for name in names
    ]
    return pd.DataFrame(rows)


def printed_counts(record: StudyRecord) -> pd.DataFrame:
    """Count the trials of each stage (rows) in each state (columns) and in all, without empty rows and columns."""
    trials = list(record.trials.values())
    stages = [stage for stage in STAGES if any(trial.stage == stage for trial in trials)]
    states = [state for state in STATES if any(trial.state == state for trial in trials)]
    counts = {stage: Counter[str](trial.state for trial in trials if trial.stage == stage) for stage in stages}
    rows = [
        {"stage": stage, **{state: str(of[state]) for state in states}, "all": str(of.total())}
        for stage, of in counts.items()
    ]
    return pd.DataFrame(rows)


def _sides_by_name(results: Results) -> dict[str, Side | None]:
    if results.spec.final_seeds is not None:
        return {"final": results.final_side}
    reference, best = results.result_sides
    return {"baseline": reference, "best": best}


def _gain(by_name: dict[str, Side | None], metric: str) -> Difference | None:
    reference, best = by_name["baseline"], by_name["best"]
    return best.against(reference, metric) if reference and best else None


def _in_search(spec: StudySpec, candidate: Candidate, name: str) -> SeedStatistics | None:
    """Return a metric over the seeds that the search saw."""
    return spread(epochs.value(spec.objective, trial, name) for trial in candidate.replicates)
