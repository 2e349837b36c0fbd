"""What workers are told of jobs."""

import json
from dataclasses import asdict
from typing import Any

from study.home.folder import StudyFolder
from study.home.record import TrialRecord
from study.sweep.agenda import Agenda
from study.sweep.job import Job, Work
from study.sweep.kept_states import KeptStates
from study.training import own_function
from study.training.device import asked_for


class Works:
    """Turns the jobs of a study into what its workers are told.

    Args:
        agenda: of the study.
        folder: its own.
        states: says which states stay behind the last epoch.
    """

    def __init__(self, agenda: Agenda, folder: StudyFolder, states: KeptStates) -> None:
        self._agenda, self._spec, self._folder, self._states = agenda, agenda.spec, folder, states
        function = agenda.spec.function
        self._function = own_function.place(function, folder.path) if function else None

    def of(self, job: Job) -> Work:
        """A job for one process, see `study.sweep.worker.run_job`."""
        trial, folder = job.trial, self._folder
        goal = self._spec.objective
        kept = self._spec.base["train"]["keep_epochs"] if trial.stage in ("confirm", "final") else []
        end = self._states.file(trial) if job.kind == "train" else None
        work = {
            "kind": job.kind,
            "trial": trial.number,
            "run": trial.run,
            "alone": trial.alone,
            "gpu": self._spec.resources.gpu,
            "heard": trial.epochs,
            "document": json.dumps(self._document(trial)),
            "checkpoint": str(folder.checkpoint_file(trial.number)),
            "model": str(folder.model_file(trial.number)) if job.needs_model_file else None,
            "goal": json.dumps(asdict(goal)) if job.needs_chosen_weights(self._spec) else None,
            "function": self._function,
            "device": asked_for(self._spec.resources.gpu),
            "whole": trial.alone or self._spec.resources.gpu == 1,
            "needed": goal.needed,
            "end": str(end) if end else None,
            "kept": {epoch: str(folder.model_file(trial.number, epoch)) for epoch in kept},
        }
        return Work(work)

    def _document(self, trial: TrialRecord) -> dict[str, Any]:
        longer = {"train.epochs": trial.until} if trial.until else {}
        return self._spec.trial_document({**trial.params, "train.seed": trial.seed, **longer})
