"""Requests to a running study: try a configuration next, end a trial, end the search, stop."""

import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from study.commands import extend_study
from study.commands.progress import count_untried_enqueued
from study.errors import UserError
from study.files import as_user_error_if_unwritable
from study.home import lease, ledger
from study.home.driver_requests import DriverRequest, pending_requests, submit_request
from study.home.events import ENDED_STATES
from study.home.folder import Home, StudyFolder
from study.home.lease import LeaseHolder, ProcessGoneError, ProcessIdentity
from study.home.record import StudyRecord
from study.ranking import Results
from study.spec.configuration import are_same_configuration, parse_configuration
from study.sweep.search_stage import reached_search_limit
from study.text import study_command

DRIVER_ANSWER_TIMEOUT_S = 15.0
"""Seconds to wait for an answer: a driver looks every second, once it has loaded its data and started Ray."""


@dataclass(frozen=True)
class RequestAnswer:
    """Request to a driver, and whether it was met.

    Attributes:
        is_met: whether the driver has met it; if not, it waits.
        message: what was asked for and how it stands, as a sentence.
    """

    study_name: str
    request: DriverRequest
    is_met: bool
    message: str

    def to_document(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        what: dict[str, Any] = {"kind": self.request.kind}
        what |= {"params": dict(self.request.params)} if self.request.kind == "enqueue" else {}
        what |= {"trial": self.request.trial} if self.request.kind == "stop" else {}
        return {"name": self.study_name, "request": self.request.id, **what, "done": self.is_met, "words": self.message}


def request_configuration(folder: StudyFolder, assignments: Iterable[str], like: int | None = None) -> RequestAnswer:
    """Have the search try a configuration next.

    A study that does not run tries it once it is resumed; a search that is over is extended by this configuration.

    Args:
        assignments: `KEY=VALUE`.
        like: the trial whose values the other keys have.

    Raises:
        UserError: the search cannot have this configuration; or the search is over, while the study still runs.
    """
    results = Results.load(folder)
    spec, record = results.spec, results.record
    is_open = ledger.is_driver_running(folder.ledger_file)
    if spec.final_seeds is not None or not spec.search.space:
        raise UserError(f"{spec.name}: has no search that could try another configuration")
    if is_open:
        _check_search_not_over(results)
    start = None if like is None else record.find_trial(like, f"--like {like}", spec.name).params
    params = parse_configuration(spec.space, assignments, start)
    for trial in record.trials_of_stages("baseline", "search"):
        if are_same_configuration(trial.params, params):
            raise UserError(f"{spec.name}: trial {trial.number} has this configuration, and is {trial.state}")
    if not is_open:
        pending = [request for _, request in pending_requests(folder.requests_folder) if request is not None]
        wanted = [request for request in pending if request.kind == "enqueue"]
        if any(are_same_configuration(request.params, params) for request in wanted):
            raise UserError(f"{spec.name}: it is enqueued already")
        to_try = count_untried_enqueued(record) + len(wanted)
        is_over = record.search_is_over(spec.n_configurations, to_try) or reached_search_limit(spec, record)
        if record.state == "complete" or is_over:
            extend_study.add_search_trials(folder, spec, "+1")
    return _send_and_wait(folder, DriverRequest("enqueue", params))


def _check_search_not_over(results: Results) -> None:
    """Refuse a study whose search tries nothing further, though some of its trials may still run."""
    if results.record.state == "complete" or results.record.search_is_over(results.spec.n_configurations):
        searched = results.record.trials_of_stages("baseline", "search", "replicate")
        what = "its search is over"
        if running := sum(trial.state not in ENDED_STATES for trial in searched):
            what = f"its search tries nothing further, {running} of its trials have not ended"
        further = study_command("resume", results.spec.name, "--trials", "+10")
        raise UserError(f"{results.spec.name}: {what}. To search on, once it is complete: {further}")


def request_trials_end(folder: StudyFolder, numbers: Iterable[int]) -> list[RequestAnswer]:
    """End trials of the search, each at its next report.

    Raises:
        UserError: the study does not run, or a trial does not exist, has ended or is not of the search; then nothing
            was asked for.
    """
    results = _results_of_running_study(folder)
    spec, record = results.spec, results.record
    wanted = list(dict.fromkeys(numbers))
    for number in wanted:
        trial = record.find_trial(number, f"--trial {number}", spec.name)
        if trial.state in ENDED_STATES:
            raise UserError(f"--trial {number}: has ended, it is {trial.state}")
        if trial.stage not in ("search", "replicate"):
            raise UserError(f"--trial {number}: is of stage {trial.stage}; only trials of the search can be stopped")
    return [_send_and_wait(folder, DriverRequest("stop", trial=number)) for number in wanted]


def request_search_end(folder: StudyFolder) -> RequestAnswer:
    """End the search: no further configuration is tried. Trials that run go on, and then the stages after the search.

    Raises:
        UserError: the study does not run, its search is over, or it has none.
    """
    results = _results_of_running_study(folder)
    if results.spec.final_seeds is not None:
        raise UserError(f"{results.spec.name}: a final training, it has no search")
    _check_search_not_over(results)
    return _send_and_wait(folder, DriverRequest("end"))


def _results_of_running_study(folder: StudyFolder) -> Results:
    """Return what is known of a study; raise a UserError where no driver runs it."""
    if not ledger.is_driver_running(folder.ledger_file):
        raise UserError(f"{folder.name}: is not running. Its state: {study_command('status', folder.name)}")
    return Results.load(folder)


def _send_and_wait(folder: StudyFolder, request: DriverRequest) -> RequestAnswer:
    """Ask the driver, and wait for its answer.

    Raises:
        UserError: the driver refuses and says why, or the folder cannot be written.
        OSError: the disk is full.
    """
    with as_user_error_if_unwritable(folder.requests_folder):
        file = submit_request(folder.requests_folder, request)
    deadline = time.monotonic() + DRIVER_ANSWER_TIMEOUT_S
    while file.exists() and ledger.is_driver_running(folder.ledger_file) and time.monotonic() < deadline:
        time.sleep(0.1)
    record = StudyRecord.load(folder.ledger_file)
    if why := record.request_refusals.get(request.id):
        raise UserError(f"{folder.name}: {why}")
    done = request.id in record.request_refusals
    return RequestAnswer(folder.name, request, done, _answer_message(folder, request, done))


def _answer_message(folder: StudyFolder, request: DriverRequest, done: bool) -> str:
    what = {
        "enqueue": "the search tries this configuration next",
        "stop": f"trial {request.trial} ends at its next report",
        "end": "no further configuration is tried; what runs of the search goes on, then the study does",
    }[request.kind]
    if done:
        return f"{folder.name}: {what}"
    if ledger.is_driver_running(folder.ledger_file):
        return f"{folder.name}: asked for, its driver has not answered yet. Then {what}"
    return f"{folder.name}: is not running. Once it is resumed, {what}: {study_command('resume', folder.name)}"


STOP_TIMEOUT_S = 180.0
"""Seconds to wait for a driver to stop; MLflow may need two minutes of them."""


def stop_driver(home: Home, name: str) -> str:
    """Stop a study's driver on this machine cleanly, as Ctrl-C does, and wait for it.

    Returns:
        The process, in words.

    Raises:
        UserError: there is no such study, it does not run on this machine, or no process here is the driver that its
            lease describes: then nothing was stopped. Or it has not stopped in time.
    """
    folder = home.find_study(name)
    if not ledger.is_driver_running(folder.ledger_file):
        raise UserError(f"{name}: is not running. Its state: study status {name}")
    file = ledger.lease_path(folder.ledger_file)
    holder = _stoppable_lease_holder(name, file)
    try:
        holder.process.send_signal(signal.SIGTERM)
    except ProcessGoneError as problem:
        raise UserError(
            f"{name}: was not stopped: {file} says that {holder} runs it, and {problem}. Its state: study status {name}"
        ) from None
    except PermissionError:
        raise UserError(f"{name}: was not stopped: {holder} is another user's") from None
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while ledger.is_driver_running(folder.ledger_file) and lease.read_holder(file) in (holder, None):
        if time.monotonic() > deadline:
            raise UserError(f"{name}: {holder} has not stopped within {STOP_TIMEOUT_S:.0f} s")
        time.sleep(0.2)
    return str(holder)


def _stoppable_lease_holder(name: str, file: Path) -> LeaseHolder:
    """Return the process that holds a study's lease; raise a UserError if it cannot be stopped from here."""
    holder = lease.read_holder(file)
    if holder is None:
        raise UserError(
            f"{name}: was not stopped: {file}, which says who runs it, is missing or damaged. Its driver writes it "
            f"anew within {lease.RENEWAL_INTERVAL_S:.0f} s: try again"
        )
    if holder.machine != lease.machine_id():
        job = f"As a job of a cluster: study stop {name} --address URL"
        raise UserError(f"{name}: {holder} runs it, not on this machine. {job}")
    if holder.namespace != ProcessIdentity.current().namespace:
        raise UserError(
            f"{name}: {holder} runs it in another container of this machine, whose processes have numbers of their "
            f"own. Stop it there: study stop {name}"
        )
    return holder
