"""One session of a study that is there: its driver, MLflow beside it, then the outputs and who is told of its end."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import replace
from typing import Any, Protocol

from study import data, ranking
from study.cluster.log_share import shown
from study.commands.run_end import RunEnd, lead_parts, outputs, registered
from study.data import Dataset
from study.errors import DISK_FULL, Interrupted, Stopped, UserError, of_disk
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger
from study.home.record import StudyRecord, TrialRecord, as_searched
from study.ranking.summary import summary
from study.spec import StudySpec
from study.sweep.phases import LOADING, REPORTING
from study.sweep.ray_session import ray_session
from study.sweep.shared_ray import SharedRay
from study.text import tell
from study.tracking import Tracker
from study.tracking.pages import study_page
from study.tracking.tracker import HEAD_START

# What a search learns from another study before its own first trial (`search.from`).
#
# Each complete configuration of the other study is taken over with its values of this study's searched keys, whether
# the other study searched them or not. A configuration is left out and counted if it has another method, lacks a key,
# or has a value that this search could not give. What was learned is written to the ledger, so that later changes of
# the other study do not matter.


def lessons(home: Home, spec: StudySpec) -> dict[str, Any]:
    """Return what a study learns, as fields of the event `learned`: source, source_id, trials, left_out.

    Raises:
        UserError: there is no such study, it is this one, or none of its configurations fits.
    """
    source = str(spec.search.from_)
    if source == spec.name:
        raise UserError(f"search.from: {source}: a study cannot learn from itself. More trials: study resume {source}")
    folder = home.find(source)
    other, record = folder.spec(), StudyRecord.load(folder.ledger_file)
    if missing := set(spec.objective.needed) - set(_metrics(record)):
        raise UserError(f"search.from: {source} has no {', '.join(sorted(missing))}, this study searches by it")
    trials, left_out = [], 0
    for candidate in sorted(ranking.ranked(as_searched(record), other), key=lambda candidate: candidate.trial.number):
        params = _params(spec, other, candidate.trial)
        values = {name: spread.mean for name, spread in ranking.spreads(other.objective, candidate.replicates).items()}
        if params is None or spec.objective.score(values) is None:
            left_out += 1
        else:
            trials.append({"params": params, "values": {name: values[name] for name in spec.objective.needed}})
    if not trials:
        raise UserError(
            f"search.from: none of {left_out} complete configurations of {source} has values for "
            f"{', '.join(spec.search.space)} within this search's space"
        )
    return {"source": source, "source_id": record.id, "trials": trials, "left_out": left_out}


def learn(home: Home, spec: StudySpec, ledger: Ledger, record: StudyRecord) -> None:
    """Write what a study learns into its ledger before its first trial, if `search.from` is set and it is not there."""
    if spec.search.from_ is not None and record.lessons is None and not record.trials:
        record.apply(ledger.append("learned", **lessons(home, spec)))


def _metrics(record: StudyRecord) -> set[str]:
    return {name for trial in record.trials.values() if trial.state == "complete" for name in trial.reports[-1]}


def _params(spec: StudySpec, other: StudySpec, trial: TrialRecord) -> Mapping[str, Any] | None:
    """The values that a trial of another study has for this study's searched keys; None if it is not in its space."""
    document = other.trial_document(trial.params)
    values = {
        f"{section}.{key}": value for section, keys in document.items() for key, value in keys.items()
    } | trial.params
    params: dict[str, Any] = {}
    for key in spec.space.domains:
        if spec.space.applies(key, params):
            if key not in values:
                return None
            params[key] = values[key]
    own, theirs = spec.trial_document(params)["method"], document["method"]
    same = all(own.get(key) == theirs.get(key) for key in ("name", "function"))
    return params if same and spec.space.contains(params) else None


# Tells the user's own command or address that a study ended. Whatever goes wrong there, the study never waits long.

PATIENCE = 30.0
"""Seconds that a command, or a server, gets in all."""


def notify(home: Home, folder: StudyFolder, spec: StudySpec, record: StudyRecord) -> str | None:
    """Tell whom the study file names.

    Returns:
        What went wrong, in one line without the address; None: nothing did, or nobody is to be told.
    """
    if spec.notify is None:
        return None
    try:
        document = json.dumps(message(home, folder, spec, record)).encode()
    except Exception as error:  # whatever a file of the study, or one beside it, can be
        return f"notify: {type(error).__name__}"
    why = _run(spec.notify.command, document)
    return f"notify.command: {why}" if why else None


def message(home: Home, folder: StudyFolder, spec: StudySpec, record: StudyRecord) -> dict[str, Any]:
    """Return what is sent: the study, its state, the metric with the best value and the baseline's, counts of trials by
    state, the run's page where MLflow is a server, and the same as one sentence under `text`."""
    with ranking.ranked_once(record):
        document = summary(spec, record)
    best, baseline = document.get("best") or document.get("final"), document.get("baseline")
    told = {
        "study": spec.name,
        "state": record.state,
        "metric": spec.metric,
        "value": _value(spec, best),
        "baseline": _value(spec, baseline),
        "trial": best.get("trial") if best else None,
        "trials": document["trials"],
        "address": study_page(home, folder),
    }
    return told | {"text": _sentence(told)}


def _value(spec: StudySpec, side: Mapping[str, Any] | None) -> float | None:
    value = side["metrics"].get(spec.metric) if side else None
    return value["mean"] if value else None


def _sentence(told: Mapping[str, Any]) -> str:
    values = [(name, told[key]) for name, key in (("best", "value"), ("baseline", "baseline")) if told[key] is not None]
    numbers = ", ".join(f"{name} {told['metric']} {value:.4f}" for name, value in values)
    return f"study {told['study']}: {told['state']}{f'; {numbers}' if numbers else ''}"


def _run(command: Sequence[str], document: bytes) -> str | None:
    """Run a command with the document on its standard input, in a group of its own, so that it can be ended whole."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return f"{command[0]} cannot be started: {getattr(error, 'strerror', None) or error}"
    try:
        process.communicate(document, PATIENCE)
    except subprocess.TimeoutExpired:
        return f"{command[0]} had not ended after {PATIENCE:g} s and was killed"
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return f"{command[0]} ended with status {process.returncode}" if process.returncode else None


class View(Protocol):
    """Shows a study while it runs; reads the record from a thread of its own. Gives what shows a line at once."""

    def __call__(self, spec: StudySpec, record: StudyRecord) -> AbstractContextManager[Callable[[str], None]]: ...


def loaded(spec: StudySpec, view: View) -> dict[str, Dataset]:
    """A study's data sets; a UserError before anything starts if the weights that trials begin from are not there, or
    are not those of the configuration's study."""
    from study.sweep.driver import initial_weights

    initial_weights(spec, StudyRecord())
    with view(spec, StudyRecord()) as tell:
        tell(LOADING)
        return data.load_all(spec.data_sections)


GO_ON = "stopped. Nothing is lost; then go on with it: study resume {}"


@contextmanager
def interrupted_as(message: str) -> Iterator[None]:
    """A KeyboardInterrupt of the block as one message."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(message) from None


@contextmanager
def resumable(folder: StudyFolder) -> Iterator[None]:
    """Tells of a disk that is full or fails how the study goes on.

    Raises:
        Stopped: it is.
    """
    try:
        yield
    except Exception as error:
        if (problem := of_disk(error)) is None:
            raise
        place = problem.filename or folder.path  # what Arrow writes fails without a file's name
        once = "there is room" if problem.errno in DISK_FULL else "it can be written again"
        how = f"Nothing is lost; once {once}: study resume {folder.name}"
        raise Stopped(f"{place}: {problem.strerror}. {how}") from error


def run_session(
    home: Home,
    folder: StudyFolder,
    datasets: Mapping[str, Dataset],
    view: View,
    address: str | None,
    shared: SharedRay | None = None,
    placement: Mapping[str, Any] | None = None,
) -> RunEnd:
    """Run a study that is there, and tell whom it names of its end.

    Args:
        placement: see `study.spec.study_spec.StudySpec.placed`; None: that of its last driver.

    Raises:
        Stopped, Interrupted, UserError: see `study.commands.run.start`.
    """
    with interrupted_as(GO_ON.format(folder.name)):
        try:
            with shown(folder):
                end, by_hand = _drive(home, folder, datasets, view, address, shared, placement)
        except Stopped:
            record = StudyRecord.load(folder.ledger_file)
            if record.state != "running" and (problem := notify(home, folder, folder.spec(), record)):
                tell(f"not everybody was told of this: {problem}", sys.stderr)
            raise
        is_known = by_hand and end.record.state == "interrupted"
        return end if is_known else replace(end, unnotified=notify(home, folder, end.spec, end.record))


def _drive(
    home: Home,
    folder: StudyFolder,
    datasets: Mapping[str, Dataset],
    view: View,
    address: str | None,
    shared: SharedRay | None,
    placement: Mapping[str, Any] | None,
) -> tuple[RunEnd, bool]:
    """Drive a study and bring the rest into MLflow. Gives its end, and whether Ctrl-C stopped it."""
    from study.sweep.driver import drive

    spec = folder.checked_spec()
    with resumable(folder), closing(Ledger(folder.ledger_file)) as ledger:
        record = StudyRecord.told(folder.ledger_file)
        placed = spec.placed(record.placement if placement is None else placement)
        learn(home, spec, ledger, record)
        tracker = Tracker(home, folder, spec)
        tracker.start(HEAD_START)
        by_hand = True
        try:
            files = {}
            with view(placed, record) as tell:
                with suppress(KeyboardInterrupt):
                    by_hand = drive(folder, placed, datasets, ledger, record, address, tell, shared or ray_session)
                if record.state == "complete":
                    tell(REPORTING)
                    files = outputs(folder, spec, record, datasets, report=shared is None)
        finally:
            if ledger.is_taken_over:
                tracker.abandon()
            untracked = tracker.finish()
        if files:
            untracked = (
                untracked or tracker.attach(files, lead_parts(spec, record)) or registered(home, folder, spec, record)
            )
    return RunEnd(folder, spec, record, untracked, tracker.notes), by_hand
