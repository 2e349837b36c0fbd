"""A study's trials as pandas tables."""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from study.home.folder import Home
from study.home.record import StudyRecord, TrialRecord
from study.knobs import Section, Value
from study.ranking import Results
from study.ranking.trial_statistics import constraints_broken_by_trial, trial_metric
from study.spec import StudySpec
from study.spec.domain import Domain
from study.text import format_parameter

if TYPE_CHECKING:
    import pandas as pd

ItemT = TypeVar("ItemT")

FIXED_COLUMNS = ("stage", "state", "kind", "reason", "seed", "fold", "repeats", "epochs", "seconds")


def load(name: str) -> "pd.DataFrame":
    """Load the trials of a study of this home (`STUDY_HOME`, else `./studies`), in any state, as `trials_frame`.

    Raises:
        UserError: there is no such study.

    Example:
        >>> from study.analysis import ablation, load, sensitivity, to_markdown
        >>> frame = load("mine")
        >>> frame[["stage", "state", "seed", "method.alpha", "val/accuracy"]].head(3)
                  stage     state  seed  method.alpha  val/accuracy
        trial
        0      baseline  complete     0          1.00          0.56
        1        search  complete     0          0.01          0.70
        2        search    pruned     0          0.50          0.20
        >>> ablation(frame, "method.alpha", "val/accuracy")[["mean", "sd", "n", "pruned"]].round(3)
        val/accuracy  mean    sd  n  pruned
        method.alpha
        0.010000      0.74  0.04  3       0
        0.123456      0.70  0.10  3       0
        0.500000       NaN   NaN  0       1
        1.000000      0.52  0.02  3       0
        >>> print(to_markdown(sensitivity(frame, "method.alpha", "method.lambda", "val/accuracy")))
        | method.alpha | method.lambda 0 | method.lambda 1.5 |
        | --- | ---: | ---: |
        | 0.01 | - | 74.0 ± 4.0 (3; 1 failed) |
        | 0.1235 | - | 70.0 ± 10.0 (3) |
        | 0.5 | - | - (1 pruned) |
        | 1 | 52.0 ± 2.0 (3) | - |
        <BLANKLINE>
        val/accuracy in percent: mean ± sample standard deviation over seeds. In brackets n, and ...
    """
    folder = Home.locate().find_study(name)
    return trials_frame(Results.load(folder))


def trials_frame(results: Results) -> "pd.DataFrame":
    """Return one row per trial, indexed by its number.

    Returns:
        The columns of `FIXED_COLUMNS` (`kind` of failure, `reason` of failure or pruning, `seconds` from the start of
        the last run to its end); with constraints `broken_limits`, those that a complete trial breaks by itself; every
        parameter under its dotted key; then every metric under its name, the study's first: `val/*` and `train/*` at
        the trial's epoch by `search.epoch`, `test/*` where the test split was read. Absent values are NaN or None. A
        parameter that a trial was not given has the study file's value, which the trial ran with.
    """
    import pandas as pd  # here, so that what needs no table is told at once

    trials = list(results.record.trials.values())
    keys = param_key_columns(results.spec, trials)
    metrics = metric_columns(results.spec, trials)
    rows = [_trial_row(results.spec, trial, keys, metrics) for trial in trials]
    index = pd.Index([trial.number for trial in trials], name="trial", dtype="int64")
    limits = ["broken_limits"] * bool(results.spec.objective.constraints)
    frame = pd.DataFrame(rows, index=index, columns=[*FIXED_COLUMNS, *limits, *keys, *metrics])
    for name in ("fold", "repeats"):
        frame[name] = frame[name].astype("Int64")
    return frame.astype({"seconds": float, **dict.fromkeys(metrics, float)})


def epochs_frame(record: StudyRecord) -> "pd.DataFrame":
    """Return one row per trial and epoch: `trial`, `epoch`, then every metric, NaN where it is not finite."""
    import pandas as pd

    rows = [{"trial": trial.number, **report} for trial in record.trials.values() for report in trial.reports]
    metrics = list(dict.fromkeys(key for row in rows for key in row if key not in ("trial", "epoch")))
    frame = pd.DataFrame(rows, columns=["trial", "epoch", *metrics])
    return frame.astype({"trial": int, "epoch": int, **dict.fromkeys(metrics, float)})


def param_key_columns(spec: StudySpec, trials: Iterable[TrialRecord]) -> list[str]:
    """Return the dotted keys that the study searches, then any others that its trials have."""
    return list(dict.fromkeys([*spec.search.space, *(key for trial in trials for key in trial.params)]))


def metric_columns(spec: StudySpec, trials: Collection[TrialRecord]) -> list[str]:
    """Return the study's metrics, those of its constraints last, then every other that the trials have, by name."""
    reports = (report for trial in trials for report in trial.reports)
    kinds = {id(report.positions_by_name): report.positions_by_name for report in reports}  # few: names are shared
    names = {name for kind in (*kinds.values(), *(trial.test_metrics for trial in trials)) for name in kind}
    own = spec.objective.needed_metrics
    return [*own, *sorted(names - {*own, "epoch"})]


def trial_param_value(spec: StudySpec, trial: TrialRecord, key: str) -> Value:
    """Return the value that a trial ran with, None for a key that does not apply to it."""
    if key in trial.params:
        return trial.params[key]
    return _section_of_trial(spec, trial, key).get(key.partition(".")[2])


def trial_param_text(spec: StudySpec, trial: TrialRecord, key: str) -> str:
    """Return the value that a trial ran with as text; `-` for a key that does not apply to it.

    A key that the space searches under a condition applies where that holds, though the file gives others a value, too.
    """
    if key in spec.search.space and spec.search.space[key].is_ruled_out_by(trial.params):
        return "-"
    value = trial_param_value(spec, trial, key)
    applies = value is not None or key in trial.params or key.partition(".")[2] in _section_of_trial(spec, trial, key)
    return format_parameter(value) if applies else "-"


def trial_label(trial: TrialRecord) -> str:
    """Return a trial's number as text: `7`, or `0 (baseline)`."""
    return f"{trial.number} (baseline)" if trial.stage == "baseline" else str(trial.number)


def _section_of_trial(spec: StudySpec, trial: TrialRecord, key: str) -> Section:
    return spec.sections.section_with_names_alone(key.partition(".")[0], trial.params)


def _trial_row(spec: StudySpec, trial: TrialRecord, keys: list[str], metrics: list[str]) -> list[Value]:
    seconds = trial.total_run_seconds if trial.started_at is not None else None
    how = [trial.stage, trial.state, trial.failure_kind, trial.reason]
    where = [trial.seed, trial.fold, trial.repeated_trial, trial.n_epochs]
    params = [trial_param_value(spec, trial, key) for key in keys]
    broken = ", ".join(map(str, constraints_broken_by_trial(spec.objective, trial))) or None
    limits = [broken] if spec.objective.constraints else []
    return [*how, *where, seconds, *limits, *params, *(trial_metric(spec, trial, name) for name in metrics)]


def varied_domains(spec: StudySpec) -> dict[str, Domain]:
    """Return the searched parameters without constants."""
    return {
        key: domain for key, domain in spec.search.space.items() if len(set(map(repr, domain.boundary_values()))) > 1
    }


def sample_evenly(items: Sequence[ItemT], max_items: int) -> Sequence[ItemT]:
    """Return at most `max_items` of the items, evenly chosen, in order."""
    return items if len(items) <= max_items else [items[place * len(items) // max_items] for place in range(max_items)]
