"""What a study has cost, from its ledger."""

from typing import Any

from study.analysis.statistics import words
from study.analysis.statistics.spent import spent
from study.home.record import StudyRecord
from study.metrics import PHASES
from study.spec import StudySpec

HOUR = 3600.0


def document(spec: StudySpec, record: StudyRecord) -> dict[str, Any]:
    """Hours of the clock, of trials, CPUs and GPUs, and what early stopping saved; plain values for JSON.

    `wall_hours` are those in which a driver was at work. `trial_hours` are those of all trials that have ended or were
    cut off, lost runs and confirm trials among them; a trial that runs counts once it ends. CPU and GPU hours are these
    times what a trial takes (`resources`). `epoch_hours` are what the epochs that trials reported say of themselves.
    """
    took, resources = record.busy / HOUR, spec.resources
    return {
        "name": spec.name,
        "state": record.state,
        "trials": record.counts(),
        "epochs": sum(trial.epochs for trial in record.trials.values()),
        "wall_hours": record.worked / HOUR,
        "trial_hours": took,
        "cpu_hours": took * resources.cpu,
        "gpu_hours": took * resources.gpu,
        "resources_per_trial": {"cpu": resources.cpu, "gpu": resources.gpu},
        "trials_at_once": record.busy / record.worked if record.worked else None,
        "epoch_hours": {name: _reported(record, f"time/{name}") / HOUR for name in ("epoch", *PHASES)},
        "early_stopping": _saved(spec, record),
    }


def text(told: dict[str, Any]) -> str:
    """The same for people."""
    each, saved, epochs = told["resources_per_trial"], told["early_stopping"], told["epoch_hours"]
    running = told["trials"]["running"]
    lines = [
        f"study {told['name']} ({told['state']}): {told['epochs']} epochs",
        f"clock        {_duration(told['wall_hours'])} with a driver at work",
        f"trials       {_duration(told['trial_hours'])}, all together"
        + (f", {told['trials_at_once']:.1f} at once on average" if told["trials_at_once"] else "")
        + (f"; the {running} that run are not in it yet" if running else ""),
        f"CPU          {_duration(told['cpu_hours'])} ({each['cpu']:g} for each trial)",
        f"GPU          {_duration(told['gpu_hours'])} ({each['gpu']:g} for each trial)",
    ]
    if epochs["epoch"]:
        shares = ", ".join(f"{100 * epochs[name] / epochs['epoch']:.0f}% {name}" for name in PHASES)
        lines.append(f"epochs       {_duration(epochs['epoch'])} of the trials' time: {shares}")
    if saved is None:
        return "\n".join([*lines, "early stopping stopped no trial"])
    lines += [
        f"early stopping: {saved['stopped']} of {saved['trials']} trials of the search ended early, "
        f"{saved['epochs']} of {saved['full_epochs']} epochs were run",
        f"  run in full they would have taken about {_duration(saved['full_trial_hours'])} instead of "
        f"{_duration(saved['trial_hours'])}: saved {_duration(saved['saved_trial_hours'])} of trials"
        + (f", {_duration(saved['saved_gpu_hours'])} of GPU" if saved["saved_gpu_hours"] else ""),
        "  (an epoch that was not run is taken to cost what the trial's own did; failed trials are left out)",
    ]
    return "\n".join(lines)


def _saved(spec: StudySpec, record: StudyRecord) -> dict[str, Any] | None:
    """What the trials of the search that ended would have taken in full; None where none was stopped early."""
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
    return words.duration(hours * HOUR)
