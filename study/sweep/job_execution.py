"""The course of a job in its process: what it goes on from, what it reports, what its errors mean. Without Ray."""

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from study.errors import find_disk_error
from study.sweep.failures import JobError, TrialFailedError
from study.sweep.host_memory import MemoryLimit
from study.sweep.job_payload import JobPayload, MetricsReport, ReportListener, StartReport, TextReport
from study.training.checkpoint import MIN_PAUSE_PER_WRITE_TIME, UnusableCheckpointError
from study.training.config import TrialConfig
from study.training.device import (
    CUDA_DEVICE,
    check_visible_gpus,
    describe_device,
    limit_gpu_memory,
    set_cublas_workspace,
)
from study.training.diverged import DivergedError
from study.training.function_loading import FunctionTrialError
from study.training.function_trial import FunctionTrial
from study.training.gpu_errors import GpuMemoryFullError, NoDeviceError, unusable_gpu_reason
from study.training.trial import Trial
from study.upstream.environment import ProcessKind, variables_of_processes

if TYPE_CHECKING:
    from study.ranking.chosen_epoch import BestEpochTracker


def prepare_process(job: JobPayload, config: TrialConfig, try_gpu: bool = True) -> None:
    """Make this process ready for a job: limit it to its share of the GPU, and try the GPU once.

    Raises:
        NoDeviceError: a GPU is asked for, and the one that Ray gave cannot be used, or not any more.
        OutOfMemoryError: its memory is full, perhaps with that of other trials.
    """
    limit_gpu_memory(1.0 if job.gets_gpu_alone else job.gpu_share)
    set_cublas_workspace(config.train)
    if job.device == CUDA_DEVICE and try_gpu:
        try_gpu_once(job.has_whole_gpu)


@cache
def try_gpu_once(whole: bool) -> None:
    """Try the GPU of this process, once.

    Args:
        whole: no other trial has a share of it.

    Raises:
        NoDeviceError: it cannot be used.
        OutOfMemoryError: its memory is full, perhaps with that of other trials.
    """
    try:
        check_visible_gpus()
    except GpuMemoryFullError as why:
        if not whole:
            raise torch.OutOfMemoryError(str(why)) from None
        raise


def log_mlflow_into_trial_folder(job: JobPayload) -> None:
    """Make MLflow in this process keep its runs in the trial's folder, and remove every setting of a server.

    The folder is emptied where the trial has no state to go on from. Call this before the function's modules are
    imported.
    """
    assert job.mlflow_folder is not None
    if job.kind == "train" and not job.checkpoint_file.exists():
        shutil.rmtree(job.mlflow_folder, ignore_errors=True)
    for name in [name for name in os.environ if name.startswith(MLFLOW_SERVER_PREFIXES)]:
        del os.environ[name]
    os.environ |= variables_of_processes(ProcessKind.FUNCTION, ProcessKind.MLFLOW_CLIENT)
    os.environ["MLFLOW_TRACKING_URI"] = job.mlflow_folder.as_uri()


MLFLOW_SERVER_PREFIXES = ("MLFLOW_TRACKING_", "MLFLOW_REGISTRY_", "MLFLOW_EXPERIMENT_", "MLFLOW_RUN_")
"""Prefixes of the variables that say where MLflow logs."""


def run_trial_job(make: Callable[[], Trial | FunctionTrial], job: JobPayload, listener: ReportListener) -> None:
    """Train a trial and report each epoch, or load a trained one and report the test split.

    Args:
        make: makes the trial; called again where its checkpoint is of another version and cannot be used.

    Raises:
        Exception: what ended the trial; see `error_for_driver`.
    """
    trial = make()
    try:
        if job.kind == "test":
            assert job.model_file is not None
            trial.load_model(job.model_file)
            try:
                metrics = trial.evaluate("test", final=True)
            except FunctionTrialError as why:  # not raised: Tune would end this process, and a new one takes seconds
                listener(TextReport("untested", str(why)))
            else:
                _save_log_probabilities(trial, job, "test")
                listener(MetricsReport(metrics))
            return
        try:
            _train_trial(trial, job, listener)
        except UnusableCheckpointError as unusable:  # a state of another version, which the trial has partly loaded
            job.checkpoint_file.unlink(missing_ok=True)
            _train_trial(make(), job, listener, str(unusable))
    except DivergedError as diverged:
        listener(TextReport("diverged", str(diverged)))


def error_for_driver(error: BaseException, device: str, memory: MemoryLimit) -> JobError:
    """Return the error that the driver is told for an error that ended a job.

    Args:
        device: `cpu` or `cuda`, as the job has it.
        memory: of its process when the job began.

    Returns:
        NoDeviceError: the GPU that Ray gave cannot be used any more. OSError: the disk is full or fails, whatever
        exception a library made of that. TrialFailedError: any other.
    """
    if isinstance(error, NoDeviceError | TrialFailedError):
        return error
    if device == CUDA_DEVICE and (why := unusable_gpu_reason(error)):
        return NoDeviceError(why)
    if problem := find_disk_error(error):
        return OSError(problem.errno, problem.strerror, problem.filename)  # Ray passes no more of it on
    return TrialFailedError.from_exception(error, memory)


def make_epoch_tracker(goal: str | None) -> "BestEpochTracker | None":
    """Return what chooses a trial's epoch by an objective, given as JSON; None: the last epoch is taken."""
    if goal is None:
        return None
    from pydantic import TypeAdapter

    from study.ranking.chosen_epoch import BestEpochTracker  # takes tenths of a second, and most studies do not need it
    from study.spec.objective import Objective

    return BestEpochTracker(TypeAdapter(Objective).validate_json(goal))


def _train_trial(
    trial: Trial | FunctionTrial, job: JobPayload, listener: ReportListener, why_anew: str | None = None
) -> None:
    """Train a trial and report each epoch; raise UnusableCheckpointError before anything is reported.

    Args:
        why_anew: why it does not go on from an earlier state.
    """
    behind, note = find_resume_epoch(trial, job.checkpoint_file, job.n_reported_epochs)
    course = trial.train_epochs(job.checkpoint_file, MIN_PAUSE_PER_WRITE_TIME, make_epoch_tracker(job.objective_json))
    listener(StartReport(behind, why_anew or note, describe_device(trial.device)))
    with closing(course):  # type: ignore[type-var]
        for epoch, metrics in enumerate(course, start=behind + 1):
            if epoch == trial.config.train.epochs and job.model_file:
                trial.save_model(job.model_file)  # before the last report: a complete trial has its model
                _save_log_probabilities(trial, job, "val")
            if epoch == trial.config.train.epochs and job.sends_fold_predictions and isinstance(trial, Trial):
                from study.sweep.joined_folds import FoldPredictions  # its imports are of use to few trials

                classes, losses = trial.evaluate.predictions_and_losses("val")
                predicted = FoldPredictions(classes.cpu().numpy(), losses.float().cpu().numpy())
                listener(TextReport("predicted", predicted.to_text()))
            listener(MetricsReport(metrics, epoch))


def _save_log_probabilities(trial: Trial | FunctionTrial, job: JobPayload, split: str) -> None:
    """Write what a network says of each sample of a split beside its weights, where it becomes one of an ensemble."""
    if not job.saves_log_probabilities or not isinstance(trial, Trial):
        return
    if split in trial.dataset.splits:
        from study.training import ensemble_probabilities

        assert job.model_file is not None
        path = ensemble_probabilities.log_probabilities_file(job.model_file, split)
        groups = trial.inferred_groups_by_split.get(split)
        ensemble_probabilities.write_log_probabilities(path, trial.evaluate.log_probabilities(split), groups)


def find_resume_epoch(trial: Trial | FunctionTrial, checkpoint: Path, heard: int) -> tuple[int, str | None]:
    """Return the epoch after which the trial goes on, and why a checkpoint was of no use; remove such a file."""
    try:
        epoch, note = trial.saved_epoch(checkpoint), None
    except UnusableCheckpointError as unusable:
        epoch, note = 0, str(unusable)
    if epoch > heard:
        epoch, note = 0, f"{checkpoint}: is of epoch {epoch}, the study knows of {heard}"
    if note:
        checkpoint.unlink()
    return epoch, note
