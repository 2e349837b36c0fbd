"""What the live page says and draws of a study with several metrics or limits, in the report's words."""

from collections.abc import Sequence
from typing import Any

from study import ranking
from study.home.record import StudyRecord, TrialRecord
from study.ranking import Candidate, epochs
from study.spec import StudySpec


def other_metric(spec: StudySpec) -> str | None:
    """The metric that is drawn against the study's first one: its second, or the first that is limited."""
    names = [*spec.objective.metrics[1:], *(limit.metric for limit in spec.objective.constraints)]
    return next((name for name in names if name != spec.metric), None)


def sentences(spec: StudySpec, record: StudyRecord, best: Candidate | None, reference: Candidate | None) -> list[str]:
    """Each further metric and each limit, for the best so far and the baseline, and who is on the front."""
    if best is None or other_metric(spec) is None:
        return []
    same = reference is not None and reference.trial is best.trial
    sides = [(f"trial {best.trial.number}", best.trial)] if not same else []
    sides += [("the baseline", reference.trial)] if reference else []
    texts = []
    for name in spec.objective.metrics[1:]:
        values = [
            f"{_number(value)} ({who})" for who, trial in sides if (value := _value(spec, trial, name)) is not None
        ]
        texts.append(f"{name}: {', '.join(values) or '-'}.")
    for limit in spec.objective.constraints:
        known = [(who, value) for who, trial in sides if (value := _value(spec, trial, limit.metric)) is not None]
        parts = [f"{who} {_keeps(limit.excess(value))} it ({_number(value)})" for who, value in known]
        texts.append(f"The limit {limit.metric} {limit.sense} {_number(limit.limit)}: {', '.join(parts) or '-'}.")
    if best.score.violation > 0:
        texts.append("No complete configuration keeps the limits yet; the best is the one that misses them least.")
    if len(spec.objective.metrics) > 1 and len(front := ranking.front(record, spec)) > 1:
        names = ", ".join(_name(each.trial) for each in front)
        texts.append(f"No configuration is best in every metric: on the front so far are {names}.")
    return texts


def trade_off(spec: StudySpec, record: StudyRecord, trials: Sequence[TrialRecord]) -> dict[str, Any] | None:
    """The second axis: its metric, the values of the trials that are drawn, limits of both, and the front's points."""
    name = other_metric(spec)
    if name is None:
        return None
    limits = [(limit.metric, limit.limit) for limit in spec.objective.constraints]
    two = len(spec.objective.metrics) == 2
    points = [(_value(spec, each.trial, name), each.value) for each in ranking.front(record, spec)] if two else []
    return {
        "metric": name,
        "percent": name.endswith("accuracy"),
        "value": [_value(spec, trial, name) for trial in trials],
        "limits": [limit for metric, limit in limits if metric == name],
        "first_limits": [limit for metric, limit in limits if metric == spec.metric],
        "front": sorted(point for point in points if None not in point),
    }


def _value(spec: StudySpec, trial: TrialRecord, name: str) -> float | None:
    return epochs.value(spec.objective, trial, name) if trial.reports else None


def _name(trial: TrialRecord) -> str:
    return "the baseline" if trial.stage == "baseline" else f"trial {trial.number}"


def _keeps(excess: float) -> str:
    return "breaks" if excess > 0 else "keeps"


def _number(value: float) -> str:
    return f"{value:.4g}"
