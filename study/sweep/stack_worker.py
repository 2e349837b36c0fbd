"""What a worker process runs that trains several trials as one, reporting to Ray Tune."""

import json
import pickle
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ray
from ray import tune

from study import data
from study.data import Dataset
from study.sweep import here
from study.sweep.goes_on import choice, goes_on_behind
from study.sweep.stack_words import key
from study.training import PAUSE, Diverged, Trial, TrialConfig
from study.training.stack.stack import Apart, Member, Stack
from study.training.stack.together import apart
from study.upstream.ray_internals import word

Entry = dict[str, Any]
"""Of a row in a report, see `study.sweep.stack_reports`."""


class StackWorker:
    """Trains rows until none is left.

    Args:
        job: `stack` (by which it finds the driver's answers), `rows` (the works that it begins with, each as
            `study.sweep.worker.run_job` has it), `most` (rows that there may ever be at once) and `draws` (their own,
            or shared).
        datasets: the study's data by `data.key` of their sections, references to one copy in the machine's memory.
    """

    def __init__(self, job: Mapping[str, Any], datasets: Mapping[str, Any]) -> None:
        self._job, self._datasets = job, datasets
        self._data: dict[str, Dataset] = {}
        self._stack, self._turn = Stack(job["draws"]), 0
        self._rows: list[tuple[Mapping[str, Any], Member]] = []
        self._new: list[Member] = []  # since the stack's networks were last put together

    def run(self) -> None:
        """Train, reporting each epoch, until the driver ends it or no row is left.

        Raises:
            Whatever ends a trial, but for the `Diverged` of a row, which ends that row alone.
        """
        joining: Sequence[Mapping[str, Any]] = self._job["rows"]
        while joining or self._rows:
            begun = [entry for work in joining if (entry := self._join(work))]
            joining = self._tell(begun) if begun else ()
            if not joining and self._rows:
                began = self._worked()
                entries = self._epoch()
                joining = self._tell(entries, self._worked() - began)

    def _join(self, work: Mapping[str, Any]) -> Entry | None:
        """Take a row in; what the driver is to hear of that."""
        row = {"trial": work["trial"], "run": work["run"]}
        config = TrialConfig.from_document(json.loads(work["document"]))
        checkpoint, end = Path(work["checkpoint"]), Path(work["end"]) if work["end"] else None
        beside = self._rows[0][1].trial if self._rows else None
        if beside and (reason := apart(beside.config, config)):
            return {**row, "behind": 0, "apart": reason}
        try:
            trial = Trial(config, self._dataset(config), work["device"], beside=beside)
            behind, note = goes_on_behind(trial, checkpoint, work["heard"])
            pause = PAUSE * self._job["most"]  # the other rows wait for each write
            member = self._stack.join(trial, checkpoint, pause, choice(work["goal"]), end)
        except Diverged as diverged:
            return {**row, "behind": 0, "diverged": str(diverged)}
        except Apart as why:
            return {**row, "behind": 0, "apart": str(why)}
        self._rows.append((work, member))
        self._new.append(member)
        begins = {**row, "behind": behind, "note": note}
        return begins if work["heard"] or note or not here.known() else None

    def _dataset(self, config: TrialConfig) -> Dataset:
        """One object for all rows."""
        name = data.key(config.data)
        if name not in self._data:
            self._data[name] = ray.get(self._datasets[name])
        return self._data[name]

    def _epoch(self) -> list[Entry]:
        """Train an epoch of each row."""
        try:
            results = self._stack.epoch()
        except Apart as why:
            new, self._new = self._new, []
            return [{**self._name(work), "apart": str(why)} for work, member in self._rows if member in new]
        self._new = []
        entries = []
        for (work, member), result in zip(self._rows, results, strict=True):
            if isinstance(result, Diverged):
                entries.append({**self._name(work), "diverged": str(result)})
                continue
            if member.over and work["model"]:
                member.trial.save(Path(work["model"]))  # before the last report: a complete trial has its model
            if member.epoch in work["kept"]:
                member.trial.save(Path(work["kept"][member.epoch]))
            entries.append({**self._name(work), "epoch": member.epoch, "metrics": result})
        return entries

    def _worked(self) -> float:
        """Seconds of this process's work: on a CPU of the processors' time, which other processes do not lengthen."""
        on_cpu = self._rows[0][1].trial.device.type == "cpu"
        return time.process_time() if on_cpu else time.perf_counter()

    def _tell(self, entries: list[Entry], took: float = 0.0) -> Sequence[Mapping[str, Any]]:
        """Report, let the rows leave that the driver lets go, and give the works that join."""
        self._turn += 1
        device = self._rows[0][1].trial.device if self._rows else None
        place = {} if here.known() else here.told(device)
        tune.report({"turn": self._turn, "rows": json.dumps(entries), "took": took, **place})
        here.note()
        told = word(key(self._job["stack"], self._turn))
        if told is None:
            return ()
        answer = pickle.loads(told)
        leaving = {tuple(name) for name in answer["leave"]}
        for work, member in list(self._rows):
            if (work["trial"], work["run"]) in leaving:
                self._rows.remove((work, member))
                self._stack.leave(member)
        joining: Sequence[Mapping[str, Any]] = answer["join"]
        return joining

    @staticmethod
    def _name(work: Mapping[str, Any]) -> Entry:
        return {"trial": work["trial"], "run": work["run"]}
