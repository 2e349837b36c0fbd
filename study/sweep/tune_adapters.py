"""The agenda as Ray Tune sees it: a searcher that hands out jobs, a scheduler that receives every result."""

import json
import os
import statistics
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import ray
from ray import cloudpickle
from ray.tune import Stopper
from ray.tune.experiment import Trial as TuneTrial
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.search import Searcher
from ray.tune.stopper import NoopStopper

from study.errors import find_disk_error
from study.home.driver_requests import pending_requests, remove_request, request_id
from study.home.events import ENDED_STATES, NodeExcluded
from study.home.folder import StudyFolder
from study.home.record import StudyRecord, infinite_metrics_note
from study.sweep.agenda import Agenda, StudyCannotContinueError, TrialJob
from study.sweep.failures import (
    HUNG_FAILURE,
    NODE_LOST_FAILURE,
    PROCESS_DIED_FAILURE,
    NodeUnusableError,
    TrialFailedError,
    TrialFailure,
    failure_of_error,
)
from study.sweep.fair_share import ClusterShare
from study.sweep.host_memory import MemoryLimit, OomDetector
from study.sweep.job_payload import JobPayload
from study.sweep.nodes import TrialNodes, is_node_unreachable
from study.sweep.reference_process import ReferenceFitter
from study.training import function_loading

REQUESTS_POLL_INTERVAL_S = 1.0
"""Seconds between two looks at the requests; a network file system may show a new file later."""


class RequestInbox:
    """The requests of a folder, which the agenda obeys, each once and in the order in which they were made."""

    def __init__(self, agenda: Agenda, folder: Path) -> None:
        self._agenda, self._folder, self._looked = agenda, folder, -REQUESTS_POLL_INTERVAL_S

    def obey_requests_if_due(self) -> None:
        """Obey new requests; do nothing within `REQUESTS_POLL_INTERVAL_S` of the last call.

        Raises:
            StudyCannotContinueError: the ledger cannot be written.
        """
        if time.monotonic() - self._looked < REQUESTS_POLL_INTERVAL_S:
            return
        self.obey_pending_requests()
        self._looked = time.monotonic()

    def obey_pending_requests(self) -> None:
        """Obey the requests that are there and refuse unreadable ones; stop reading once the study stops.

        Raises:
            StudyCannotContinueError: the ledger cannot be written.
        """
        for path, request in pending_requests(self._folder):
            if self._agenda.stopping:
                return
            if request is None:
                self._agenda.refuse_request(request_id(path), "its file cannot be read as a request")
            else:
                self._agenda.obey_request(request)
            remove_request(path)


HANG_FACTOR, MIN_HANG_S = 10.0, 60.0
"""A trial hangs when it has not reported for so many usual epochs of the study, and for at least so many seconds."""

UNUSUAL_EPOCH_FACTOR = 10.0
"""Factor that is allowed for an unusual epoch: start, first epoch, last epoch, reading the test split."""

N_EPOCHS_FOR_MEDIAN = 101
"""Number of newest epochs whose median is the usual epoch."""

MAX_COUNTED_CLOCK_GAP_S = 5.0
"""Most seconds that count between two looks: while this process itself was stopped, it could hear no report."""


class HangDetector:
    """Detector of trials that hang; time in which this process was stopped does not count.

    Args:
        limit: seconds without a report; None: derived from the usual epoch of the study's trials on that kind of device
            or, while there are none of that kind, of the slowest other kind.
        record: source of the epochs so far.
        last: the last epoch, which may take longer than the others.
    """

    def __init__(self, limit: float | None, record: StudyRecord, last: int) -> None:
        self._limit, self._last = limit, last
        self._now, self._looked = 0.0, time.monotonic()
        self._heard: dict[str, tuple[float, bool, str]] = {}  # when, whether what follows is unusual, kind of device
        self._epochs: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=N_EPOCHS_FOR_MEDIAN))
        for trial in record.trials.values():
            for report in trial.reports:
                if (seconds := report.get("time/epoch")) is not None:
                    self._epochs[trial.device.get("name", "")].append(seconds)

    def note_report(self, name: str, epoch: int | None = None, seconds: float | None = None, kind: str = "") -> None:
        """Note that a trial has reported: an epoch and the seconds that it took, or its start (None).

        Args:
            kind: name of the device that it runs on.
        """
        self._advance_running_clock()
        self._heard[name] = self._now, epoch is None or epoch + 1 == self._last, kind
        if seconds is not None:
            self._epochs[kind].append(seconds)

    def find_hanging_trials(self, running: Iterable[str]) -> list[str]:
        """Return the running trials that have not reported for too long; each is returned once."""
        self._advance_running_clock()
        self._heard = {name: self._heard.get(name, (self._now, True, "")) for name in running}
        usual = {kind: self._hang_seconds(kind) for kind in {kind for _, _, kind in self._heard.values()}}
        hanging = [
            name
            for name, (at, slow, kind) in self._heard.items()
            if self._now - at > self._allowed_silence_s(usual[kind], slow)
        ]
        self._heard |= {name: (float("inf"), True, "") for name in hanging}
        return hanging

    def _advance_running_clock(self) -> None:
        now = time.monotonic()
        self._now, self._looked = self._now + min(now - self._looked, MAX_COUNTED_CLOCK_GAP_S), now

    def _hang_seconds(self, kind: str) -> float:
        """Return the seconds without a report after which a trial on a kind of device hangs."""
        known = [self._epochs[kind]] if kind in self._epochs else list(self._epochs.values())
        return max([MIN_HANG_S, *(HANG_FACTOR * statistics.median(epochs) for epochs in known)])

    def _allowed_silence_s(self, usual: float, slow: bool) -> float:
        if self._limit is not None:
            return self._limit
        return UNUSUAL_EPOCH_FACTOR * usual if slow else usual


def error_of_tune_trial(trial: TuneTrial) -> BaseException:
    """Return the error that ended a trial's run, as Ray raised it; only its text where it cannot be unpickled here."""
    with suppress(Exception):  # an exception's class may do anything when it is made anew
        error = cloudpickle.loads(Path(trial.pickled_error_file or "").read_bytes())
        if isinstance(error, BaseException):
            return error
    with suppress(OSError):
        return RuntimeError(Path(trial.error_file or "").read_text(encoding="utf-8"))
    return RuntimeError("unknown")


def actor_handle_of_trial(trial: TuneTrial) -> Any:
    """Return the handle of the process of a running trial of Tune."""
    return trial.temporary_state.ray_actor


def actor_id_of_trial(trial: TuneTrial) -> str:
    """Return a name of that process, the same for all of its handles."""
    return f"{hash(actor_handle_of_trial(trial)):x}"


HANG_CHECK_INTERVAL_S = 1.0
"""Seconds between two looks for trials that hang; Tune's loop turns with every report, perhaps of a thousand trials."""


TURN_POLL_INTERVAL_S = 0.25
"""Seconds between two looks whether it is the study's turn."""

PROCESS_REUSE_DELAY_S = 300.0
"""Seconds after which a trial that has no process is given the next that comes free. Before, its own may be starting,
and Tune would end it: where trials end more often than processes start, none would ever finish its start."""


class JobSearcher(Searcher):
    """Searcher that hands the agenda's jobs to Tune, as many at once as there are slots or as the share allows."""

    def __init__(
        self,
        agenda: Agenda,
        folder: StudyFolder,
        nodes: TrialNodes,
        slots: Callable[[], int],
        share: ClusterShare | None = None,
    ) -> None:
        super().__init__()
        self._agenda, self._spec, self._folder, self._nodes = agenda, agenda.spec, folder, nodes
        function = agenda.spec.training_function
        self._function = function_loading.function_import_folder(function, folder.path) if function else None
        self._slots, self._share = slots, share
        self._working_folder: str | None = None
        with suppress(FileNotFoundError):  # a job's, removed by Ray
            self._working_folder = os.getcwd()
        self._under_way: dict[str, dict[str, Any]] = {}
        self._ended: dict[str, Any] | None = None  # the last trial, whose process has no other yet

    def suggest(self, trial_id: str) -> Any:
        job = None
        if self.has_room_for_trial():
            job = self._agenda.next_job()
            if self._share is not None:
                self._share.note_wants_more(isinstance(job, TrialJob))
        if isinstance(job, TrialJob):
            place = json.dumps(self._nodes.trial_placement(job.trial.needs_gpu_alone))
            given = {
                **job.trial.params,
                "train.seed": job.trial.seed,
                "job": self._make_job_payload(job),
                "place": place,
            }
            self._under_way[trial_id], self._ended = given, None
            return given
        if job == "done" or not self._under_way:  # else Tune would ask for ten minutes, and end no process meanwhile
            return str(Searcher.FINISHED)
        ended = self._ended
        if ended is None or self._share is None or not self._share.has_to_give_way:
            return None
        self._ended = None
        return {**ended, "job": replace(ended["job"], kind="release")}

    def has_room_for_trial(self) -> bool:
        """Return whether one more trial may be under way."""
        under_way = len(self._under_way)
        return under_way < (self._slots() if self._share is None else self._share.trial_limit(under_way))

    def _make_job_payload(self, job: TrialJob) -> JobPayload:
        """Return what a worker is told of a job."""
        trial, folder = job.trial, self._folder
        goal, document = self._spec.objective, self._spec.trial_document({**trial.params, "train.seed": trial.seed})
        return JobPayload(
            kind=job.kind,
            trial=trial.number,
            n_earlier_starts=trial.attempt,
            n_reported_epochs=trial.n_epochs,
            sections_json=json.dumps(document),
            device=self._spec.resources.device,
            gpu_share=self._spec.resources.gpu,
            gets_gpu_alone=trial.needs_gpu_alone,
            has_whole_gpu=trial.needs_gpu_alone or self._spec.resources.gpu == 1,
            checkpoint_file=folder.checkpoint_file(trial.number),
            model_file=folder.model_file(trial.number) if job.needs_model_file else None,
            objective_json=json.dumps(asdict(goal)) if job.needs_chosen_weights(self._spec) else None,
            function=self._function,
            required_metrics=[] if self._spec.train.with_val else goal.needed_metrics,
            in_fresh_process=self._function is not None
            and function_loading.needs_process_per_trial(document["method"]),
            output_file=folder.output_file(trial.number),
            mlflow_folder=folder.trial_mlflow_folder(trial.number),
            fold=trial.fold,
            driver_folder=self._working_folder,
            sends_fold_predictions=trial.fold is not None and trial.stage == "confirm" and self._function is None,
            saves_log_probabilities=trial.stage == "final" and self._spec.makes_ensemble,
        )

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Free the trial's slot; its result goes to the scheduler."""
        given = self._under_way.pop(trial_id, None)
        self._ended = self._ended if error else given

    def save(self, checkpoint_path: str) -> None:
        """Do nothing: the ledger is the memory, Tune's snapshots are never read."""

    def restore(self, checkpoint_path: str) -> None:
        """Do nothing, see `save`."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return Searcher, ()  # Tune pickles what it is given; see save


def _payload_of_tune_trial(trial: TuneTrial) -> JobPayload:
    job = trial.config["job"]
    assert isinstance(job, JobPayload)
    return job


class WorkerProcess(NamedTuple):
    """A process that runs trials, as it told with its first one: HOST:PID, Ray's id of its node, and its device."""

    host_and_pid: str
    node_id: str | None
    device: Mapping[str, str]


UNKNOWN_WORKER = WorkerProcess("", None, {})


class ReportingScheduler(FIFOScheduler):
    """Scheduler that passes results, ends and users' requests to the agenda, and ends trials that are stopped or hang.

    Only the newest run of a trial is heard: one that was given up as lost may still report.
    """

    def __init__(
        self,
        agenda: Agenda,
        folder: StudyFolder,
        nodes: TrialNodes | None = None,
        tell: Callable[[str], object] = str,
        share: ClusterShare | None = None,
        references: ReferenceFitter | None = None,
    ) -> None:
        super().__init__()
        self._references = references
        self._agenda, self._folder, self._tell, self._share = agenda, folder, tell, share
        self._nodes = nodes or TrialNodes(agenda.spec.resources, ray.nodes)
        self._watch = HangDetector(agenda.spec.resources.hang, agenda.record, agenda.spec.epochs)
        self._inbox = RequestInbox(agenda, folder.requests_folder)
        self._hung: set[str] = set()
        self._looked = 0.0
        self._workers: dict[str, WorkerProcess] = {}  # of each actor
        self._deaths = OomDetector()
        self._told_infinite = False
        self._actors: dict[str, str] = {}  # the actor of each run
        self._new: dict[str, tuple[float, TuneTrial]] = {}  # when Tune made its trials that are not known to have begun
        self._begun: set[str] = set()

    def on_trial_add(self, tune_controller: Any, trial: TuneTrial) -> None:
        """Note a trial that Tune has made."""
        self._new[trial.trial_id] = time.monotonic(), trial

    def wait_for_turn(self) -> None:
        """Do for `TURN_POLL_INTERVAL_S`, outside Tune's loop, what is to be done while other studies have all room."""
        self._poll_requests_and_references()
        if self._share is not None:
            self._share.note_running_trials(0)
        time.sleep(TURN_POLL_INTERVAL_S)

    def _poll_requests_and_references(self) -> None:
        self._inbox.obey_requests_if_due()
        if self._references is not None:
            self._references.pass_results_to_agenda()

    def choose_trial_to_run(self, tune_controller: Any) -> TuneTrial | None:
        """Return the trial that gets the next process that comes free, before new ones; None: none does.

        Tune asks in each turn of its loop.
        """
        self._poll_requests_and_references()
        for name, (_, trial) in list(self._new.items()):
            if trial.status == TuneTrial.RUNNING and name not in self._begun:
                self._note_trial_start(trial)
            if name in self._begun or trial.is_finished():
                del self._new[name]
        if (now := time.monotonic()) - self._looked >= HANG_CHECK_INTERVAL_S:
            self._end_hanging_trials(tune_controller.get_live_trials())
        pending = [(made, trial) for made, trial in self._new.values() if trial.status == TuneTrial.PENDING]
        if self._share is not None:
            running = sum(trial.status == TuneTrial.RUNNING for trial in tune_controller.get_live_trials())
            self._share.note_running_trials(running, waiting=bool(pending))
        waited = (trial for made, trial in pending if now - made > PROCESS_REUSE_DELAY_S)
        return min(waited, key=lambda trial: _payload_of_tune_trial(trial).trial, default=None)

    def _end_hanging_trials(self, live: Iterable[TuneTrial]) -> None:
        running = {trial.trial_id: trial for trial in live if trial.status == TuneTrial.RUNNING}
        for name in self._watch.find_hanging_trials(running):
            self._hung.add(name)
            ray.kill(actor_handle_of_trial(running[name]))  # Tune hears of it as of any process that dies
        self._deaths.update_memory_readings(self._actors[name] for name in running if name in self._actors)
        self._looked = time.monotonic()

    def on_trial_result(self, tune_controller: Any, trial: TuneTrial, result: Mapping[str, Any]) -> str:
        job, agenda = _payload_of_tune_trial(trial), self._agenda
        number, record = job.trial, agenda.record.trials[job.trial]
        process = self._actors[trial.trial_id] = actor_id_of_trial(trial)
        if "node" in result:
            node, machine, told = result["node"], result["machine"], json.loads(result.get("device", "{}"))
            self._workers[process] = WorkerProcess(node, machine, told)
            if memory := result.get("memory"):
                self._deaths.note_process(process, node, MemoryLimit(**json.loads(memory)), machine)
            self._begun.add(trial.trial_id)
        device = self._workers.get(process, UNKNOWN_WORKER).device
        metrics = json.loads(result.get("metrics", "{}"))
        if not self._told_infinite and (large := infinite_metrics_note(metrics)):
            self._told_infinite = True
            self._tell(f"warning: trial {number}: {large}")
        epoch, seconds, kind = result.get("epoch"), metrics.get("time/epoch"), device.get("name", "")
        self._watch.note_report(trial.trial_id, epoch, seconds, kind)
        if agenda.stopping or job.n_earlier_starts != record.attempt:
            return str(TrialScheduler.STOP)
        goes_on = True
        if "diverged" in result:
            told = agenda.record_test_failure if job.kind == "test" else agenda.record_trial_failure
            told(number, TrialFailure("DIVERGED", f"diverged: {result['diverged']}"))
        elif "untested" in result:
            agenda.record_test_failure(number, TrialFailure("BUG", result["untested"]))
        elif job.kind == "test":
            agenda.record_test_metrics(number, metrics)
        elif "predicted" in result:
            self._note_trial_start(trial)
            agenda.record_fold_predictions(number, result["predicted"])
        elif "epoch" in result:
            self._note_trial_start(trial)
            goes_on = agenda.record_epoch(number, result["epoch"], metrics)
        elif record.state != "running":
            goes_on = agenda.record_trial_start(number, result["node"], result["behind"], result.get("note"), device)
        self._remove_trial_files(number)
        return str(TrialScheduler.CONTINUE if goes_on else TrialScheduler.STOP)

    def _note_trial_start(self, trial: TuneTrial) -> None:
        """Note the start of a trial that begins at epoch 1 in a known process, which does not report its start."""
        process = self._actors[trial.trial_id] = actor_id_of_trial(trial)
        job, worker = _payload_of_tune_trial(trial), self._workers.get(process)
        current = job.n_earlier_starts == self._agenda.record.trials[job.trial].attempt and not self._agenda.stopping
        is_first = job.kind == "train" and not job.n_reported_epochs and trial.trial_id not in self._begun
        if worker and current and is_first:
            self._begun.add(trial.trial_id)
            self._agenda.record_trial_start(job.trial, worker.host_and_pid, device=worker.device)

    def on_trial_complete(self, tune_controller: Any, trial: TuneTrial, result: Mapping[str, Any]) -> None:
        """Fail a trial whose function returned before its last epoch; the agenda knows of every other end already."""
        job, agenda = _payload_of_tune_trial(trial), self._agenda
        record = agenda.record.trials[job.trial]
        current = job.n_earlier_starts == record.attempt and not agenda.stopping
        if job.kind == "train" and record.state == "running" and current:
            agenda.record_trial_failure(job.trial, TrialFailure("BUG", "ended before its last epoch"))

    def on_trial_error(self, tune_controller: Any, trial: TuneTrial) -> None:
        """Pass on that the trial function raised, or that its process died.

        Raises:
            StudyCannotContinueError: the disk is full or fails, or no node is left.
        """
        job = _payload_of_tune_trial(trial)
        if job.kind == "release":
            return
        number, error = job.trial, error_of_tune_trial(trial)
        broken = getattr(error, "cause", None) or error
        if isinstance(broken, NodeUnusableError):
            self._exclude_node(broken.machine, broken.host, broken.reason)
        if problem := find_disk_error(error):
            raise StudyCannotContinueError(problem, self._folder.path) from error
        if self._agenda.stopping or job.n_earlier_starts != self._agenda.record.trials[number].attempt:
            return
        running = sum(trial.state == "running" for trial in self._agenda.record.trials.values())
        cause = self._failure_of_error(trial, error).with_memory_remedy(self._agenda.spec, others=running > 1)
        self._write_trial_error(number, error)
        if job.kind == "train":
            self._agenda.record_trial_failure(number, cause)
        else:
            self._agenda.record_test_failure(number, cause)
        self._remove_trial_files(number)
        self._nodes.check_node_left()

    def _write_trial_error(self, number: int, error: BaseException) -> None:
        try:
            broken = getattr(error, "cause", None)
            self._folder.write_traceback(number, broken.text if isinstance(broken, TrialFailedError) else str(error))
        except OSError as problem:
            raise StudyCannotContinueError(problem, self._folder.path) from problem

    def _exclude_node(self, machine: str, host: str, reason: str) -> None:
        """Place no more trials on a node, and tell the user once."""
        if self._nodes.exclude_node(machine, host, reason):
            self._agenda.append_event(NodeExcluded(host, reason))
            self._tell(f"{host} is not used: {reason}")

    def _failure_of_error(self, trial: TuneTrial, error: BaseException) -> TrialFailure:
        """Return what ended a trial's run; a process that vanished may have lost its node, or been ended for memory."""
        found = HUNG_FAILURE if trial.trial_id in self._hung else failure_of_error(error)
        if found not in (HUNG_FAILURE, PROCESS_DIED_FAILURE):
            return found
        process, nodes = self._actors.pop(trial.trial_id, ""), ray.nodes()
        if is_node_unreachable(self._workers.get(process, UNKNOWN_WORKER).node_id, nodes):
            return NODE_LOST_FAILURE
        hosts = {str(node.get("NodeManagerHostname")) for node in nodes}
        why = self._deaths.find_oom_cause(process, hosts) if found == PROCESS_DIED_FAILURE else None
        return TrialFailure("OOM", why) if why else found

    def _remove_trial_files(self, number: int) -> None:
        """Remove the state of a trial that has ended."""
        if self._agenda.record.trials[number].state in ENDED_STATES:
            self._folder.checkpoint_file(number).unlink(missing_ok=True)

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
        return NoopStopper, ()  # see `study.sweep.tune_adapters.JobSearcher.save`
