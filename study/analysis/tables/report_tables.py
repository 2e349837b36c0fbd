"""The report's tables, as text."""

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from study import ranking
from study.analysis.statistics import debiased, formatting
from study.analysis.statistics.difference import Difference, Side, difference, final_side, side_of, sides, split_metrics
from study.analysis.statistics.frame import numbered, param_keys, shown
from study.home.record import StudyRecord
from study.metrics import rules
from study.ranking import Candidate, Spread, baseline, best, candidates, epochs, spread
from study.ranking.summary import beside
from study.spec import StudySpec
from study.spec.objective import Objective, front

# The front of a study with several metrics: on the validation split, and beside it on the test split.


def printed_front(spec: StudySpec, record: StudyRecord) -> pd.DataFrame:
    """The front of the search, the best in the first metric first; empty with one metric.

    Columns: the trial; each metric in the search; on test, over the seeds on which it was read; whether it is on the
    front on test of those whose test was read, too; the parameters.
    """
    if len(spec.objective.metrics) < 2:
        return pd.DataFrame()
    found = ranking.front(record, spec)
    keys, tests = param_keys(spec, record.trials.values()), _tests(spec)
    sides = [side_of(spec, candidate) for candidate in found]
    on_test = _on_test(spec, sides)
    read = [candidate for candidate, side in zip(found, sides, strict=True) if any(map(side.spread, tests))]
    where = " on fresh seeds" if all(candidate.confirmed for candidate in read) else ""
    rows = []
    for candidate, side in zip(found, sides, strict=True):
        row = {"trial": numbered(candidate.trial)}
        row |= {
            f"{name} in the search": formatting.value(name, value)
            for name, value in zip(spec.objective.metrics, candidate.score.values, strict=True)
        }
        row |= {f"{name}{where}": formatting.mean(name, side.spread(name)) for name in tests}
        row["on the front on test"] = on_test.get(side.number, "not read")
        rows.append(row | {key: shown(spec, candidate.trial, key) for key in keys})
    return pd.DataFrame(rows)


def front_note(spec: StudySpec, record: StudyRecord) -> str:
    """Return what the table's columns are, and for how many of the front test was read."""
    sides = [side_of(spec, candidate) for candidate in ranking.front(record, spec)]
    read = len(_on_test(spec, sides))
    limits = f", of those that keep {', '.join(spec.search.constraints)}" if spec.search.constraints else ""
    note = f"No other configuration beats one of these in every metric on the validation split{limits}."
    note += " Nothing is chosen on test."
    if read == len(sides):
        return f"{note} The last column says which of these are a front on test, too."
    return (
        f"{note} Test was read for {read} of {len(sides)}: which are a front there is said among these alone. study "
        f"confirm {spec.name} --top K reads it for more."
        if read
        else f"{note} Test was read for none of them, so the front on test is not known."
    )


def _tests(spec: StudySpec) -> list[str]:
    return [f"test/{name.split('/')[1]}" for name in spec.objective.metrics]


def _on_test(spec: StudySpec, sides: list[Side]) -> dict[int, str]:
    """Return which configurations whose test was read are on its front, by trial: yes or no."""
    goal = Objective(tuple(_tests(spec)), spec.objective.modes)
    scores = {}
    for side in sides:
        spreads = {name: side.spread(name) for name in goal.metrics}
        if score := goal.score({name: spread.mean for name, spread in spreads.items() if spread}):
            scores[side.number] = score
    places = front(list(scores.values()))
    return {number: "yes" if place in places else "no" for place, number in enumerate(scores)}


STATES = ("complete", "pruned", "failed", "interrupted", "running", "waiting")

TOP = 10  # configurations that the report lists
STAGES = ("baseline", "search", "replicate", "confirm", "rule", "ablation", "final")


def printed_configurations(spec: StudySpec, record: StudyRecord) -> pd.DataFrame:
    """The best complete configurations of the search, the best first, then the baseline: the metric in the search, on
    the fresh seeds once any ran on some, and the parameters."""
    keys = param_keys(spec, record.trials.values())
    listed = [*candidates(record, spec)[:TOP], baseline(record, spec)]
    metrics = dict.fromkeys([spec.metric, *(limit.metric for limit in spec.objective.constraints)])
    are_confirmed = any(candidate and candidate.repeats for candidate in listed)
    rows = [
        {
            "trial": numbered(candidate.trial),
            **{f"{name} in the search": formatting.mean(name, _in_search(spec, candidate, name)) for name in metrics},
            **(_on_fresh_seeds(spec, candidate) if are_confirmed else {}),
            **{key: shown(spec, candidate.trial, key) for key in keys},
        }
        for candidate in listed
        if candidate is not None
    ]
    return pd.DataFrame(rows)


def _on_fresh_seeds(spec: StudySpec, candidate: Candidate) -> dict[str, str]:
    seeds = ", ".join(str(trial.seed) for trial in candidate.repeats)
    return {
        "confirmed on fresh seeds": formatting.mean(spec.metric, candidate.confirmed),
        "seeds": seeds or formatting.MISSING,
    }


def summary_metrics(spec: StudySpec, record: StudyRecord) -> list[str]:
    """The metrics of the summary, see `study.metrics.rules.leading`."""
    names = split_metrics(spec, list(_sides_by_name(spec, record).values()))
    return rules.leading(spec.objective.needed, names, record.groups or {}) or names[:2]


def printed_first(spec: StudySpec, record: StudyRecord) -> pd.DataFrame:
    """The rows of `printed_summary` for `summary_metrics`, and how far the best's value, or the final training's, may
    be off because its split is a sample, where that is known; of a final training also the interval by both."""
    by_name = _sides_by_name(spec, record)
    side = by_name.get("best") or by_name.get("final") or by_name.get("baseline")
    metrics = _measured(summary_metrics(spec, record), by_name)
    frame = printed_summary(spec, record, metrics)
    errors = [debiased.sampling_error(record, side, name) if side else None for name in metrics]
    if any(error is not None for error in errors):
        printed = [
            formatting.MISSING if error is None else formatting.change(name, error, signed=False)
            for name, error in zip(metrics, errors, strict=True)
        ]
        frame.insert(len(frame.columns) - 1, "split's error", printed)
        if side and spec.final_seeds is not None:
            found = [debiased.with_error(record, side, name) for name in metrics]
            ends = [
                formatting.between(name, spread.interval() if spread else None)
                for name, spread in zip(metrics, found, strict=True)
            ]
            frame.insert(len(frame.columns) - 1, "95% interval", ends)
    return frame


def printed_summary(spec: StudySpec, record: StudyRecord, metrics: Sequence[str] | None = None) -> pd.DataFrame:
    """The baseline against the best configuration, or the final training alone: a row per metric, all or some, the
    study's own on both splits first; mean ± sd of each side, the difference with its 95% interval, the seeds."""
    by_name, won = _sides_by_name(spec, record), best(record, spec)
    rows = []
    known = {name: side for name, side in by_name.items() if side}
    for metric in _measured(split_metrics(spec, list(by_name.values())) if metrics is None else metrics, by_name):
        row = {"metric": metric}
        for name, side in known.items():
            title = f"{name} ({side.label})" if side.label not in (name, "final training") else name
            if name == "best" and won and won.trial.stage == "baseline":
                title = title.replace("best", "best of the search")
            row[title] = formatting.mean(metric, side.spread(metric))
        if len(known) == 2:
            gain = _gain(by_name, metric)
            row["difference"] = formatting.change(metric, gain.value) if gain else formatting.MISSING
            row["95% interval"] = formatting.interval(metric, gain) if gain else formatting.MISSING
        counted = [", ".join(map(str, side.seeds(metric))) or "none" for side in known.values()]
        row["seeds"] = " / ".join(dict.fromkeys(counted))
        rows.append(row)
    return pd.DataFrame(rows)


def _measured(metrics: Sequence[str], by_name: dict[str, Side | None]) -> list[str]:
    """Those of the metrics of which a side has a value."""
    return [name for name in metrics if any(side and side.spread(name) for side in by_name.values())]


def printed_beside(spec: StudySpec, record: StudyRecord) -> pd.DataFrame:
    """The study's metrics at other epochs than the one that counts, see `study.ranking.summary`; empty without any."""
    by_side = {
        name: {
            f"{metric} {which}": spread
            for which, of in beside(spec, side.trials).items()
            for metric, spread in of.items()
        }
        for name, side in _sides_by_name(spec, record).items()
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
    """Counts of the trials of each stage (rows) in each state (columns), and totals; without empty rows and columns."""
    trials = list(record.trials.values())
    stages = [stage for stage in STAGES if any(trial.stage == stage for trial in trials)]
    states = [state for state in STATES if any(trial.state == state for trial in trials)]
    counts = {stage: Counter[str](trial.state for trial in trials if trial.stage == stage) for stage in stages}
    rows = [
        {"stage": stage, **{state: str(of[state]) for state in states}, "all": str(of.total())}
        for stage, of in counts.items()
    ]
    return pd.DataFrame(rows)


def _sides_by_name(spec: StudySpec, record: StudyRecord) -> dict[str, Side | None]:
    if spec.final_seeds is not None:
        return {"final": final_side(spec, record)}
    reference, best = sides(spec, record)
    return {"baseline": reference, "best": best}


def _gain(by_name: dict[str, Side | None], metric: str) -> Difference | None:
    reference, best = by_name["baseline"], by_name["best"]
    return difference(best.values(metric), reference.values(metric), best.among) if reference and best else None


def _in_search(spec: StudySpec, candidate: Candidate, name: str) -> Spread | None:
    """A metric over the seeds that the search saw."""
    return spread(epochs.value(spec.objective, trial, name) for trial in candidate.replicates)
