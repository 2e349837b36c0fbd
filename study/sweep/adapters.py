"""The agenda in Ray Tune's terms: a searcher that hands out jobs and a scheduler that hears every result."""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ray
from ray import cloudpickle
from ray.tune import ProgressReporter, Stopper
from ray.tune.experiment import Trial as TuneTrial
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.search import Searcher
from ray.tune.stopper import NoopStopper

from study.home.events import ENDED
from study.home.folder import StudyFolder
from study.sweep.agenda import Agenda, CannotGoOn
from study.sweep.failures import HUNG, NODE_LOST, PROCESS_DIED, Failure, failure, full_disk, is_out_of_reach
from study.sweep.hang import Watch
from study.sweep.requests import Ear
from study.training import own_function
from study.upstream.ray_internals import (
    actor,
    actor_id,
    ended_trials,
    error_files,
    forget,
    has_free_process,
    waits_for_room,
)

LOOK = 1.0
"""Seconds between two looks for trials that hang; Tune's loop turns with every report, of a thousand trials perhaps."""


KEPT = 30.0
"""Seconds that Tune keeps a trial which has ended, at least: by then nothing more comes of it."""


class JobSearcher(Searcher):
    """Hands the agenda's jobs to Tune, as many at once as there are slots."""

    def __init__(self, agenda: Agenda, folder: StudyFolder, slots: Callable[[], int]) -> None:
        super().__init__()
        self._agenda, self._folder, self._slots = agenda, folder, slots
        self._under_way: set[str] = set()
        function = agenda.spec.function
        self._function = own_function.place(function, folder.path) if function else None

    def suggest(self, trial_id: str) -> Any:
        if len(self._under_way) >= self._slots():
            return None
        job = self._agenda.next()
        if job is None:
            return None
        if job == "done":
            return str(Searcher.FINISHED)
        trial, folder = job.trial, self._folder
        goal = self._agenda.spec.objective
        kept = self._agenda.spec.base["train"]["keep_epochs"] if trial.stage in ("confirm", "final") else []
        params = {**trial.params, "train.seed": trial.seed}
        work = {
            "kind": job.kind,
            "trial": trial.number,
            "attempt": trial.attempt,
            "alone": trial.alone,
            "heard": trial.epochs,
            "document": json.dumps(self._agenda.spec.trial_document(params)),  # Tune copies and flattens what is nested
            "checkpoint": str(folder.checkpoint_file(trial.number)),
            "model": str(folder.model_file(trial.number)) if job.needs_model_file else None,
            "goal": json.dumps(asdict(goal)) if job.needs_chosen_weights(self._agenda.spec) else None,
            "function": self._function,
            "needed": goal.needed,
            "kept": {epoch: str(folder.model_file(trial.number, epoch)) for epoch in kept},
        }
        self._under_way.add(trial_id)
        return {**params, "job": work}

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Its slot is free; what came of it the scheduler hears."""
        self._under_way.discard(trial_id)

    def save(self, checkpoint_path: str) -> None:
        """Nothing: the ledger is the memory, Tune's snapshots are never read."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing: see save."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return Searcher, ()  # Tune pickles what it is given; see save


class ReportingScheduler(FIFOScheduler):
    """Tells the agenda every result, every end and what users ask, stops what the agenda stops, and ends what hangs.

    Only the newest attempt of a trial is heard: one that was given up as lost may still report.
    """

    def __init__(self, agenda: Agenda, folder: StudyFolder) -> None:
        super().__init__()
        self._agenda, self._folder = agenda, folder
        self._watch = Watch(agenda.spec.resources.hang, agenda.record, agenda.spec.epochs)
        self._ear = Ear(agenda, folder.requests)
        self._hung: set[str] = set()
        self._looked = 0.0
        self._nodes: dict[str, str] = {}  # where each actor is, as its process told with its first job
        self._machines: dict[str, str] = {}  # Ray's id of the node of each actor
        self._actors: dict[str, str] = {}  # of each run
        self._begun: set[str] = set()
        self._ended: set[TuneTrial] = set()  # as Tune kept them when they were last looked at
        self._forgot = time.monotonic()

    def choose_trial_to_run(self, tune_controller: Any) -> TuneTrial | None:
        """Tune asks in each round of its loop, and gives what is chosen the process that came free.

        That is the first of those that wait for room. A trial that a process is starting for is left to it: Tune would
        end that process, and where trials end more often than processes start, those would never come to start.
        """
        self._ear.listen()
        live = tune_controller.get_live_trials()
        for trial in live:
            if trial.trial_id not in self._begun and trial.status == TuneTrial.RUNNING:
                self._begin(trial)
        if time.monotonic() - self._looked >= LOOK:
            self._end_what_hangs(live)
        if time.monotonic() - self._forgot >= KEPT:
            self._forget_what_ended(tune_controller)
        if not has_free_process(tune_controller):
            return None
        pending = (trial for trial in live if trial.status == TuneTrial.PENDING)
        waiting = [trial for trial in pending if waits_for_room(tune_controller, trial)]
        return min(waiting, key=lambda trial: trial.config["job"]["trial"], default=None)

    def _end_what_hangs(self, live: Iterable[TuneTrial]) -> None:
        running = {trial.trial_id: trial for trial in live if trial.status == TuneTrial.RUNNING}
        for name in self._watch.hanging(running):
            self._hung.add(name)
            ray.kill(actor(running[name]))  # Tune hears of it as of any process that dies
        self._looked = time.monotonic()

    def _forget_what_ended(self, tune_controller: Any) -> None:
        """Let go of the trials that had ended when this was last called, and here of what is known of their runs."""
        forget(tune_controller, self._ended)
        for trial in self._ended:
            self._begun.discard(trial.trial_id)
            self._actors.pop(trial.trial_id, None)
        self._ended, self._forgot = ended_trials(tune_controller), time.monotonic()

    def on_trial_result(self, tune_controller: Any, trial: TuneTrial, result: Mapping[str, Any]) -> str:
        job, agenda = trial.config["job"], self._agenda
        number, record = job["trial"], agenda.record.trials[job["trial"]]
        self._actors[trial.trial_id] = actor_id(trial)
        if "node" in result:
            self._nodes[actor_id(trial)] = result["node"]
            self._machines[actor_id(trial)] = result["machine"]
            self._begun.add(trial.trial_id)
        self._watch.heard(trial.trial_id, result.get("epoch"), result.get("metrics/time/epoch"))
        if agenda.stopping or job["attempt"] != record.attempt:
            return str(TrialScheduler.STOP)
        metrics = {key.removeprefix("metrics/"): value for key, value in result.items() if key.startswith("metrics/")}
        goes_on = True
        if "diverged" in result:
            told = agenda.untested if job["kind"] == "test" else agenda.failed
            told(number, Failure("DIVERGED", f"diverged: {result['diverged']}"))
        elif job["kind"] == "test":
            agenda.tested(number, metrics)
        elif "epoch" in result:
            self._begin(trial)
            goes_on = agenda.reported(number, result["epoch"], metrics)
        elif record.state != "running":
            goes_on = agenda.started(number, result["node"], result["behind"], result.get("note"))
        self._tidy(number)
        return str(TrialScheduler.CONTINUE if goes_on else TrialScheduler.STOP)

    def _begin(self, trial: TuneTrial) -> None:
        """Note the start of a trial that begins from its first epoch in a known process: such a one does not tell."""
        self._actors[trial.trial_id] = actor_id(trial)
        job, node = trial.config["job"], self._nodes.get(actor_id(trial))
        current = job["attempt"] == self._agenda.record.trials[job["trial"]].attempt and not self._agenda.stopping
        if job["kind"] == "train" and not job["heard"] and node and current and trial.trial_id not in self._begun:
            self._begun.add(trial.trial_id)
            self._agenda.started(job["trial"], node)

    def on_trial_complete(self, tune_controller: Any, trial: TuneTrial, result: Mapping[str, Any]) -> None:
        """The trial function returned, or was stopped; the agenda knows why, unless there was no last epoch."""
        job, agenda = trial.config["job"], self._agenda
        record = agenda.record.trials[job["trial"]]
        current = job["attempt"] == record.attempt and not agenda.stopping
        if job["kind"] == "train" and record.state == "running" and current:
            agenda.failed(job["trial"], Failure("BUG", "ended before its last epoch"))

    def on_trial_error(self, tune_controller: Any, trial: TuneTrial) -> None:
        """The trial function raised, or its process died.

        Raises:
            CannotGoOn: there was no room on the disk.
        """
        job, error = trial.config["job"], _error_of(trial)
        number = job["trial"]
        if full := full_disk(error):
            raise CannotGoOn(full, self._folder.path) from error
        if self._agenda.stopping or job["attempt"] != self._agenda.record.trials[number].attempt:
            return
        try:
            self._folder.write_error(number, str(error))
        except OSError as problem:
            raise CannotGoOn(problem, self._folder.path) from problem
        cause = HUNG if trial.trial_id in self._hung else failure(error)
        if cause in (HUNG, PROCESS_DIED) and self._lost_its_node(trial):
            cause = NODE_LOST
        if job["kind"] == "train":
            self._agenda.failed(number, cause)
        else:
            self._agenda.untested(number, cause)
        self._tidy(number)

    def _lost_its_node(self, trial: TuneTrial) -> bool:
        return is_out_of_reach(self._machines.get(self._actors.pop(trial.trial_id, "")), ray.nodes())

    def _tidy(self, number: int) -> None:
        """A trial that has ended needs no checkpoint."""
        if self._agenda.record.trials[number].state in ENDED:
            self._folder.checkpoint_file(number).unlink(missing_ok=True)

    def on_trial_remove(self, tune_controller: Any, trial: TuneTrial) -> None:
        """Nothing: a trial is removed only when the study is stopped."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return FIFOScheduler, ()  # see JobSearcher.save


class StudyOver(BaseException):
    """Leaves Tune's loop. No Exception, because Tune would then clean up first, and wait for each actor to end by
    itself; shutting Ray down ends them at once."""


class AgendaStopper(Stopper):
    """Ends Tune's run when the agenda is over.

    Raises:
        StudyOver: it is.
    """

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False

    def stop_all(self) -> bool:
        if self._agenda.is_over:
            raise StudyOver
        return False

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return NoopStopper, ()  # see JobSearcher.save


class NoReports(ProgressReporter):
    """Has Tune show nothing: in a notebook its own reporter clears the cell's output, whatever its verbosity."""

    def should_report(self, trials: list[TuneTrial], done: bool = False) -> bool:
        return False


def _error_of(trial: TuneTrial) -> BaseException:
    """What ended a trial's run, as Ray raised it; only its text where it cannot be unpickled here."""
    pickled, text = error_files(trial)
    try:
        if pickled is not None:
            error = cloudpickle.loads(Path(pickled).read_bytes())
            if isinstance(error, BaseException):
                return error
    except Exception:  # an exception's class may do anything when it is made anew
        pass
    return RuntimeError(Path(text).read_text(encoding="utf-8") if text and Path(text).exists() else "unknown")
