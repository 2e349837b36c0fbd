"""One sitting of a study that is there: its driver, MLflow beside it, then the outputs and who is told of its end."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import replace
from typing import Any, Protocol

from study import data
from study.cluster.window import shown
from study.commands import warm_start
from study.commands.notify import notify
from study.commands.outputs import lead_parts, outputs, registered
from study.commands.run_end import RunEnd
from study.data import Dataset
from study.errors import DISK_FULL, Interrupted, Stopped, of_disk
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.spec import StudySpec
from study.sweep.ray_session import ray_session
from study.sweep.shared_ray import SharedRay
from study.sweep.steps import LOADING, REPORTING
from study.tracking import Tracker
from study.tracking.tracker import HEAD_START


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


def run_sitting(
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
    placement: Mapping[str, Any] | None,
) -> tuple[RunEnd, bool]:
    """Drive a study and bring the rest into MLflow. Gives its end, and whether Ctrl-C stopped it."""
    from study.sweep.driver import drive

    spec = folder.checked_spec()
    with resumable(folder), closing(Ledger(folder.ledger_file)) as ledger:
        record = StudyRecord.told(folder.ledger_file)
        placed = spec.placed(record.placement if placement is None else placement)
        warm_start.learn(home, spec, ledger, record)
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
