"""What a study has cost, from its ledger."""

from typing import Any

from study.analysis.statistics import formatting
from study.analysis.statistics.spent import spent
from study.home.record import StudyRecord
from study.metrics import PHASES
from study.spec import StudySpec

HOUR = 3600.0


def document(spec: StudySpec, record: StudyRecord) -> dict[str, Any]:
    """Hours of wall-clock time, trials, CPUs and GPUs, and what early stopping saved; plain values for JSON.

    `wall_hours`: while a driver was at work. `trial_hours`: of all trials that ended or were cut off, lost runs and
    confirm trials included; a running trial counts once it ends, and the time of a process that trains several together
    is shared among them. CPU and GPU hours are these times a trial's
    `resources`, as they were while it ran. `epoch_hours`: the times that trials reported with their epochs.
    """
    trial_hours, resources = record.busy / HOUR, spec.resources
    told = (("cpu", resources.cpu), ("gpu", resources.gpu))
    return {
        "name": spec.name,
        "state": record.state,
        "trials": record.counts(),
        "epochs": sum(trial.epochs for trial in record.trials.values()),
        "wall_hours": record.worked / HOUR,
        "trial_hours": trial_hours,
        "cpu_hours": record.taken("cpu", resources.cpu) / HOUR,
        "gpu_hours": record.taken("gpu", resources.gpu) / HOUR,
        "resources_per_trial": {key: record.placement.get(f"resources.{key}", planned) for key, planned in told},
        "trials_at_once": record.busy / record.worked if record.worked else None,
        "epoch_hours": {name: _reported(record, f"time/{name}") / HOUR for name in ("epoch", *PHASES)},
        "early_stopping": _saved(spec, record),
    }


def text(document: dict[str, Any]) -> str:
    """The same for people."""
    per_trial, saved, epochs = document["resources_per_trial"], document["early_stopping"], document["epoch_hours"]
    running = document["trials"]["running"]
    lines = [
        f"study {document['name']} ({document['state']}): {document['epochs']} epochs",
        f"clock        {_duration(document['wall_hours'])} with a driver at work",
        f"trials       {_duration(document['trial_hours'])}, summed over trials"
        + (f", {document['trials_at_once']:.1f} at once on average" if document["trials_at_once"] else "")
        + (f"; {running} still running are not included" if running else ""),
        f"CPU          {_duration(document['cpu_hours'])} ({per_trial['cpu']:g} for each trial)",
        f"GPU          {_duration(document['gpu_hours'])} ({per_trial['gpu']:g} for each trial)",
    ]
    if epochs["epoch"]:
        shares = ", ".join(f"{100 * epochs[name] / epochs['epoch']:.0f}% {name}" for name in PHASES)
        lines.append(f"epochs       {_duration(epochs['epoch'])} of trial time: {shares}")
    if saved is None:
        return "\n".join([*lines, "early stopping: no trial was pruned"])
    lines += [
        f"early stopping: {saved['stopped']} of {saved['trials']} trials of the search were pruned, "
        f"{saved['epochs']} of {saved['full_epochs']} epochs were run",
        f"  run in full they would have taken about {_duration(saved['full_trial_hours'])} instead of "
        f"{_duration(saved['trial_hours'])}: saved {_duration(saved['saved_trial_hours'])} of trials"
        + (f", {_duration(saved['saved_gpu_hours'])} of GPU" if saved["saved_gpu_hours"] else ""),
        "  (an epoch that was not run is assumed to cost as much as the trial's own; failed trials are left out)",
    ]
    return "\n".join(lines)


def _saved(spec: StudySpec, record: StudyRecord) -> dict[str, Any] | None:
    """Return what the trials of the search that ended would have taken in full; None where none was stopped early."""
    cost = spent(spec, record)
    whole, stopped = cost["all"], cost["pruned"].trials
    if not stopped:
        return None
    saved = (whole.full_seconds - whole.seconds) / HOUR
    return {
        "trials": whole.trials,
        "stopped": stopped,
        "epochs": whole.epochs,
        "full_epochs": whole.full_epochs,
        "trial_hours": whole.seconds / HOUR,
        "full_trial_hours": whole.full_seconds / HOUR,
        "saved_trial_hours": saved,
        "saved_gpu_hours": saved * spec.resources.gpu,
    }


def _reported(record: StudyRecord, metric: str) -> float:
    """Sum of a metric over the epochs that trials reported."""
    reports = (report for trial in record.trials.values() for report in trial.reports)
    return float(sum(report.get(metric) or 0.0 for report in reports))


def _duration(hours: float) -> str:
    return formatting.duration(hours * HOUR)
