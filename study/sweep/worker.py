"""The code of a worker: runs one job, and reports to Ray Tune.

PyTorch is imported where a trial runs in this process: a worker whose trials have their own starts without it.
"""

import json
import os
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import partial

import ray
from ray import ObjectRef, tune

from study import data
from study.data.folds import select_fold
from study.models import initial_weights
from study.sweep.failures import JobError, NodeUnusableError, TrialFailedError
from study.sweep.fresh_process import run_job_in_fresh_process
from study.sweep.host_memory import MemoryLimit
from study.sweep.job_payload import JobPayload, JobReport, MetricsReport, ReportListener, StartReport, TuneConfig
from study.training.config import TrialConfig
from study.training.gpu_errors import NoDeviceError
from study.upstream.environment import ProcessKind, set_variables_here

set_variables_here(ProcessKind.TRIAL)


def run_job(config: TuneConfig, *, datasets: Mapping[str, ObjectRef], weights: Mapping[str, tuple[str, str]]) -> None:
    """Train a trial and report each epoch, or load a trained one and report the test split.

    Args:
        config: of the trial.
        datasets: the study's data by `data.section_key` of their sections, and features of frozen networks by
            `features.data_key_with_features`: references to one copy each in the machine's shared memory.
        weights: where the driver found the weights that trials begin from, see
            `study.models.initial_weights.locate_weights`.

    Raises:
        WorkerReleasedError: the process is to be given back.
        NodeUnusableError: a GPU is asked for, and the one that Ray gave this process cannot be used, or not any more.
        OSError: the disk is full or fails, whatever a library made of that.
        TrialFailedError: the trial has failed otherwise.
    """
    job = config["job"]
    if job.kind == "release":
        raise WorkerReleasedError
    listener, memory = TuneListener(job.n_reported_epochs), MemoryLimit.of_this_process()
    try:
        if job.in_fresh_process:
            run_job_in_fresh_process(job, listener)
        else:
            _run_in_this_process(job, datasets, weights, listener)
    except Exception as error:
        told = _error_for_driver(error, job, memory)
        if isinstance(told, NoDeviceError):
            machine = ray.get_runtime_context().get_node_id()
            raise NodeUnusableError(machine, socket.gethostname(), str(told)) from None
        raise told from None
    finally:
        if not job.in_fresh_process:  # the process stays for other trials
            from study.training.device import free_gpu_memory

            # a GPU that has failed raises again, which must not hide the error that ended the trial
            with suppress(RuntimeError):
                free_gpu_memory()
        listener.is_over.set()


def _error_for_driver(error: Exception, job: JobPayload, memory: MemoryLimit) -> JobError:
    if isinstance(error, NoDeviceError | TrialFailedError):  # of a fresh process, where PyTorch is not needed here
        return error
    from study.sweep import job_execution

    return job_execution.error_for_driver(error, job.device, memory)


def _run_in_this_process(
    job: JobPayload,
    datasets: Mapping[str, ObjectRef],
    weights: Mapping[str, tuple[str, str]],
    listener: ReportListener,
) -> None:
    """Run a job in this process."""
    from study.sweep import job_execution
    from study.training import features
    from study.training.function_trial import FunctionTrial
    from study.training.trial import Trial

    initial_weights.use_located_weights(weights)
    config = TrialConfig.from_document(json.loads(job.sections_json))
    job_execution.prepare_process(job, config)
    if job.function is None:
        _move_to_end_of_path(job.driver_folder)
        key = data.section_key(config.data)
        given = datasets.get(features.data_key_with_features(config.model, key)) or datasets[key]
        dataset = select_fold(ray.get(given), job.fold)
        job_execution.run_trial_job(
            partial(Trial, config, dataset, job.device, loads_weights=job.kind != "test"), job, listener
        )
        return
    job_execution.log_mlflow_into_trial_folder(job)
    trial = FunctionTrial(config, job.function, job.required_metrics, job.device, fold=job.fold)
    try:
        job_execution.run_trial_job(lambda: trial, job, listener)
    finally:
        trial.unload_function()


def _move_to_end_of_path(folder: str | None) -> None:
    """Move a folder to the end of `sys.path`: it must not hide a library."""
    sys.path.sort(key=lambda place: place == folder)


CLEAN_UP_TIMEOUT_S = 600.0
"""Seconds that a trial which is stopped gets to end, to free its GPU or to clean up."""


class WorkerReleasedError(Exception):
    """This process is given back: Tune keeps none whose trial has failed."""


class TuneListener:
    """Listener that reports to Ray Tune.

    Args:
        heard: number of epochs in the ledger.
    """

    def __init__(self, heard: int) -> None:
        self._heard = heard
        self.is_over = threading.Event()

    def __call__(self, report: JobReport) -> None:
        """Report, and end this process `CLEAN_UP_TIMEOUT_S` after Tune has stopped the trial, unless that ends by then.

        Tune drops a trial for which a process is not free in time, and tells nobody; of a process that died it tells.
        """
        try:
            if isinstance(report, StartReport):
                report_start(self._heard, report)
            elif isinstance(report, MetricsReport):
                report_metrics(report)
            else:
                tune.report({report.kind: report.text})
        except SystemExit:
            threading.Thread(target=lambda: self.is_over.wait(CLEAN_UP_TIMEOUT_S) or os._exit(1), daemon=True).start()
            raise


def report_metrics(report: MetricsReport) -> None:
    """Report metrics as JSON: Tune would flatten a nested report twice, and keep six statistics of each number."""
    metrics = {"metrics": json.dumps(report.metrics)}
    tune.report(metrics if report.epoch is None else {"epoch": report.epoch, **metrics})


_is_place_reported = False
"""Whether the driver was told where this process is."""


def report_start(heard: int, report: StartReport) -> None:
    """Report that a trial begins, where the driver cannot know where or after which epoch.

    That is so in a process's first job, and for a trial that had reported before. A report costs as much as a very
    short trial.
    """
    global _is_place_reported
    if _is_place_reported and not heard and not report.checkpoint_problem:
        return
    place = {"node": f"{socket.gethostname()}:{os.getpid()}", "machine": ray.get_runtime_context().get_node_id()}
    # text, as Tune would flatten a nested value
    place["device"] = json.dumps(dict(report.device))
    place["memory"] = json.dumps(asdict(MemoryLimit.of_this_process()))
    tune.report({**place, "behind": report.last_done_epoch, "note": report.checkpoint_problem})
    _is_place_reported = True
