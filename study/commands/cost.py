"""What a study would cost, from its plan."""

import math
import os
import platform
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from study import data
from study.analysis.statistics import formatting
from study.commands.plan import Plan
from study.errors import UserError
from study.spec import StudySpec

ResultT = TypeVar("ResultT")
SECONDS_PER_HOUR = 3600.0


def hours_in_words(hours: float) -> str:
    """Return hours in words."""
    return formatting.format_duration(hours * SECONDS_PER_HOUR)


EPOCH_TIME_KEYS = {"method.name", "train.batch_size", "train.augmentation", "train.data_share", "train.precision"}
"""Keys that change the time of an epoch, besides those of data set and network."""


@dataclass(frozen=True)
class EpochPace:
    """Time of an epoch.

    Attributes:
        seconds_per_epoch: of one epoch.
        basis: where this number is from, in words.
        caveats: what it leaves out, and how the study may differ.
        load_average: the machine's load average before the epoch was measured.
    """

    seconds_per_epoch: float
    basis: str
    caveats: tuple[str, ...]
    load_average: float = 0.0

    def slowdown(self, cpus_per_trial: float, concurrent_trials: int, machine_cpus: float) -> float:
        """Return how many times longer an epoch takes among trials that run at once than alone.

        Args:
            cpus_per_trial: of each trial.
            concurrent_trials: number of trials.
            machine_cpus: number of CPUs of the machine.
        """
        among, alone = (
            max(1.0, (trials * cpus_per_trial + self.load_average) / machine_cpus) for trials in (concurrent_trials, 1)
        )
        return among / alone


@dataclass(frozen=True)
class CostHours:
    """Hours of trials, of GPUs and of the clock on this machine; None: no trial fits it."""

    trial_hours: float
    gpu_hours: float
    wall_hours: float | None


@dataclass(frozen=True)
class ExpectedCost:
    """The hours of a plan at a pace, see `EpochPace`."""

    seconds_per_epoch: float
    basis: str
    caveats: Sequence[str]
    trials_at_once_here: int
    without_early_stopping: CostHours
    expected: CostHours


@dataclass(frozen=True)
class CostEstimate:
    """The cost of a plan; None: `not_measured` says why."""

    cost: ExpectedCost | None
    not_measured: str | None


def estimate_cost(spec: StudySpec, plan: Plan, on_begin: Callable[[], object] = bool) -> CostEstimate:
    """Estimate the cost of a plan at the pace of one epoch that is run in this process, where it can be run.

    Args:
        on_begin: called before the epoch is run.
    """
    pace = measure_pace(spec, on_begin)
    return CostEstimate(None, pace) if isinstance(pace, str) else CostEstimate(compute_cost(spec, plan, pace), None)


def measure_pace(spec: StudySpec, on_begin: Callable[[], object] = bool) -> EpochPace | str:
    """Measure the pace of the file's own configuration by running its first epoch in this process.

    Nothing is downloaded for it, and no code of a study file that others wrote is run.

    Args:
        on_begin: called before the epoch is run.

    Returns:
        The pace, or why it cannot be measured: its data are not here, say, or there is no GPU although it asks for one.

    Raises:
        UserError: its data are here and cannot be loaded: `study run` refuses them as well.
    """
    import torch

    from study.commands import single_trial

    if spec.function:
        return "a plan runs no function of a study file; study trial does, and says what an epoch takes"
    if any(source.path_or_none() is None for source in data.sources(spec.base["data"])):
        return f"its data are not here, see study data prepare {spec.base['data']['name']}"
    on_begin()
    load = os.getloadavg()[0]
    try:
        first_epoch = call_with_worker_priority(lambda: next(single_trial.run_trial(spec)))
    except (UserError, RuntimeError, MemoryError) as error:  # torch's errors are RuntimeErrors
        if isinstance(error, UserError):
            data.load(spec.base["data"])  # raises again if the data were the reason
        return (str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}").splitlines()[0]
    device = torch.cuda.get_device_name() if spec.resources.gpu else f"the CPU of {platform.node()}"
    caveats = [
        "the first epoch is slower than later ones; a trial's start, checkpoints and final classifiers are left out",
        "it ran alone: trials that run at the same time slow each other down",
    ]
    if load > BUSY_LOAD_PER_CPU * (os.cpu_count() or 1):
        caveats.append(
            f"the machine is busy, with a load of {load:.1f} on {os.cpu_count()} CPUs; it is assumed to remain so"
        )
    keys = spec.space.domains
    if searched := [key for key in keys if key.startswith(("data.", "model.")) or key in EPOCH_TIME_KEYS]:
        caveats.append(f"searched, but measured with the file's values: {', '.join(searched)}")
    if spec.resources.gpu:
        caveats.append(f"its tensors took at most {first_epoch['memory/peak_mib'] / 1024:.1f} GiB of the GPU")
    basis = f"one epoch of the file's own configuration, measured on {device}"
    return EpochPace(first_epoch["time/epoch"], basis, tuple(caveats), load)


BUSY_LOAD_PER_CPU = 0.25
"""Load average per CPU above which a machine is called busy."""

WORKER_NICENESS = "RAY_worker_niceness", 15
"""Ray's variable for the niceness of its workers, and its value where it is not set."""


def call_with_worker_priority(function: Callable[[], ResultT]) -> ResultT:
    """Call a function in a thread of low priority, as the processes of trials have.

    On a busy machine a trial takes several times as long.

    Raises:
        Exception: what the function raises.
    """
    made: list[ResultT] = []
    raised: list[Exception] = []

    def work() -> None:
        with suppress(OSError, ValueError):  # only Linux takes a thread; the variable may hold anything
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), int(os.environ.get(*map(str, WORKER_NICENESS))))
        try:
            made.append(function())
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=work, name="one epoch", daemon=True)  # Ctrl-C does not wait for it
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return made[0]


def compute_cost(spec: StudySpec, plan: Plan, pace: EpochPace) -> ExpectedCost:
    """Compute the hours of trials, GPUs and the clock of a plan, with early stopping and without."""
    from study.sweep.ray_runtime import count_trials_at_once

    budget, full = plan.budget, spec.epochs
    at_once = count_trials_at_once(spec.resources, spec.search.concurrency)
    seconds = pace.seconds_per_epoch * pace.slowdown(spec.resources.cpu, max(1, at_once), os.cpu_count() or 1)
    searched = sum(count for stage, count in budget.trials.items() if stage not in ("confirm", "rule"))

    def hours(name: str) -> CostHours:
        epochs, fresh = budget.epochs[name], budget.trials["confirm"] + budget.rule_trials[name]
        waves = math.ceil(fresh / at_once) if at_once else 0
        longest = max(full, (epochs - fresh * full) / max(1, min(at_once, searched))) + waves * full
        taken = epochs * seconds / SECONDS_PER_HOUR
        return CostHours(taken, taken * spec.resources.gpu, longest * seconds / SECONDS_PER_HOUR if at_once else None)

    return ExpectedCost(pace.seconds_per_epoch, pace.basis, pace.caveats, at_once, hours("most"), hours("expected"))


def cost_estimate_text(estimate: CostEstimate) -> str:
    """Return an estimate as lines of text."""
    costs = estimate.cost
    if costs is None:
        return f"time: not measured: {estimate.not_measured}"
    lines, at_once = [f"an epoch: {costs.seconds_per_epoch:.3g} s, by {costs.basis}"], costs.trials_at_once_here
    for label, hours in (("expected", costs.expected), ("if no trial is pruned", costs.without_early_stopping)):
        lines.append(f"{label}: {hours_in_words(hours.trial_hours)} of trials")
        lines[-1] += f", {hours_in_words(hours.gpu_hours)} of GPU" if hours.gpu_hours else ""
        if hours.wall_hours is not None:
            lines[-1] += f", {hours_in_words(hours.wall_hours)} of wall-clock time on this machine ({at_once} at once)"
    if not at_once:
        lines.append("no wall-clock time: a trial does not fit this machine")
    return "\n".join([*lines, *(f"but: {caveat}" for caveat in costs.caveats)])
