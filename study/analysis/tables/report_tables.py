"""The report's tables. Each is a frame of numbers, and beside it the same table as it is printed."""

from collections.abc import Iterable

import pandas as pd

from study.analysis.statistics import formatting
from study.analysis.statistics.difference import Difference, Side, difference, final_side, sides, split_metrics
from study.analysis.statistics.frame import param, param_keys
from study.home.record import StudyRecord
from study.ranking import Candidate, baseline, candidates
from study.spec import StudySpec

STATES = ("complete", "pruned", "failed", "interrupted", "running", "waiting")
STATE_WORDS = {"pruned": "stopped early"}
TOP = 10  # configurations that the report lists
STAGES = ("baseline", "search", "replicate", "confirm", "final")


def best_configurations(spec: StudySpec, record: StudyRecord, top: int = TOP) -> pd.DataFrame:
    """The `top` configurations of the search that ran at full budget, the best first, then the baseline.

    Returns:
        Indexed by trial number: `stage`, the metric in the search, `mean`, `sd` (sample), `n` and `seeds` of the
        confirm trials (missing where there are none), then every parameter under its dotted key.
    """
    reference = baseline(record, spec)
    rows = [*candidates(record, spec)[:top], *([reference] if reference else [])]
    keys = param_keys(spec, record.trials.values())
    index = pd.Index([one.trial.number for one in rows], name="trial", dtype="int64")
    columns = ["stage", spec.metric, "mean", "sd", "n", "seeds", *keys]
    frame = pd.DataFrame([_row(spec, one, keys) for one in rows], index=index, columns=columns)
    return frame.astype({spec.metric: float, "mean": float, "sd": float, "n": "int64"})


def printed_configurations(spec: StudySpec, record: StudyRecord, top: int = TOP) -> pd.DataFrame:
    """`best_configurations` as text."""
    keys = param_keys(spec, record.trials.values())
    shown = [*candidates(record, spec)[:top], baseline(record, spec)]
    rows = [
        {
            "trial": f"{one.trial.number} (baseline)" if one.trial.stage == "baseline" else str(one.trial.number),
            f"{spec.metric} in the search": formatting.value(spec.metric, one.value),
            "confirmed on fresh seeds": formatting.mean(spec.metric, one.confirmed),
            "seeds": ", ".join(str(trial.seed) for trial in one.repeats) or formatting.MISSING,
            **{key: formatting.setting(param(spec, one.trial, key)) for key in keys},
        }
        for one in shown
        if one is not None
    ]
    return pd.DataFrame(rows)


def summary(spec: StudySpec, record: StudyRecord) -> pd.DataFrame:
    """The baseline against the best configuration, or the final training alone, on both splits.

    Returns:
        Indexed by metric, the study's own on both splits first: for each side (`baseline` and `best`, or `final`)
        `SIDE mean`, `SIDE sd` (sample), `SIDE n`, `SIDE seeds`; for two sides also `difference` (best minus
        baseline) and its 95% interval `low`, `high`.
    """
    named = _named_sides(spec, record)
    metrics = split_metrics(spec, list(named.values()))
    frame = pd.DataFrame(index=pd.Index(metrics, name="metric", dtype=object))
    for name, side in named.items():
        found = [side.spread(metric) if side else None for metric in metrics]
        frame[f"{name} mean"] = pd.Series([one and one.mean for one in found], frame.index, dtype=float)
        frame[f"{name} sd"] = pd.Series([one and one.deviation for one in found], frame.index, dtype=float)
        frame[f"{name} n"] = [one.count if one else 0 for one in found]
        frame[f"{name} seeds"] = [tuple(side.seeds(metric)) if side else () for metric in metrics]
    if len(named) == 2:
        gains = [_gain(named, metric) for metric in metrics]
        ends = [gain.interval or (None, None) if gain else (None, None) for gain in gains]
        frame["difference"] = pd.Series([gain and gain.value for gain in gains], frame.index, dtype=float)
        frame["low"] = pd.Series([low for low, _ in ends], frame.index, dtype=float)
        frame["high"] = pd.Series([high for _, high in ends], frame.index, dtype=float)
    return frame


def printed_summary(spec: StudySpec, record: StudyRecord) -> pd.DataFrame:
    """`summary` as text."""
    named = _named_sides(spec, record)
    rows = []
    for metric in split_metrics(spec, list(named.values())):
        row = {"metric": metric}
        for name, side in named.items():
            title = f"{name} ({side.label})" if side and side.label not in (name, "final training") else name
            row[title] = formatting.mean(metric, side.spread(metric)) if side else formatting.MISSING
        if len(named) == 2:
            gain = _gain(named, metric)
            row["difference"] = formatting.change(metric, gain.value) if gain else formatting.MISSING
            row["95% interval"] = formatting.interval(metric, gain) if gain else formatting.MISSING
        counted = [", ".join(map(str, side.seeds(metric))) or "none" for side in named.values() if side]
        row["seeds"] = " / ".join(dict.fromkeys(counted))
        rows.append(row)
    return pd.DataFrame(rows)


def trial_counts(record: StudyRecord) -> pd.DataFrame:
    """How many trials of each stage (rows) are in each state (columns); only those that there are, and totals."""
    trials = list(record.trials.values())
    stages = [stage for stage in STAGES if any(trial.stage == stage for trial in trials)]
    states = [state for state in STATES if any(trial.state == state for trial in trials)]
    counts = [[sum(t.stage == stage and t.state == state for t in trials) for state in states] for stage in stages]
    frame = pd.DataFrame(counts, index=pd.Index(stages, name="stage"), columns=states, dtype="int64")
    frame["all"] = frame.sum(axis=1).astype("int64")
    return frame


def printed_counts(record: StudyRecord) -> pd.DataFrame:
    """`trial_counts` as text."""
    return trial_counts(record).rename(columns=STATE_WORDS).reset_index().astype(str)


def printed_trials(spec: StudySpec, frame: pd.DataFrame) -> pd.DataFrame:
    """`trials_frame` as text, with the study's metric alone; all of it is in `trials.csv`."""
    keys = [key for key in frame.columns if str(key).split(".")[0] in spec.base]
    texts: dict[str, Iterable[str]] = {
        "trial": [str(number) for number in frame.index],
        "stage": frame["stage"],
        "state": frame["state"].replace(STATE_WORDS),
        "epochs": frame["epochs"].astype(str),
        spec.metric: [formatting.value(spec.metric, number) for number in frame[spec.metric]],
        **{key: [formatting.setting(given) for given in frame[key]] for key in keys},
        "seed": frame["seed"].astype(str),
        "repeats": [formatting.MISSING if pd.isna(number) else str(number) for number in frame["repeats"]],
        "seconds": [formatting.MISSING if pd.isna(number) else f"{number:.1f}" for number in frame["seconds"]],
        "reason": [_why(kind, reason) for kind, reason in zip(frame["kind"], frame["reason"], strict=True)],
    }
    return pd.DataFrame({name: list(cells) for name, cells in texts.items()}, dtype=object)


def _why(kind: str | float | None, reason: str | float | None) -> str:
    return ": ".join(str(part) for part in (kind, reason) if not pd.isna(part)) or formatting.MISSING


def _named_sides(spec: StudySpec, record: StudyRecord) -> dict[str, Side | None]:
    reference, chosen = sides(spec, record)
    return {"final": final_side(record)} if spec.final_seeds is not None else {"baseline": reference, "best": chosen}


def _gain(named: dict[str, Side | None], metric: str) -> Difference | None:
    reference, chosen = named["baseline"], named["best"]
    return difference(chosen.spread(metric), reference.spread(metric)) if reference and chosen else None


def _row(spec: StudySpec, one: Candidate, keys: list[str]) -> dict[str, object]:
    found = one.confirmed
    return {
        "stage": one.trial.stage,
        spec.metric: one.value,
        "mean": found.mean if found else None,
        "sd": found.deviation if found else None,
        "n": found.count if found else 0,
        "seeds": tuple(trial.seed for trial in one.repeats if trial.last(spec.metric) is not None),
        **{key: param(spec, one.trial, key) for key in keys},
    }
