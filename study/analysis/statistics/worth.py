"""What a search bought: its best value over time, what early stopping saved, and what it could have cost."""

from dataclasses import astuple, fields

import numpy as np
import pandas as pd

from study.analysis.statistics import words
from study.analysis.statistics.spent import SEEN, Spent, spent
from study.home.record import StudyRecord, TrialRecord
from study.ranking import best, searched
from study.spec import StudySpec, rungs


def best_so_far(spec: StudySpec, record: StudyRecord) -> pd.DataFrame:
    """The search at the end of each of its complete configurations (of the last of its replicates), in this order.

    Returns:
        Indexed by `trial`: `seconds` since the study's first trial began, pauses between its sessions included;
        `busy_seconds` that trials of the search and the baseline had run until then, all together (of a trial that was
        cut off and run again the last run alone); `epochs` that had been run in ended trials; `value` of the study's
        metric, the first of several; `best` until then of those that keep the constraints, NaN before the first.
    """
    ran = [
        trial
        for trial in record.by_stage(*SEEN)
        if trial.started is not None and trial.state != "interrupted"  # nobody knows until when it ran
    ]
    found = searched(record, spec)
    ends = {one.trial.number: max(trial.ended or 0.0 for trial in one.replicates) for one in found}
    found.sort(key=lambda one: (ends[one.trial.number], one.trial.number))
    moments = np.array([ends[one.trial.number] for one in found], dtype=float)
    values = np.array([one.value for one in found], dtype=float)
    allowed = np.where([one.score.violation == 0 for one in found], values, np.nan)
    keep = np.fmax if spec.mode == "max" else np.fmin
    return pd.DataFrame(
        {
            "seconds": moments - min((trial.started for trial in ran if trial.started is not None), default=0.0),
            "busy_seconds": _busy(ran, moments),
            "epochs": _epochs(ran, moments),
            "value": values,
            "best": keep.accumulate(allowed),
        },
        index=pd.Index([one.trial.number for one in found], name="trial", dtype="int64"),
    )


def budget(spec: StudySpec, record: StudyRecord) -> pd.DataFrame:
    """What the ended trials of the search and the baseline cost, and what they would have cost in full.

    Returns:
        One row per state, `complete` and `pruned` (stopped early), and `all`: `trials`, `epochs` that they ran,
        `full_epochs` that they would have run, `saved` as a fraction of these, and the same in `seconds` and
        `full_seconds`, where an epoch not run is taken to cost what the trial's own epochs did. Failed trials are
        left out: nobody chose to stop them.
    """
    columns = [field.name for field in fields(Spent)]
    rows = {state: astuple(one) for state, one in spent(spec, record).items()}
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    return frame.rename_axis("state").astype({"saved": float, "seconds": float, "full_seconds": float})


def _rungs(spec: StudySpec) -> list[int]:
    """The epochs at which ASHA of one bracket compares trials; none for any other rule."""
    rule = spec.search.early_stopping
    if rule.name != "asha" or rule.brackets > 1 or spec.final_seeds is not None:
        return []
    return list(rungs.brackets(rule, spec.epochs)[0].rungs)


def would_have_stopped(spec: StudySpec, record: StudyRecord) -> pd.DataFrame:
    """Whether ASHA would have stopped the configurations that were confirmed, from the curves of their other seeds.

    A repeat runs in full, whatever ASHA thinks of it. At each rung its value is held against the cut-off that the
    search had when the repeated trial came there, and against that of the whole search.

    Returns:
        One row per repeat (a confirm trial of a searched trial) and rung: `trial`, `seed`, `repeats` (the searched
        trial), `is_best` (whether that is the study's best), `rung` (epoch), `value`, `cutoff` then and `final_cutoff`
        (NaN while there was none), `stopped` and `stopped_finally`: whether the value was worse. Empty where the study
        has several metrics or constraints, or stops by another rule than ASHA of one bracket.
    """
    columns = ["trial", "seed", "repeats", "is_best", "rung", "value", "cutoff", "final_cutoff"]
    chosen = best(record, spec)
    single = len(spec.objective.metrics) == 1 and not spec.objective.constraints
    rows = []
    for rung in _rungs(spec) if single else []:
        arrived = _arrived(spec, record, rung)
        final = _cutoff(list(arrived.values()), spec)
        for trial in record.by_stage("confirm"):
            value = _at(trial, spec, rung)
            if value is None or trial.repeats not in arrived:
                continue
            then = list(arrived.values())[: list(arrived).index(trial.repeats)]
            is_best = chosen is not None and chosen.trial.number == trial.repeats
            rows.append((trial.number, trial.seed, trial.repeats, is_best, rung, value, _cutoff(then, spec), final))
    frame = pd.DataFrame(rows, columns=columns).astype({"value": float, "cutoff": float, "final_cutoff": float})
    for name, cutoff in (("stopped", "cutoff"), ("stopped_finally", "final_cutoff")):
        frame[name] = frame["value"] < frame[cutoff] if spec.mode == "max" else frame["value"] > frame[cutoff]
    return frame.sort_values(["repeats", "trial", "rung"], ignore_index=True)


def printed_worth(spec: StudySpec, record: StudyRecord) -> pd.DataFrame:
    """What early stopping saved and could have cost, as text; empty where no trial was stopped."""
    cost, judged = spent(spec, record), would_have_stopped(spec, record)
    if not cost["pruned"].trials:
        return pd.DataFrame({"what early stopping did": [], "value": []}, dtype=object)
    whole, stopped = cost["all"], cost["pruned"].trials
    kept = words.duration(whole.full_seconds - whole.seconds)
    rows = {
        "trials stopped early": f"{stopped} of {whole.trials}",
        "epochs run, of those of all trials in full": f"{whole.epochs} of {whole.full_epochs}",
        "saved": f"{100 * whole.saved:.0f}% of the epochs, about {kept} of trials' time",
    }
    for cutoff, name, label in (
        ("cutoff", "stopped", "by the cut-offs of its time"),
        ("final_cutoff", "stopped_finally", "by those of the whole search"),
    ):
        ended = judged[judged["is_best"] & judged[cutoff].notna()].groupby("trial")[name].any()
        if len(ended):
            rows[f"repeats of the best that ASHA would have stopped, {label}"] = f"{ended.sum()} of {len(ended)}"
    return pd.DataFrame({"what early stopping did": list(rows), "value": list(rows.values())}, dtype=object)


def _busy(ran: list[TrialRecord], moments: np.ndarray) -> np.ndarray:
    """The time that trials had run until each moment."""
    starts = np.sort([trial.started for trial in ran if trial.started is not None])
    ends = np.sort([trial.ended for trial in ran if trial.ended is not None])
    return _since(starts, moments) - _since(ends, moments)


def _epochs(ran: list[TrialRecord], moments: np.ndarray) -> np.ndarray:
    """The epochs of the trials that had ended until each moment."""
    ended = sorted((trial.ended, trial.epochs) for trial in ran if trial.ended is not None)
    totals = np.cumsum([0, *(epochs for _, epochs in ended)])
    found: np.ndarray = totals[np.searchsorted([moment for moment, _ in ended], moments, side="right")]
    return found


def _since(sorted_times: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Sum over the times before each moment of how long ago they are."""
    first = sorted_times[0] if len(sorted_times) else 0.0
    totals = np.concatenate([[0.0], np.cumsum(sorted_times - first)])
    before = np.searchsorted(sorted_times, moments, side="right")
    found: np.ndarray = before * (moments - first) - totals[before]
    return found


def _at(trial: TrialRecord, spec: StudySpec, epoch: int) -> float | None:
    return trial.reports[epoch - 1].get(spec.metric) if trial.epochs >= epoch else None


def _arrived(spec: StudySpec, record: StudyRecord, rung: int) -> dict[int, float]:
    """The values of the searched trials at a rung, by trial, in the order in which they came there."""
    numbers = dict.fromkeys(number for event, number, epoch in record.story if event == "report" and epoch == rung)
    trials = [record.trials[number] for number in numbers if record.trials[number].stage == "search"]
    values = {trial.number: _at(trial, spec, rung) for trial in trials}
    return {number: value for number, value in values.items() if value is not None}


def _cutoff(values: list[float], spec: StudySpec) -> float:
    """What a value must not be worse than, to go on: the best 1 / reduction of those before begin there; NaN: none."""
    if not values:
        return float("nan")
    share = 100 / spec.search.early_stopping.reduction
    return float(np.percentile(values, 100 - share if spec.mode == "max" else share))
