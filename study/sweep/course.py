"""The course of a job, in whichever process it runs: what it goes on from, what it reports, and what an error of it
means. No Ray."""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import torch

from study.errors import of_disk
from study.sweep.failures import TrialFailedError
from study.sweep.host_memory import Memory
from study.sweep.job_payload import JobPayload
from study.training import PAUSE_PER_WRITE, DivergedError, FunctionTrial, Trial, TrialConfig, UnusableFileError
from study.training.device import CUDA, CardFullError, NoDeviceError, before_cuda, facts, keep_to, try_cards
from study.training.gpu_errors import fault
from study.upstream.environment import Part, variables

if TYPE_CHECKING:
    from study.ranking.epochs import EpochChoice


class Listener(Protocol):
    """Whoever is told of a job."""

    def starts(self, behind: int, note: str | None, device: Mapping[str, str]) -> None:
        """It goes on behind an epoch, on a device of these facts; `note`: why a state that was kept is of no use."""

    def reports(self, metrics: Mapping[str, float], epoch: int | None = None) -> None:
        """The metrics of an epoch, or of the test split (None)."""

    def judges(self, predicted: str) -> None:
        """What the network says of the samples of its fold, see `study.sweep.joined.Verdict`."""

    def diverged(self, why: str) -> None:
        """It ends here, as its loss or metric is no number."""


def prepare(job: JobPayload, config: TrialConfig, try_gpu: bool = True) -> None:
    """Make this process ready for a job: its share of the GPU, which is tried once.

    Raises:
        NoDeviceError: a GPU is asked for, and the one that Ray gave cannot be used, or not any more.
        OutOfMemoryError: its memory is full, and it may be that of other trials.
    """
    keep_to(1.0 if job.alone else job.gpu)
    before_cuda(config.train)
    if job.device == CUDA and try_gpu:
        try_card(job.whole)


@cache
def try_card(whole: bool) -> None:
    """Try the GPU that this process has, once.

    Args:
        whole: no other trial has a share of it.

    Raises:
        NoDeviceError: it cannot be used.
        OutOfMemoryError: its memory is full, and it may be that of other trials.
    """
    try:
        try_cards()
    except CardFullError as why:
        if not whole:
            raise torch.OutOfMemoryError(str(why)) from None
        raise


def log_apart(job: JobPayload) -> None:
    """Have MLflow in this process keep its runs in the trial's folder, which is empty where the trial has no state to
    go on from: nothing is left of a server's address, nor of what logs in to it. To be called before the function's
    modules are imported."""
    assert job.own_runs is not None
    if job.kind == "train" and not job.checkpoint.exists():
        shutil.rmtree(job.own_runs, ignore_errors=True)
    for name in [name for name in os.environ if name.startswith(OF_A_SERVER)]:
        del os.environ[name]
    os.environ |= variables(Part.FUNCTION, Part.MLFLOW_CLIENT) | {"MLFLOW_TRACKING_URI": job.own_runs.as_uri()}


OF_A_SERVER = ("MLFLOW_TRACKING_", "MLFLOW_REGISTRY_", "MLFLOW_EXPERIMENT_", "MLFLOW_RUN_")
"""The beginnings of the variables that say where MLflow logs."""


def run(make: Callable[[], Trial | FunctionTrial], job: JobPayload, listener: Listener) -> None:
    """Train a trial and report each epoch, or load a trained one and report the test split.

    Args:
        make: makes the trial; a second time where the states of another version are of no use.

    Raises:
        Exception: what ended the trial; see `meaning`.
    """
    trial = make()
    try:
        if job.kind == "test":
            assert job.model is not None
            trial.load(job.model)
            listener.reports(trial.evaluate("test", final=True))
            return
        try:
            _train(trial, job, listener)
        except UnusableFileError as unusable:  # states of another version, of which the trial has some by now
            job.checkpoint.unlink(missing_ok=True)
            _train(make(), job, listener, str(unusable))
    except DivergedError as diverged:
        listener.diverged(str(diverged))


def meaning(error: BaseException, device: str, memory: Memory) -> NoDeviceError | OSError | TrialFailedError:
    """Return what the driver is told of an error that ended a job: the GPU that Ray gave cannot be used any more, the
    disk is full or fails, whatever a library made of that, or the trial has failed otherwise.

    Args:
        device: of the job, `cpu` or `cuda`.
        memory: of its process when the job began.
    """
    if isinstance(error, NoDeviceError | TrialFailedError):
        return error
    if device == CUDA and (why := fault(error)):
        return NoDeviceError(why)
    if problem := of_disk(error):
        return OSError(problem.errno, problem.strerror, problem.filename)  # Ray brings no more over
    return TrialFailedError.by(error, memory)


def choice(goal: str | None) -> "EpochChoice | None":
    """Return what chooses a trial's epoch by an objective, given as JSON; None: the last epoch is taken."""
    if goal is None:
        return None
    from study.ranking.epochs import EpochChoice  # tenths of a second, which most studies have no use for
    from study.spec.objective import Objective

    return EpochChoice(Objective.from_document(json.loads(goal)))


def _train(trial: Trial | FunctionTrial, job: JobPayload, listener: Listener, why_anew: str | None = None) -> None:
    """Train it, and report each epoch; raises UnusableFileError before anything is reported.

    Args:
        why_anew: why it does not go on from the states of before.
    """
    behind, note = goes_on_behind(trial, job.checkpoint, job.heard)
    course = trial.run(job.checkpoint, PAUSE_PER_WRITE, choice(job.goal), job.end)
    listener.starts(behind, why_anew or note, facts(trial.device))
    with closing(course):  # type: ignore[type-var]
        for epoch, metrics in enumerate(course, start=behind + 1):
            if epoch == trial.config.train.epochs and job.model:
                trial.save(job.model)  # before the last report: a complete trial has its model
            if epoch == trial.config.train.epochs and job.is_judged and isinstance(trial, Trial):
                from study.sweep.joined import Verdict  # with what few trials have a use for

                classes, losses = trial.evaluate.judged("val")
                listener.judges(Verdict(classes.cpu().numpy(), losses.float().cpu().numpy()).packed())
            if epoch in job.kept:
                trial.save(job.kept[epoch])
            listener.reports(metrics, epoch)


def goes_on_behind(trial: Trial | FunctionTrial, checkpoint: Path, heard: int) -> tuple[int, str | None]:
    """The epoch behind which the trial goes on; where the file is of no use it is removed, and why is said."""
    try:
        epoch, note = trial.epochs_in(checkpoint), None
    except UnusableFileError as unusable:
        epoch, note = 0, str(unusable)
    if epoch > heard:
        epoch, note = 0, f"{checkpoint}: is of epoch {epoch}, the study knows of {heard}"
    if note:
        checkpoint.unlink()
    return epoch, note
