"""How efficient a search was: its best value over time, and what early stopping saved."""

from dataclasses import astuple, fields

import numpy as np
import pandas as pd

from study.analysis.statistics.hypervolume import over_trials
from study.analysis.statistics.spent import SEARCH_STAGES, Spent, spent
from study.home.record import StudyRecord, TrialRecord
from study.ranking import searched
from study.spec import StudySpec


def best_so_far(spec: StudySpec, record: StudyRecord) -> pd.DataFrame:
    """The search so far whenever a configuration became complete (with the last of its replicates), in this order.

    Returns:
        Indexed by `trial`: `seconds` since the study's first trial began, with pauses between its sessions;
        `busy_seconds`, the time that trials of the search and the baseline had run until then, summed (of a trial that
        was cut off and run again only the last run); `epochs` of the trials that had ended; `value` of the study's
        metric, the first of several; `best` value until then among those that keep the constraints, NaN before the
        first; of a study with several metrics also `hypervolume`, see `study.analysis.statistics.hypervolume`.
    """
    trials = _timed(record)
    candidates = searched(record, spec)
    ends = {
        candidate.trial.number: max(trial.ended or 0.0 for trial in candidate.replicates) for candidate in candidates
    }
    candidates.sort(key=lambda candidate: (ends[candidate.trial.number], candidate.trial.number))
    times = np.array([ends[candidate.trial.number] for candidate in candidates], dtype=float)
    values = np.array([candidate.value for candidate in candidates], dtype=float)
    allowed = np.where([candidate.score.violation == 0 for candidate in candidates], values, np.nan)
    keep = np.fmax if spec.mode == "max" else np.fmin
    frame = pd.DataFrame(
        {
            "seconds": times - min((trial.started for trial in trials if trial.started is not None), default=0.0),
            "busy_seconds": _busy(trials, times),
            "epochs": _epochs(trials, times),
            "value": values,
            "best": keep.accumulate(allowed),
        },
        index=pd.Index([candidate.trial.number for candidate in candidates], name="trial", dtype="int64"),
    )
    if len(spec.objective.metrics) > 1:
        frame["hypervolume"] = list(over_trials(spec, candidates).values())
    return frame


def search_time(record: StudyRecord) -> dict[str, float]:
    """When the last trial of the search or the baseline ended, by the columns `seconds` and `busy_seconds` of
    `best_so_far`: after the last complete one, pruned ones may have run on."""
    trials = _timed(record)
    end = max((trial.ended for trial in trials if trial.ended is not None), default=0.0)
    begin = min((trial.started for trial in trials if trial.started is not None), default=end)
    return {"seconds": end - begin, "busy_seconds": float(_busy(trials, np.array([end]))[0])}


def budget(spec: StudySpec, record: StudyRecord) -> pd.DataFrame:
    """What the complete and pruned trials of the search and the baseline cost, and what they would have cost in full.

    Returns:
        One row per state, `complete` and `pruned`, and `all`: `trials`, `epochs` that they ran, `full_epochs` that they
        would have run, `saved` as a fraction of these, and the same in `seconds` and `full_seconds`, where an epoch not
        run is assumed to cost as much as the trial's own epochs did. Failed trials are left out: early stopping did not
        end them.
    """
    columns = [field.name for field in fields(Spent)]
    rows = {state: astuple(one) for state, one in spent(spec, record).items()}
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    return frame.rename_axis("state").astype({"saved": float, "seconds": float, "full_seconds": float})


def _timed(record: StudyRecord) -> list[TrialRecord]:
    """The trials of the search and the baseline that began; not those that were cut off, whose end is unknown."""
    trials = record.by_stage(*SEARCH_STAGES)
    return [trial for trial in trials if trial.started is not None and trial.state != "interrupted"]


def _busy(trials: list[TrialRecord], times: np.ndarray) -> np.ndarray:
    """The time that trials had run, summed, until each of these times."""
    spans = [span for trial in trials for span in trial.spans(np.inf)]
    starts = np.sort([begin for begin, _ in spans])
    ends = np.sort([end for _, end in spans if end < np.inf])
    return _since(starts, times) - _since(ends, times)


def _epochs(trials: list[TrialRecord], times: np.ndarray) -> np.ndarray:
    """The epochs of the trials that had ended by each of these times."""
    ended = sorted((trial.ended, trial.epochs) for trial in trials if trial.ended is not None)
    totals = np.cumsum([0, *(epochs for _, epochs in ended)])
    result: np.ndarray = totals[np.searchsorted([moment for moment, _ in ended], times, side="right")]
    return result


def _since(sorted_times: np.ndarray, times: np.ndarray) -> np.ndarray:
    """For each of the times: the sum of how long ago the earlier `sorted_times` are."""
    first = sorted_times[0] if len(sorted_times) else 0.0
    totals = np.concatenate([[0.0], np.cumsum(sorted_times - first)])
    before = np.searchsorted(sorted_times, times, side="right")
    elapsed: np.ndarray = before * (times - first) - totals[before]
    return elapsed
