"""What a worker process runs: one job, reporting to Ray Tune."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ray
from ray import tune

from study import data
from study.data import Dataset
from study.training import Diverged, Trial, TrialConfig


def run_job(config: Mapping[str, Any], *, datasets: Mapping[str, Any]) -> None:
    """Train a trial and report each epoch, or load a trained one and report the test split.

    Args:
        config: the trial's parameters under their keys, and `job`: `kind`, `trial` (its number), `document` (its
            complete sections) and `model` (path of the weights to write or read, None for neither).
        datasets: the study's data by `data.key` of their sections, references to one copy in the machine's shared
            memory each.
    """
    job = config["job"]
    trial_config = TrialConfig.from_document(job["document"])
    dataset: Dataset = ray.get(datasets[data.key(trial_config.data)])
    trial = Trial(trial_config, dataset)
    if job["kind"] == "test":
        trial.load(Path(job["model"]))
        tune.report({"metrics": trial.evaluate("test", final=True)})
        return
    tune.report({"node": f"{socket.gethostname()}:{os.getpid()}"})
    try:
        for epoch, metrics in enumerate(trial.run(), start=1):
            if epoch == trial.config.train.epochs and job["model"]:
                trial.save(Path(job["model"]))  # before the last report: a complete trial has its model
            tune.report({"epoch": epoch, "metrics": metrics})
    except Diverged as diverged:
        tune.report({"diverged": str(diverged)})
