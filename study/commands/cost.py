"""What a study would cost, from its plan."""

import math
import os
import platform
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from study import data
from study.analysis.statistics import formatting
from study.commands.plan import Plan
from study.errors import UserError
from study.spec import StudySpec
from study.text import pluralise

ResultT = TypeVar("ResultT")
SECONDS_PER_HOUR = 3600.0

PACE_MEASURING_SECONDS, MAX_FIRST_EPOCH_SECONDS = 2.0, 20.0
"""Time up to which further epochs are measured, and time of a first one up to which a second is: one alone says little,
and the first warms up."""

STUDY_START_SECONDS, REFERENCE_FIT_SECONDS, PER_TRIAL_SECONDS, STUDY_END_SECONDS = 7.0, 0.5, 0.3, 3.0
"""What a study takes beside its epochs on an idle machine: until its first trial began (import, Ray, a first worker),
for each model that needs no search, for each trial, and for test split, MLflow and report at the end. See
tests/benchmarks/results/performance.md."""


def hours_in_words(hours: float) -> str:
    """Return hours in words."""
    return formatting.format_duration(hours * SECONDS_PER_HOUR)


EPOCH_TIME_KEYS = {"method.name", "train.batch_size", "train.augmentation", "train.data_share", "train.precision"}
"""Keys that change the time of an epoch, besides those of data set and network."""


@dataclass(frozen=True)
class EpochPace:
    """Time of an epoch.

    Attributes:
        seconds_per_epoch: of one epoch, in the median of those that were measured.
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
        loads = [trials * cpus_per_trial + self.load_average for trials in (concurrent_trials, 1)]
        among, alone = (max(1.0, load / machine_cpus) for load in loads)
        return among / alone

    def slowdown_of_single_process(self, machine_cpus: float) -> float:
        """Return how many times longer a process of one core takes on this machine than on an idle one."""
        return max(1.0, (1 + self.load_average) / machine_cpus)


@dataclass(frozen=True)
class CostHours:
    """Hours of trials, of GPUs and of the clock on this machine; None: no trial fits it."""

    trial_hours: float
    gpu_hours: float
    wall_hours: float | None


@dataclass(frozen=True)
class ExpectedCost:
    """The hours of a plan at a pace, see `EpochPace`.

    Attributes:
        seconds_beside_epochs: what the hours of the clock have for start, references, trials' starts, test and report.
    """

    seconds_per_epoch: float
    basis: str
    caveats: Sequence[str]
    trials_at_once_here: int
    seconds_beside_epochs: float
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
    """Measure the pace of the file's own configuration by running its first epochs in this process.

    Two epochs, or as many as end in `PACE_MEASURING_SECONDS`, or one long one. Of several the first does not count.

    Nothing is downloaded for it, and no code of a study file that others wrote is run.

    Args:
        on_begin: called before the first epoch is run.

    Returns:
        The pace, or why it cannot be measured: its data are not here, say, or there is no GPU although it asks for one.

    Raises:
        UserError: its data are here and cannot be loaded: `study run` refuses them as well.
    """
    import torch

    from study.commands import single_trial

    if spec.training_function:
        return "a plan runs no function of a study file; study trial does, and says what an epoch takes"
    if any(source.path_or_none() is None for source in data.sources(spec.base["data"])):
        return f"its data are not here, see study data prepare {spec.base['data']['name']}"
    on_begin()
    load = os.getloadavg()[0]
    try:
        measured = call_with_worker_priority(lambda: _measure_first_epochs(single_trial.SingleTrial(spec).epochs()))
    except (UserError, RuntimeError, MemoryError) as error:  # torch's errors are RuntimeErrors
        if isinstance(error, UserError):
            data.load(spec.base["data"])  # raises again if the data were the reason
        return (str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}").splitlines()[0]
    device = torch.cuda.get_device_name() if spec.resources.gpu else f"the CPU of {platform.node()}"
    first = ["one epoch alone was measured, and the first is slower than later ones"] if len(measured) == 1 else []
    caveats = [
        *first,
        "the time beside the epochs is that of a small study, without classifiers that are fitted at a trial's end",
        "these epochs ran alone: trials that run at the same time slow each other down",
    ]
    if load > BUSY_LOAD_PER_CPU * (os.cpu_count() or 1):
        busy = f"the machine is busy, with a load of {load:.1f} on {os.cpu_count()} CPUs"
        caveats.append(f"{busy}; it is assumed to remain so")
    keys = spec.space.domains
    if searched := [key for key in keys if key.startswith(("data.", "model.")) or key in EPOCH_TIME_KEYS]:
        caveats.append(f"an epoch may take another time with other values of {', '.join(searched)}, which are searched")
    if spec.resources.gpu:
        peak = max(metrics["memory/peak_mib"] for metrics in measured)
        caveats.append(f"its tensors took at most {peak / 1024:.1f} GiB of the GPU")
    number = "one epoch" if len(measured) == 1 else f"{len(measured)} epochs"
    basis = f"{number} of the file's own configuration on {device}"
    seconds = statistics.median(metrics["time/epoch"] for metrics in measured[1:] or measured)
    return EpochPace(seconds, basis, tuple(caveats), load)


def _measure_first_epochs(epochs: Iterator[dict[str, float]]) -> list[dict[str, float]]:
    """Return the metrics of a trial's first epochs, see `measure_pace`; those before an error if there are any."""
    measured: list[dict[str, float]] = []
    begin = time.monotonic()
    try:
        for metrics in epochs:
            measured.append(metrics)
            limit = MAX_FIRST_EPOCH_SECONDS if len(measured) == 1 else PACE_MEASURING_SECONDS
            if time.monotonic() - begin > limit:
                break
    except (UserError, RuntimeError, MemoryError):
        if not measured:
            raise
    return measured


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

    budget, full, machine_cpus = plan.budget, spec.epochs, os.cpu_count() or 1
    at_once = count_trials_at_once(spec.resources, spec.search.concurrency)
    seconds = pace.seconds_per_epoch * pace.slowdown(spec.resources.cpu, max(1, at_once), machine_cpus)
    searched = sum(count for stage, count in budget.trials.items() if stage not in ("confirm", "rule"))
    trials = searched + budget.trials["confirm"] + budget.rule_trials["expected"]
    beside = STUDY_START_SECONDS + STUDY_END_SECONDS + len(budget.references) * REFERENCE_FIT_SECONDS
    beside = (beside + trials * PER_TRIAL_SECONDS / max(1, at_once)) * pace.slowdown_of_single_process(machine_cpus)

    def hours(name: str) -> CostHours:
        epochs, fresh = budget.epochs[name], budget.trials["confirm"] + budget.rule_trials[name]
        waves = math.ceil(fresh / at_once) if at_once else 0
        longest = max(full, (epochs - fresh * full) / max(1, min(at_once, searched))) + waves * full
        taken = epochs * seconds / SECONDS_PER_HOUR
        wall = (longest * seconds + beside) / SECONDS_PER_HOUR if at_once else None
        return CostHours(taken, taken * spec.resources.gpu, wall)

    known = pace.seconds_per_epoch, pace.basis, pace.caveats, at_once, beside
    return ExpectedCost(*known, hours("most"), hours("expected"))


def cost_estimate_text(estimate: CostEstimate) -> str:
    """Return an estimate as lines of text."""
    costs = estimate.cost
    if costs is None:
        return f"time: not measured: {estimate.not_measured}"
    lines, at_once = [f"an epoch takes {costs.seconds_per_epoch:.3g} s, by {costs.basis}"], costs.trials_at_once_here
    for label, hours in (("expected", costs.expected), ("if no trial is pruned", costs.without_early_stopping)):
        lines.append(f"{label}: {hours_in_words(hours.trial_hours)} of trial time")
        lines[-1] += f", {hours_in_words(hours.gpu_hours)} of GPU" if hours.gpu_hours else ""
        if hours.wall_hours is not None:
            clock = f"{hours_in_words(hours.wall_hours)} on the clock of this machine"
            lines[-1] += f", {clock} with {pluralise(at_once, 'trial')} at once"
    if at_once:
        beside = hours_in_words(costs.seconds_beside_epochs / SECONDS_PER_HOUR)
        lines.append(
            f"{beside} on the clock are for the start, references, trials' starts, the test split and the report"
        )
    else:
        lines.append("time on the clock is not told: a trial does not fit this machine")
    return "\n".join([*lines, *(f"but: {caveat}" for caveat in costs.caveats)])
