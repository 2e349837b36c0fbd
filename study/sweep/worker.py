"""What a worker process runs: one job, reporting to Ray Tune."""

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
from ray import tune

from study import data, models
from study.data import Dataset
from study.training import PAUSE, Diverged, FunctionTrial, Trial, TrialConfig, Unusable

if TYPE_CHECKING:
    from study.ranking.epochs import EpochChoice


def run_job(config: Mapping[str, Any], *, datasets: Mapping[str, Any], weights: Mapping[str, str]) -> None:
    """Train a trial and report each epoch, or load a trained one and report the test split.

    Args:
        config: the trial's parameters under their keys, and `job`: `kind`, `trial` (its number), `document` (its
            complete sections as JSON), `model` (path of the weights to write or read, None for neither), `kept` (paths
            of those to write on the way, by epoch), `checkpoint` (path of the state to go on from and to keep),
            `heard` (epochs that the study knows of) and `goal` (the study's objective as JSON, where it chooses the
            epoch whose weights are taken; None: the last), `function` (where the user's training function is found,
            None without one) and `needed` (metrics that it must yield).
        datasets: the study's data by `data.key` of their sections, references to one copy in the machine's shared
            memory each.
        weights: where the driver found the weights that trials begin from, see `study.models.weights_places`.
    """
    models.take_weights_places(weights)
    job = config["job"]
    trial_config = TrialConfig.from_document(json.loads(job["document"]))
    trial: Trial | FunctionTrial
    if job["function"] is not None:
        trial = FunctionTrial(trial_config, job["function"], job["needed"])
    else:
        dataset: Dataset = ray.get(datasets[data.key(trial_config.data)])
        trial = Trial(trial_config, dataset, begins=job["kind"] != "test")
    try:
        if job["kind"] == "test":
            trial.load(Path(job["model"]))
            tune.report({"metrics": trial.evaluate("test", final=True)})
        else:
            _train(trial, job)
    except Diverged as diverged:
        tune.report({"diverged": str(diverged)})


def _train(trial: Trial | FunctionTrial, job: Mapping[str, Any]) -> None:
    checkpoint = Path(job["checkpoint"])
    behind, note = _goes_on_behind(trial, checkpoint, job["heard"])
    tell_start(job["heard"], behind, note)
    for epoch, metrics in enumerate(trial.run(checkpoint, PAUSE, _choice(job["goal"])), start=behind + 1):
        if epoch == trial.config.train.epochs and job["model"]:
            trial.save(Path(job["model"]))  # before the last report: a complete trial has its model
        if epoch in job["kept"]:
            trial.save(Path(job["kept"][epoch]))
        tune.report({"epoch": epoch, "metrics": metrics})


def _choice(goal: str | None) -> "EpochChoice | None":
    """What chooses a trial's epoch by an objective, given as JSON; None: the last epoch is taken."""
    if goal is None:
        return None
    from study.ranking.epochs import EpochChoice  # tenths of a second, which most studies have no use for
    from study.spec.objective import Objective

    return EpochChoice(Objective.from_document(json.loads(goal)))


def tell_start(heard: int, behind: int = 0, note: str | None = None) -> None:
    """Report that a trial begins, where the driver cannot know where or behind which epoch: in a process's first job,
    and for a trial that had reported before. A report costs as much as a very short trial.
    """
    global _known
    if heard or note or not _known:
        machine = ray.get_runtime_context().get_node_id()
        told = {"node": f"{socket.gethostname()}:{os.getpid()}", "machine": machine}
        tune.report({**told, "behind": behind, "note": note})
        _known = True


_known = False
"""Whether the driver knows of this process."""


def _goes_on_behind(trial: Trial | FunctionTrial, checkpoint: Path, heard: int) -> tuple[int, str | None]:
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
