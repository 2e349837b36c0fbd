"""The code of a worker process: one job, reporting to Ray Tune."""

import json
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
import torch
from ray import tune

from study import data, models
from study.data import Dataset
from study.errors import of_disk
from study.sweep.failures import Broken, NodeUnusable
from study.sweep.host_memory import Memory
from study.sweep.job_payload import JobPayload
from study.training import PAUSE, Diverged, FunctionTrial, Trial, TrialConfig, Unusable
from study.training.device import CPU, CUDA, CardFull, NoDevice, before_cuda, facts, free_memory, keep_to, try_cards
from study.training.gpu_errors import fault
from study.upstream.environment import Part, set_here

if TYPE_CHECKING:
    from study.ranking.epochs import EpochChoice


# What a trial in a worker goes on from, and which epoch's weights it ends with.


def choice(goal: str | None) -> "EpochChoice | None":
    """Return what chooses a trial's epoch by an objective, given as JSON; None: the last epoch is taken."""
    if goal is None:
        return None
    from study.ranking.epochs import EpochChoice  # tenths of a second, which most studies have no use for
    from study.spec.objective import Objective

    return EpochChoice(Objective.from_document(json.loads(goal)))


def goes_on_behind(trial: Trial | FunctionTrial, checkpoint: Path, heard: int) -> tuple[int, str | None]:
    """The epoch behind which the trial goes on; where the file is of no use it is removed, and why is said."""
    try:
        epoch, note = trial.epochs_in(checkpoint), None
    except Unusable as unusable:
        epoch, note = 0, str(unusable)
    if epoch > heard:
        epoch, note = 0, f"{checkpoint}: is of epoch {epoch}, the study knows of {heard}"
    if note:
        checkpoint.unlink()
    return epoch, note


set_here(Part.TRIAL)


def run_job(config: Mapping[str, Any], *, datasets: Mapping[str, Any], weights: Mapping[str, tuple[str, str]]) -> None:
    """Train a trial and report each epoch, or load a trained one and report the test split.

    Args:
        config: the trial's parameters under their keys, and `job`: a `JobPayload`.
        datasets: the study's data by `data.key` of their sections, references to one copy in the machine's shared
            memory each.
        weights: where the driver found the weights that trials begin from, see `study.models.weights_places`.

    Raises:
        NodeUnusable: a GPU is asked for, and the one that Ray gave this process cannot be used, or not any more.
        OSError: the disk is full or fails, whatever a library made of that.
        Broken: the trial has failed otherwise.
    """
    job: JobPayload = config["job"]
    memory = Memory.here()
    try:
        keep_to(1.0 if job.alone else job.gpu)
        _run(job, datasets, weights)
    except NodeUnusable:
        raise
    except Exception as error:
        if job.device == CUDA and (why := fault(error)):
            raise _unusable(why) from None
        if problem := of_disk(error):
            raise OSError(problem.errno, problem.strerror, problem.filename) from None  # Ray brings no more over
        raise Broken.by(error, memory) from None
    finally:
        with suppress(RuntimeError):  # of a GPU that has failed; what ended the trial is to be told
            free_memory()  # the process stays for other trials


def _run(job: JobPayload, datasets: Mapping[str, Any], weights: Mapping[str, tuple[str, str]]) -> None:
    models.take_weights_places(weights)
    trial_config = TrialConfig.from_document(json.loads(job.document))
    before_cuda(trial_config.train)
    if job.device == CUDA:
        try_gpu(job.whole)
    make: Callable[[], Trial | FunctionTrial]
    if job.function is not None:
        make = partial(FunctionTrial, trial_config, job.function, job.needed, job.device)
    else:
        dataset: Dataset = ray.get(datasets[data.key(trial_config.data)])
        make = partial(Trial, trial_config, dataset, job.device, begins=job.kind != "test")
    trial = make()
    try:
        if job.kind == "test":
            assert job.model is not None
            trial.load(job.model)
            tell(trial.evaluate("test", final=True))
        else:
            try:
                _train(trial, job)
            except Unusable as unusable:  # states of another version, of which the trial has some by now
                job.checkpoint.unlink(missing_ok=True)
                trial = make()
                _train(trial, job, str(unusable))
    except Diverged as diverged:
        tune.report({"diverged": str(diverged)})
    finally:
        if isinstance(trial, FunctionTrial):
            trial.forget()


def _train(trial: Trial | FunctionTrial, job: JobPayload, why_anew: str | None = None) -> None:
    """Train it, and report each epoch; raises Unusable before anything is reported.

    Args:
        why_anew: why it does not go on from the states of before.
    """
    behind, note = goes_on_behind(trial, job.checkpoint, job.heard)
    course = trial.run(job.checkpoint, PAUSE, choice(job.goal), job.end)
    tell_start(job.heard, behind, why_anew or note, trial.device)
    with closing(course):  # type: ignore[type-var]
        for epoch, metrics in enumerate(course, start=behind + 1):
            if epoch == trial.config.train.epochs and job.model:
                trial.save(job.model)  # before the last report: a complete trial has its model
            if epoch in job.kept:
                trial.save(job.kept[epoch])
            tell(metrics, epoch)


def tell(metrics: Mapping[str, float], epoch: int | None = None) -> None:
    """Report the metrics of an epoch, or of the test split (None). They are JSON: of what is nested Tune would flatten
    each report twice, and keep six statistics of each number."""
    report = {"metrics": json.dumps(metrics)}
    tune.report(report if epoch is None else {"epoch": epoch, **report})


@cache
def try_gpu(whole: bool) -> None:
    """Try the GPU that Ray gave this process, once.

    Args:
        whole: no other trial has a share of it.

    Raises:
        NodeUnusable: it cannot be used.
        OutOfMemoryError: its memory is full, and it may be that of other trials.
    """
    try:
        try_cards()
    except CardFull as why:
        if not whole:
            raise torch.OutOfMemoryError(str(why)) from None
        raise _unusable(str(why)) from None
    except NoDevice as why:
        raise _unusable(str(why)) from None


def _unusable(why: str) -> NodeUnusable:
    return NodeUnusable(ray.get_runtime_context().get_node_id(), socket.gethostname(), why)


_is_known = False
"""True: the driver was told where this process is."""


def tell_start(heard: int, behind: int = 0, note: str | None = None, device: torch.device | None = None) -> None:
    """Report that a trial begins, where the driver cannot know where or behind which epoch: in a process's first job,
    and for a trial that had reported before. A report costs as much as a very short trial.
    """
    global _is_known
    if _is_known and not heard and not note:
        return
    place = {"node": f"{socket.gethostname()}:{os.getpid()}", "machine": ray.get_runtime_context().get_node_id()}
    # a text: what is nested Tune flattens
    place |= {"device": json.dumps(facts(device or torch.device(CPU))), "memory": json.dumps(asdict(Memory.here()))}
    tune.report({**place, "behind": behind, "note": note})
    _is_known = True
