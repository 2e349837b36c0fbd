"""A study's trials as pandas tables; everything else in `study.analysis` can be had from these."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from study.record import StudyRecord, TrialRecord
from study.spec import StudySpec

FIXED = ("stage", "state", "kind", "reason", "seed", "repeats", "epochs", "seconds")


def trials_frame(spec: StudySpec, record: StudyRecord) -> pd.DataFrame:
    """One row per trial, indexed by its number.

    Returns:
        The columns of `FIXED` (`kind` of failure, `reason` of failure or of an early stop, `seconds` from the start of
        the last run to its end), then every parameter under its dotted key, then every metric under its name: `val/*`
        and `train/*` at the trial's last epoch, `test/*` where the test split was read. What there is not is missing
        (NaN or None). A parameter that a trial was not given has the value of the study file, as that is what the
        trial ran with.
    """
    trials = list(record.trials.values())
    keys = param_keys(spec, trials)
    metrics = metric_names(spec, trials)
    rows = [_row(spec, trial, keys, metrics) for trial in trials]
    index = pd.Index([trial.number for trial in trials], name="trial", dtype="int64")
    frame = pd.DataFrame(rows, index=index, columns=[*FIXED, *keys, *metrics])
    frame["repeats"] = frame["repeats"].astype("Int64")
    return frame.astype({"seconds": float, **dict.fromkeys(metrics, float)})


def epochs_frame(record: StudyRecord) -> pd.DataFrame:
    """One row per trial and epoch: `trial`, `epoch`, then every reported metric; NaN where it was not a number."""
    rows = [{"trial": trial.number, **report} for trial in record.trials.values() for report in trial.reports]
    metrics = list(dict.fromkeys(key for row in rows for key in row if key not in ("trial", "epoch")))
    frame = pd.DataFrame(rows, columns=["trial", "epoch", *metrics])
    return frame.astype({"trial": int, "epoch": int, **dict.fromkeys(metrics, float)})


def param_keys(spec: StudySpec, trials: Iterable[TrialRecord]) -> list[str]:
    """Dotted keys that the study searches, then any others that its trials were given."""
    return list(dict.fromkeys([*spec.search.space, *(key for trial in trials for key in trial.params)]))


def metric_names(spec: StudySpec, trials: Iterable[TrialRecord]) -> list[str]:
    """The study's metric, then every other that the trials have, by name."""
    names = {key for trial in trials for source in (*trial.reports, trial.tested) for key in source}
    return [spec.metric, *sorted(names - {spec.metric, "epoch"})]


def param(spec: StudySpec, trial: TrialRecord, key: str) -> Any:
    """The value that a trial ran with, None for a key that the study file does not have."""
    section, _, name = key.partition(".")
    return trial.params.get(key, spec.base.get(section, {}).get(name))


def metric(trial: TrialRecord, name: str) -> float | None:
    """A metric of a trial: what the test split gave where it was read, else the value at the last epoch."""
    return trial.tested[name] if name in trial.tested else trial.last(name)


def _row(spec: StudySpec, trial: TrialRecord, keys: list[str], metrics: list[str]) -> list[Any]:
    ended = trial.started is not None and trial.ended is not None
    seconds = trial.ended - trial.started if ended else None  # type: ignore[operator]
    fixed = [trial.stage, trial.state, trial.kind, trial.reason, trial.seed, trial.repeats, trial.epochs, seconds]
    return [*fixed, *(param(spec, trial, key) for key in keys), *(metric(trial, name) for name in metrics)]
