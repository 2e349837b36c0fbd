"""The agenda as Ray Tune sees it: a searcher that hands out jobs, a scheduler that receives every result."""

import json
import os
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ray
from ray import cloudpickle
from ray.tune import Stopper
from ray.tune.experiment import Trial as TuneTrial
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.search import Searcher
from ray.tune.stopper import NoopStopper

from study.errors import of_disk
from study.home.driver_requests import name_of, remove_request, waiting
from study.home.events import ENDED
from study.home.folder import StudyFolder
from study.home.record import StudyRecord, TrialRecord, infinite
from study.knobs import Section
from study.sweep.agenda import Agenda, Job, StudyCannotContinueError
from study.sweep.failures import (
    HUNG,
    NODE_LOST,
    PROCESS_DIED,
    Failure,
    NodeUnusableError,
    TrialFailedError,
    failure,
)
from study.sweep.host_memory import Memory, OomDetector
from study.sweep.job_payload import JobPayload
from study.sweep.kept_states import KeptStates
from study.sweep.nodes import Nodes, is_out_of_reach
from study.sweep.reference_process import References
from study.sweep.share import Share
from study.training import function_loading
from study.upstream.tune import (
    actor,
    actor_id,
    end_free_processes,
    error_files,
    has_free_process,
    waits_for_room,
)

LOOK_EVERY = 1.0
"""Seconds between two looks at the requests; a network file system may show a new file later."""


class RequestInbox:
    """The requests of a folder, which the agenda obeys, each once and in the order in which they were made."""

    def __init__(self, agenda: Agenda, folder: Path) -> None:
        self._agenda, self._folder, self._looked = agenda, folder, -LOOK_EVERY

    def poll(self) -> None:
        """Obey new requests; do nothing within `LOOK_EVERY` of the last call.

        Raises:
            StudyCannotContinueError: the ledger cannot be written.
        """
        if time.monotonic() - self._looked < LOOK_EVERY:
            return
        self.obey()
        self._looked = time.monotonic()

    def obey(self) -> None:
        """Obey the requests that are there and refuse unreadable ones; stop reading once the study stops.

        Raises:
            StudyCannotContinueError: the ledger cannot be written.
        """
        for path, request in waiting(self._folder):
            if self._agenda.stopping:
                return
            if request is None:
                self._agenda.refuse(name_of(path), "its file cannot be read as a request")
            else:
                self._agenda.obey(request)
            remove_request(path)


HANGS_AFTER_EPOCHS, MIN_HANG_S = 10.0, 60.0
"""A trial hangs when it has not reported for so many usual epochs of the study, and for at least so many seconds."""

UNUSUAL_EPOCH_FACTOR = 10.0
"""Factor that is allowed for an unusual epoch: start, first epoch, last epoch, reading the test split."""

NEWEST = 101
"""Number of newest epochs whose median is the usual epoch."""

BLINK = 5.0
"""Most seconds that count between two looks: while this process itself was stopped, it could hear no report."""


class HangDetector:
    """Detector of trials that hang; time in which this process was stopped does not count.

    Args:
        limit: seconds without a report; None: derived from the usual epoch of the study's trials on that kind of device
            or, while there are none of that kind, of the slowest other kind.
        record: source of the epochs so far.
        last: a trial's last epoch, which may take longer than the others.
    """

    def __init__(self, limit: float | None, record: StudyRecord, last: int) -> None:
        self._limit, self._last = limit, last
        self._now, self._looked = 0.0, time.monotonic()
        self._heard: dict[str, tuple[float, bool]] = {}
        self._kinds: dict[str, str] = {}
        self._epochs: dict[str, deque[float]] = {}
        for trial in record.trials.values():
            for report in trial.reports:
                if (seconds := report.get("time/epoch")) is not None:
                    self._took(trial.device.get("name", ""), seconds)

    def heard(
        self, name: str, epoch: int | None = None, seconds: float | None = None, kind: str = "", last: int | None = None
    ) -> None:
        """Note that a trial has reported: an epoch and the seconds that it took, or its start (None).

        Args:
            kind: name of the device that it runs on.
            last: its last epoch, where it differs from that of the other trials.
        """
        self._advance()
        self._heard[name] = self._now, epoch is None or epoch + 1 == (last or self._last)
        self._kinds[name] = kind
        if seconds is not None:
            self._took(kind, seconds)

    def hanging(self, running: Iterable[str]) -> list[str]:
        """Return the running trials that have not reported for too long; each is returned once."""
        self._advance()
        self._heard = {name: self._heard.get(name, (self._now, True)) for name in running}
        self._kinds = {name: kind for name, kind in self._kinds.items() if name in self._heard}
        usual = {kind: self._usual(kind) for kind in {"", *self._kinds.values()}}
        hanging = [
            name
            for name, (at, slow) in self._heard.items()
            if self._now - at > self._patience(usual[self._kinds.get(name, "")], slow)
        ]
        self._heard |= {name: (float("inf"), True) for name in hanging}
        return hanging

    def _advance(self) -> None:
        now = time.monotonic()
        self._now, self._looked = self._now + min(now - self._looked, BLINK), now

    def _took(self, kind: str, seconds: float) -> None:
        self._epochs.setdefault(kind, deque(maxlen=NEWEST)).append(seconds)

    def _usual(self, kind: str) -> float:
        """Return the seconds without a report after which a trial on a kind of device hangs."""
        known = [self._epochs[kind]] if kind in self._epochs else list(self._epochs.values())
        return max([MIN_HANG_S, *(HANGS_AFTER_EPOCHS * statistics.median(epochs) for epochs in known)])

    def _patience(self, usual: float, slow: bool) -> float:
        if self._limit is not None:
            return self._limit
        return UNUSUAL_EPOCH_FACTOR * usual if slow else usual


def error_of(trial: TuneTrial) -> BaseException:
    """Return the error that ended a trial's run, as Ray raised it; only its text where it cannot be unpickled here."""
    pickled, text = error_files(trial)
    try:
        if pickled is not None:
            error = cloudpickle.loads(Path(pickled).read_bytes())
            if isinstance(error, BaseException):
                return error
    except Exception:  # an exception's class may do anything when it is made anew
        pass
    return RuntimeError(Path(text).read_text(encoding="utf-8") if text and Path(text).exists() else "unknown")


HANG_CHECK_INTERVAL_S = 1.0
"""Seconds between two looks for trials that hang; Tune's loop turns with every report, perhaps of a thousand trials."""


REST = 0.1
"""Seconds of a pause in Tune's loop while a study has no trial under way and another study has its room."""


class JobSearcher(Searcher):
    """Searcher that hands the agenda's jobs to Tune, as many at once as there are slots or as the share allows."""

    def __init__(
        self,
        agenda: Agenda,
        folder: StudyFolder,
        nodes: Nodes,
        slots: Callable[[], int],
        share: Share | None = None,
        states: KeptStates | None = None,
    ) -> None:
        super().__init__()
        self._agenda, self._spec, self._folder, self._nodes = agenda, agenda.spec, folder, nodes
        self._states = states or KeptStates(folder, agenda.spec, agenda.record)
        function = agenda.spec.function
        self._function = function_loading.place(function, folder.path) if function else None
        self._slots, self._share = slots, share
        self._working_folder: str | None = None
        with suppress(FileNotFoundError):  # a job's, removed by Ray
            self._working_folder = os.getcwd()
        self._under_way: set[str] = set()

    def suggest(self, trial_id: str) -> Any:
        free = self._room() - len(self._under_way)
        if free < 1:
            if not self._under_way:
                time.sleep(REST)
            return None
        job = self._agenda.next()
        if self._share is not None:
            self._share.wants(job is not None and job != "done")
        if job is None:
            return None
        if job == "done":
            return str(Searcher.FINISHED)
        self._under_way.add(trial_id)
        place = json.dumps(self._nodes.place(job.trial.alone))
        return {**job.trial.params, "train.seed": job.trial.seed, "job": self._payload(job), "place": place}

    def _room(self) -> int:
        return self._slots() if self._share is None else self._share.limit(len(self._under_way))

    def _payload(self, job: Job) -> JobPayload:
        """Return what a worker is told of a job."""
        trial, folder = job.trial, self._folder
        goal, document = self._spec.objective, self._document(job.trial)
        kept = self._spec.train.keep_epochs if trial.stage in ("confirm", "final") else []
        return JobPayload(
            kind=job.kind,
            trial=trial.number,
            run=trial.run,
            heard=trial.epochs,
            document=json.dumps(document),
            device=self._spec.resources.device,
            gpu=self._spec.resources.gpu,
            alone=trial.alone,
            whole=trial.alone or self._spec.resources.gpu == 1,
            checkpoint=folder.checkpoint_file(trial.number),
            model=folder.model_file(trial.number) if job.needs_model_file else None,
            kept={epoch: folder.model_file(trial.number, epoch) for epoch in kept},
            end=self._states.file(trial) if job.kind == "train" else None,
            goal=json.dumps(asdict(goal)) if job.needs_chosen_weights(self._spec) else None,
            function=self._function,
            needed=[] if self._spec.train.with_val else goal.needed,
            fresh=self._function is not None and function_loading.is_fresh(document["method"]),
            output=folder.output_file(trial.number),
            own_runs=folder.own_runs(trial.number),
            fold=trial.fold,
            driver_folder=self._working_folder,
            is_judged=trial.fold is not None and trial.stage == "confirm" and self._function is None,
        )

    def _document(self, trial: TrialRecord) -> Mapping[str, Section]:
        longer = {"train.epochs": trial.until} if trial.until else {}
        return self._spec.trial_document({**trial.params, "train.seed": trial.seed, **longer})

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Free the trial's slot; its result goes to the scheduler."""
        self._under_way.discard(trial_id)

    def save(self, checkpoint_path: str) -> None:
        """Do nothing: the ledger is the memory, Tune's snapshots are never read."""

    def restore(self, checkpoint_path: str) -> None:
        """Do nothing, see `save`."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return Searcher, ()  # Tune pickles what it is given; see save


def _job(trial: TuneTrial) -> JobPayload:
    job = trial.config["job"]
    assert isinstance(job, JobPayload)
    return job


class ReportingScheduler(FIFOScheduler):
    """Scheduler that passes results, ends and users' requests to the agenda, and ends trials that are stopped or hang.

    Only the newest run of a trial is heard: one that was given up as lost may still report.
    """

    def __init__(
        self,
        agenda: Agenda,
        folder: StudyFolder,
        nodes: Nodes | None = None,
        tell: Callable[[str], object] = str,
        share: Share | None = None,
        states: KeptStates | None = None,
        references: References | None = None,
    ) -> None:
        super().__init__()
        self._references = references
        self._states = states or KeptStates(folder, agenda.spec, agenda.record)
        self._agenda, self._folder, self._tell, self._share = agenda, folder, tell, share
        self._nodes = nodes or Nodes(agenda.spec.resources, ray.nodes)
        self._watch = HangDetector(agenda.spec.resources.hang, agenda.record, agenda.spec.epochs)
        self._inbox = RequestInbox(agenda, folder.requests)
        self._hung: set[str] = set()
        self._looked = 0.0
        self._hosts: dict[str, str] = {}  # HOST:PID of each actor, as its process told with its first job
        self._node_ids: dict[str, str] = {}  # Ray's id of each actor's node
        self._deaths = OomDetector()
        self._told_infinite = False
        self._devices: dict[str, dict[str, str]] = {}  # each actor's device, as told with its first job
        self._actors: dict[str, str] = {}  # the actor of each run
        self._new: dict[str, TuneTrial] = {}  # Tune's trials that have not begun, as far as is known
        self._begun: set[str] = set()

    def on_trial_add(self, tune_controller: Any, trial: TuneTrial) -> None:
        """Note a trial that Tune has made."""
        self._new[trial.trial_id] = trial

    def choose_trial_to_run(self, tune_controller: Any) -> TuneTrial | None:
        """Return the trial that gets the process that came free: the first that waits for room; None: none does.

        Tune asks in each turn of its loop. A trial that a process is starting for is not chosen: Tune would end that
        process, and where trials end more often than processes start, none would ever finish its start.
        """
        self._inbox.poll()
        if self._references is not None:
            self._references.poll()
        for name, trial in list(self._new.items()):
            if trial.status == TuneTrial.RUNNING and name not in self._begun:
                self._begin(trial)
            if name in self._begun or trial.is_finished():
                del self._new[name]
        if time.monotonic() - self._looked >= HANG_CHECK_INTERVAL_S:
            self._end_what_hangs(tune_controller.get_live_trials())
        if self._share is not None:
            live = tune_controller.get_live_trials()
            self._share.runs(sum(trial.status == TuneTrial.RUNNING for trial in live))
        if not has_free_process(tune_controller):
            return None
        pending = [trial for trial in tune_controller.get_live_trials() if trial.status == TuneTrial.PENDING]
        if self._share is not None and not pending and self._share.gives_way:
            end_free_processes(tune_controller)
            return None
        waiting = [trial for trial in pending if waits_for_room(tune_controller, trial)]
        return min(waiting, key=lambda trial: _job(trial).trial, default=None)

    def _end_what_hangs(self, live: Iterable[TuneTrial]) -> None:
        running = {trial.trial_id: trial for trial in live if trial.status == TuneTrial.RUNNING}
        for name in self._watch.hanging(running):
            self._hung.add(name)
            ray.kill(actor(running[name]))  # Tune hears of it as of any process that dies
        self._deaths.look(self._actors[name] for name in running if name in self._actors)
        self._looked = time.monotonic()

    def on_trial_result(self, tune_controller: Any, trial: TuneTrial, result: Mapping[str, Any]) -> str:
        job, agenda = _job(trial), self._agenda
        number, record = job.trial, agenda.record.trials[job.trial]
        self._actors[trial.trial_id] = actor_id(trial)
        if "node" in result:
            self._hosts[actor_id(trial)] = result["node"]
            self._node_ids[actor_id(trial)] = result["machine"]
            self._devices[actor_id(trial)] = json.loads(result.get("device", "{}"))
            if memory := result.get("memory"):
                self._deaths.began(actor_id(trial), result["node"], Memory(**json.loads(memory)), result["machine"])
            self._begun.add(trial.trial_id)
        device = self._devices.get(actor_id(trial), {})
        metrics = json.loads(result.get("metrics", "{}"))
        if not self._told_infinite and (large := infinite(metrics)):
            self._told_infinite = True
            self._tell(f"warning: trial {number}: {large}")
        epoch, seconds, kind = result.get("epoch"), metrics.get("time/epoch"), device.get("name", "")
        self._watch.heard(trial.trial_id, epoch, seconds, kind, last=record.until)
        if agenda.stopping or job.run != record.run:
            return str(TrialScheduler.STOP)
        goes_on = True
        if "diverged" in result:
            told = agenda.untested if job.kind == "test" else agenda.failed
            told(number, Failure("DIVERGED", f"diverged: {result['diverged']}"))
        elif job.kind == "test":
            agenda.tested(number, metrics)
        elif "predicted" in result:
            self._begin(trial)
            agenda.judged(number, result["predicted"])
        elif "epoch" in result:
            self._begin(trial)
            goes_on = agenda.reported(number, result["epoch"], metrics)
        elif record.state != "running":
            goes_on = agenda.started(number, result["node"], result["behind"], result.get("note"), device)
        self._tidy(number)
        return str(TrialScheduler.CONTINUE if goes_on else TrialScheduler.STOP)

    def _begin(self, trial: TuneTrial) -> None:
        """Note the start of a trial that begins at epoch 1 in a known process, which does not report its start."""
        self._actors[trial.trial_id] = actor_id(trial)
        job, node = _job(trial), self._hosts.get(actor_id(trial))
        current = job.run == self._agenda.record.trials[job.trial].run and not self._agenda.stopping
        if job.kind == "train" and not job.heard and node and current and trial.trial_id not in self._begun:
            self._begun.add(trial.trial_id)
            self._agenda.started(job.trial, node, device=self._devices.get(actor_id(trial)))

    def on_trial_complete(self, tune_controller: Any, trial: TuneTrial, result: Mapping[str, Any]) -> None:
        """Fail a trial whose function returned before its last epoch; the agenda knows of every other end already."""
        job, agenda = _job(trial), self._agenda
        record = agenda.record.trials[job.trial]
        current = job.run == record.run and not agenda.stopping
        if job.kind == "train" and record.state == "running" and current:
            agenda.failed(job.trial, Failure("BUG", "ended before its last epoch"))

    def on_trial_error(self, tune_controller: Any, trial: TuneTrial) -> None:
        """Pass on that the trial function raised, or that its process died.

        Raises:
            StudyCannotContinueError: the disk is full or fails, or no node is left.
        """
        job, error = _job(trial), error_of(trial)
        number = job.trial
        broken = getattr(error, "cause", None) or error
        if isinstance(broken, NodeUnusableError):
            self._leave_out(broken.machine, broken.host, broken.reason)
        if problem := of_disk(error):
            raise StudyCannotContinueError(problem, self._folder.path) from error
        if self._agenda.stopping or job.run != self._agenda.record.trials[number].run:
            return
        running = sum(trial.state == "running" for trial in self._agenda.record.trials.values())
        cause = self._cause(trial, error).with_remedy(self._agenda.spec, others=running > 1)
        self._write_error(number, error)
        if job.kind == "train":
            self._agenda.failed(number, cause)
        else:
            self._agenda.untested(number, cause)
        self._tidy(number)
        self._nodes.check_left()

    def _write_error(self, number: int, error: BaseException) -> None:
        try:
            broken = getattr(error, "cause", None)
            self._folder.write_error(number, broken.text if isinstance(broken, TrialFailedError) else str(error))
        except OSError as problem:
            raise StudyCannotContinueError(problem, self._folder.path) from problem

    def _leave_out(self, machine: str, host: str, reason: str) -> None:
        """Place no more trials on a node, and tell the user once."""
        if self._nodes.leave_out(machine, host, reason):
            self._agenda.unusable(host, reason)
            self._tell(f"{host} is not used: {reason}")

    def _cause(self, trial: TuneTrial, error: BaseException) -> Failure:
        """Return what ended a trial's run; a process that vanished may have lost its node, or been ended for memory."""
        found = HUNG if trial.trial_id in self._hung else failure(error)
        if found not in (HUNG, PROCESS_DIED):
            return found
        process, nodes = self._actors.pop(trial.trial_id, ""), ray.nodes()
        if is_out_of_reach(self._node_ids.get(process), nodes):
            return NODE_LOST
        hosts = {str(node.get("NodeManagerHostname")) for node in nodes}
        why = self._deaths.of_memory(process, hosts) if found == PROCESS_DIED else None
        return Failure("OOM", why) if why else found

    def _tidy(self, number: int) -> None:
        """Remove the files of a trial that has ended, but for those that are kept."""
        if (trial := self._agenda.record.trials[number]).state in ENDED:
            self._states.ended(trial)

    def on_trial_remove(self, tune_controller: Any, trial: TuneTrial) -> None:
        """Do nothing: a trial is removed only when the study is stopped."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return FIFOScheduler, ()  # see JobSearcher.save


class StudyOverSignal(BaseException):
    """Signal that leaves Tune's loop.

    Not an `Exception`: Tune would clean up first and wait for each actor to end by itself; shutting Ray down ends them
    at once.
    """


class AgendaStopper(Stopper):
    """Stopper that ends Tune's run when the agenda is over.

    Raises:
        StudyOverSignal: the agenda is over.
    """

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False

    def stop_all(self) -> bool:
        if self._agenda.is_over:
            raise StudyOverSignal
        return False

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return NoopStopper, ()  # see `study.sweep.adapters.JobSearcher.save`
