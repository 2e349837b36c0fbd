"""What the lead says of the metrics after the first, and of limits that the baseline or the best does not keep."""

from collections.abc import Iterator

from study import ranking
from study.analysis.statistics import formatting
from study.analysis.statistics.difference import Side, difference, sides
from study.home.record import StudyRecord
from study.spec import StudySpec
from study.spec.objective import Constraint


def several_metrics(spec: StudySpec, record: StudyRecord) -> Iterator[str]:
    """Each further metric and each limit, for the baseline and the best configuration; nothing where there are none."""
    if spec.final_seeds is not None:
        return
    reference, best = sides(spec, record)
    if best is None:
        return
    for name in spec.objective.metrics[1:]:
        if sentence := _metric(spec, name, reference, best):
            yield sentence
    for limit in spec.objective.constraints:
        yield from _limit(limit, [side for side in (reference, best) if side])
    front = ranking.front(record, spec)
    if len(spec.objective.metrics) > 1 and len(front) > 1:
        kept = " that keeps the limits" if spec.objective.constraints and front[0].score.violation == 0 else ""
        numbers = formatting.listed(
            "the baseline" if each.trial.stage == "baseline" else f"trial {each.trial.number}" for each in front
        )
        yield f"No configuration{kept} is best in every metric: on the front of the search are {numbers}."


def _metric(spec: StudySpec, name: str, reference: Side | None, best: Side) -> str | None:
    after = best.spread(name)
    if after is None:
        return None
    before = reference.spread(name) if reference else None
    reached = formatting.mean(name, after)
    if reference is None or before is None:
        return f"Its {name} is {reached}."
    change = difference(best.values(name), reference.values(name), among=best.among)
    assert change is not None  # both have values
    amount = formatting.change(name, change.value)
    if change.clear is None:
        verdict = "which one seed cannot tell from luck"
    else:
        better = (change.value < 0) == (spec.direction(name) == "min")
        verdict = (
            f"{'better' if better else 'worse'} beyond the spread over seeds"
            if change.clear
            else "within the spread over seeds"
        )
        amount += f" (95% interval {formatting.interval(name, change)})"
    return f"{name} is {reached} against {formatting.mean(name, before)} of the baseline: {amount}, {verdict}."


def _limit(limit: Constraint, compared: list[Side]) -> Iterator[str]:
    """Who breaks a limit by the mean over its seeds; that the best keeps it, where the baseline does not."""
    text = f"{limit.metric} {limit.sense} {formatting.setting(limit.limit)}"
    means = [(side, spread) for side in compared if (spread := side.spread(limit.metric))]
    broken = [(side, spread) for side, spread in means if limit.excess(spread.mean) > 0]
    kept = [(side, spread) for side, spread in means if limit.excess(spread.mean) <= 0]
    parts = [f"{_name(side)} breaks it ({formatting.mean(limit.metric, spread)})" for side, spread in broken]
    parts += [f"{_name(side)} keeps it ({formatting.mean(limit.metric, spread)})" for side, spread in kept]
    if parts:
        yield f"The limit {text}: {', '.join(parts)}."


def _name(side: Side) -> str:
    return "the baseline" if side.label == "baseline" else side.label
