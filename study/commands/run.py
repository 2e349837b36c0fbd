"""A study from its file to its outputs: the sweep, MLflow beside it, then the report and the exported file."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import replace
from typing import Protocol

from study import data
from study.address import check_cluster
from study.commands import ablation, extension, final_training, functions, warm_start
from study.commands.ablation import Request
from study.commands.notify import notify
from study.commands.outputs import lead_parts, outputs, registered
from study.commands.run_end import RunEnd
from study.data import Dataset
from study.errors import DISK_FULL, Interrupted, Stopped, UserError
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.spec import StudySpec
from study.sweep.ray_session import check_machine, ray_session
from study.sweep.shared_ray import SharedRay
from study.sweep.steps import REPORTING
from study.tracking import Tracker
from study.tracking.connection import check_server
from study.tracking.tracker import HEAD_START
from study.upstream.ray_internals import is_job


class View(Protocol):
    """Shows a study while it runs; reads the record from a thread of its own. Gives what shows a line at once."""

    def __call__(self, spec: StudySpec, record: StudyRecord) -> AbstractContextManager[Callable[[str], None]]: ...


def start(
    home: Home,
    spec: StudySpec,
    view: View,
    address: str | None = None,
    shared: SharedRay | None = None,
    function: bytes | None = None,
) -> RunEnd:
    """Run a new study.

    Args:
        function: the pickled training function of the user's own that the study names, where this process made it.
        address: of the Ray cluster that its trials run on, see `study.address`; None: this machine.
        shared: the Ray of several studies, of which this is one; its report is left to `study report` then. None: it
            has a Ray of its own, and its report is written.

    Raises:
        UserError: its name is taken, a trial does not fit the machine or its data cannot be loaded, and nothing is
            left behind; or the cluster cannot be reached, and `study resume` tries again.
        Stopped: see `study.sweep.driver.drive`; `study resume` tries again.
        Interrupted: a signal came before the driver had the study.
    """
    with _interrupted_as("stopped before the study began; nothing is left behind"):
        home.check_new(spec.name)
        _check_place(home, spec, address)
        if spec.search.from_ is not None:
            warm_start.lessons(home, spec)
        datasets = _loaded(spec)
        function = functions.brought(home, spec, function)
    return _run(home, home.create(spec, function), datasets, view, address, shared)


def start_or_resume(
    home: Home,
    spec: StudySpec,
    view: View,
    address: str | None = None,
    shared: SharedRay | None = None,
    function: bytes | None = None,
) -> RunEnd:
    """Run a new study, or continue an existing one unless it is complete: for a job that its queue may start again.

    Args:
        address, shared, function: see `start`.

    Raises:
        UserError: see `start`; or another study has its name.
    """
    existing = next((folder for folder in home.studies() if folder.name == spec.name), None)
    if existing is None:
        return start(home, spec, view, address, shared, function)
    if existing.checked_spec().hash != spec.hash:
        raise UserError(
            f"{spec.name}: another study of that name is in {home.path}. Run this one under another: --name"
        )
    record = StudyRecord.load(existing.ledger_file)
    if record.state == "complete" and not Tracker(home, existing, spec).is_behind:
        return RunEnd(existing, spec, record, None)
    return resume(home, spec.name, view, address=address, shared=shared)


def _check_place(home: Home, spec: StudySpec, address: str | None) -> None:
    """Refuse a trial that could never be placed, a cluster or an MLflow that is not to be spoken to, and a home that
    would end with a job: it runs in a folder of Ray's."""
    check_server(home.tracking_uri)
    if address is None:
        check_machine(spec.resources)
        return
    check_cluster(address)
    if is_job() and not os.environ.get("STUDY_HOME"):
        raise UserError(
            "STUDY_HOME: is not set on this cluster. It has to name a folder that all nodes share: set it in the "
            "environment of the head, or export it where you submit and add --env STUDY_HOME to study submit"
        )


def resume(
    home: Home,
    name: str,
    view: View,
    trials: str | None = None,
    address: str | None = None,
    shared: SharedRay | None = None,
) -> RunEnd:
    """Go on with a study that was stopped or whose driver died; of a complete one, bring MLflow up to date.

    Args:
        trials: how many more configurations the search tries, as `+50`, also if it was complete.
        address: as for `start`; it need not be where the study ran before.
        shared: as for `start`.

    Raises:
        UserError: there is no such study, it is complete and all in MLflow, or it runs; or it cannot be extended.
        Stopped, Interrupted: as for `start`.
    """
    with _interrupted_as(_GO_ON.format(name)):
        return _resume(home, name, view, trials, address, shared)


def _resume(
    home: Home, name: str, view: View, trials: str | None, address: str | None, shared: SharedRay | None
) -> RunEnd:
    folder = home.find(name)
    spec, record = folder.checked_spec(), StudyRecord.load(folder.ledger_file)
    if trials is not None:
        _check_place(home, spec, address)
        with _resumable(folder):
            record = extension.more_trials(folder, spec, trials)
    if record.state != "complete" or trials is not None:
        _check_place(home, spec, address)
        return _run(home, folder, _loaded(spec), view, address, shared)
    tracker = Tracker(home, folder, spec)
    with _resumable(folder), closing(Ledger(folder.ledger_file)):
        if not tracker.is_behind and not tracker.is_lost():
            raise UserError(f"{name}: complete, there is nothing to go on with. Its results: study report {name}")
        tracker.start()
        untracked = (
            tracker.finish()
            or tracker.attach(outputs(folder, spec, record), lead_parts(spec, record))
            or registered(home, folder, spec, record)
        )
    return RunEnd(folder, spec, record, untracked, tracker.notes, ran=False)


def confirm(
    home: Home,
    name: str,
    view: View,
    top: int | None = None,
    seeds: int | None = None,
    rules: bool = False,
    address: str | None = None,
) -> RunEnd:
    """Run the best configurations of a study whose search is over again, on fresh seeds, and the baseline with them.

    Args:
        top, seeds, rules: see `study.commands.extension.more_seeds`.

    Raises:
        UserError: see `resume`; or nothing would be run, see `study.commands.extension.more_seeds`.
    """
    folder = home.find(name)
    spec = folder.checked_spec()
    _check_place(home, spec, address)
    datasets = _loaded(spec)
    with _resumable(folder):
        extension.more_seeds(folder, spec, top, seeds, rules)
    return _run(home, folder, datasets, view, address)


def ablate(home: Home, name: str, view: View, request: Request, address: str | None = None) -> RunEnd | None:
    """Run the steps from a study's baseline to its best configuration, each on the same fresh seeds.

    Returns:
        None: all that is asked for has run.

    Raises:
        UserError: see `resume`; or there is nothing to ablate, see `study.commands.ablation.planned`.
    """
    folder = home.find(name)
    spec = folder.checked_spec()
    _check_place(home, spec, address)
    datasets = _loaded(spec)
    with _resumable(folder):
        is_measured = not ablation.ask(folder, spec, request)
    return None if is_measured else _run(home, folder, datasets, view, address)


def train(home: Home, spec: StudySpec, view: View, address: str | None = None) -> RunEnd:
    """Train a configuration on several seeds; seeds that were trained before are kept.

    Args:
        spec: a final training, see `study.commands.final_training.final_study`.

    Raises:
        UserError: see `start`; or the name belongs to another configuration.
    """
    _check_place(home, spec, address)
    datasets = _loaded(spec)
    return _run(home, final_training.extend(home, spec, functions.brought(home, spec)), datasets, view, address)


def _loaded(spec: StudySpec) -> dict[str, Dataset]:
    """A study's data sets; a UserError before anything starts if the weights that trials begin from are not there."""
    _ = spec.weights
    return data.load_all(spec.data_sections)


_GO_ON = "stopped. Nothing is lost; then go on with it: study resume {}"


@contextmanager
def _interrupted_as(message: str) -> Iterator[None]:
    """A KeyboardInterrupt of the block as one message."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(message) from None


@contextmanager
def _resumable(folder: StudyFolder) -> Iterator[None]:
    """Tells of a full disk how the study goes on.

    Raises:
        Stopped: there is no room.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        place = error.filename or folder.path  # what Arrow writes fails without a file's name
        how = f"Nothing is lost; once there is room: study resume {folder.name}"
        raise Stopped(f"{place}: {error.strerror}. {how}") from error


def _run(
    home: Home,
    folder: StudyFolder,
    datasets: Mapping[str, Dataset],
    view: View,
    address: str | None,
    shared: SharedRay | None = None,
) -> RunEnd:
    """Run a study that is there, and tell whom it names of its end."""
    with _interrupted_as(_GO_ON.format(folder.name)):
        try:
            end, by_hand = _drive(home, folder, datasets, view, address, shared)
        except Stopped:
            record = StudyRecord.load(folder.ledger_file)
            if record.state != "running" and (problem := notify(home, folder, folder.spec(), record)):
                print(f"not everybody was told of this: {problem}", file=sys.stderr)
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
) -> tuple[RunEnd, bool]:
    """Drive a study and bring the rest into MLflow. Gives its end, and whether Ctrl-C stopped it."""
    from study.sweep.driver import drive

    spec = folder.checked_spec()
    with _resumable(folder), closing(Ledger(folder.ledger_file)) as ledger:
        record = StudyRecord.told(folder.ledger_file)
        warm_start.learn(home, spec, ledger, record)
        tracker = Tracker(home, folder, spec)
        tracker.start(HEAD_START)
        by_hand = True
        try:
            files = {}
            with view(spec, record) as tell:
                with suppress(KeyboardInterrupt):
                    by_hand = drive(folder, spec, datasets, ledger, record, address, tell, shared or ray_session)
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
