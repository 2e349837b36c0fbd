"""A study from its file to its outputs: what has to be there before it begins or goes on, then one session of it."""

import os
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from study.address import check_cluster
from study.cluster.log_share import shown
from study.commands import ablation, check_metrics, extend_search, extend_trials, final_training, memory, session
from study.commands.ablation import Request
from study.commands.delete import delete
from study.commands.fetch import check_not_there
from study.commands.placement import placement
from study.commands.run_end import RunEnd, lead_parts, outputs, registered
from study.commands.session import GO_ON, View, interrupted_as, loaded, resumable, run_session
from study.errors import UserError
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.spec import StudySpec
from study.sweep.ray_session import NotJoined, check_machine, check_taken
from study.sweep.shared_ray import SharedRay
from study.tracking import Tracker
from study.tracking.connection import check_server
from study.training.own_function import FILE, PICKLE, digest, load, place
from study.upstream.ray_internals import is_job

if TYPE_CHECKING:
    from study.training import FunctionTrial

# Training functions of the user's own: found, checked and brought along, before anything starts.


def brought(home: Home, spec: StudySpec, given: bytes | None = None) -> bytes | None:
    """The pickled function that a new study's folder gets, None where its trials need none; any other is checked.

    Args:
        given: the function as this process has pickled it.

    Raises:
        UserError: it is in no study of this home, or cannot be used.
    """
    if spec.function is None:
        return None
    if given is not None and spec.function == f"{PICKLE}{digest(given)}":
        return given
    folder = _folder(home, spec.function)
    load(spec.function, place(spec.function, folder))
    return (folder / FILE).read_bytes() if spec.function_is_pickled else None


def function_trial(home: Home, spec: StudySpec, device: str) -> "FunctionTrial":
    """One trial of the file's own configuration, in this process.

    Raises:
        UserError: as `brought`.
    """
    from study.training import FunctionTrial

    assert spec.function is not None
    where = place(spec.function, _folder(home, spec.function))
    return FunctionTrial(spec.trial_config({}), where, spec.objective.needed, device)


def _folder(home: Home, function: str) -> Path:
    """The folder of the first study of a home that has a pickled function."""
    if not function.startswith(PICKLE):
        return home.path
    for folder in home.studies():
        file = folder.path / FILE
        if file.is_file() and f"{PICKLE}{digest(file.read_bytes())}" == function:
            return folder.path
    raise UserError(
        f"method.function: {function!r}: no study in {home.path} has this function, which was defined in a notebook or "
        "a script. Put it into a module, and name it as MODULE:NAME"
    )


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
        UserError: its name is taken, a trial does not fit the machine or its data cannot be loaded or have no
            metric that it looks at, or the cluster cannot be reached; nothing is left behind.
        Stopped: see `study.sweep.driver.drive`; `study resume` tries again.
        Interrupted: a signal came before the driver had the study.
    """
    with interrupted_as("stopped before the study began; nothing is left behind"):
        home.check_new(spec.name)
        _check_place(home, spec, address)
        if spec.search.from_ is not None:
            session.lessons(home, spec)
        check_metrics.check(spec)
        datasets = loaded(spec, view)
        check_metrics.check_loaded(spec, datasets)
        function = brought(home, spec, function)
    folder = home.create(spec, function)
    try:
        return run_session(home, folder, datasets, view, address, shared)
    except NotJoined:  # the same command works once the cluster answers
        with suppress(UserError):
            delete(home, spec.name)
        raise


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
    if extend_search.is_spent(record, spec) or (
        record.state == "complete" and not Tracker(home, existing, spec).is_behind
    ):
        with shown(existing):  # whoever submitted it again reads it as any other
            return RunEnd(existing, spec, record, None, ran=False)
    return resume(home, spec.name, view, address=address, shared=shared)


def _check_place(home: Home, spec: StudySpec, address: str | None) -> None:
    """Refuse a trial that could never be placed, a cluster or an MLflow that is not to be spoken to, and a home that
    would end with a job: it runs in a folder of Ray's."""
    check_server(home.tracking_uri)
    if address is None:
        check_machine(spec.resources)
        if (card := memory.smallest_card()) is not None:
            memory.check_card(spec, card)
        return
    check_cluster(address)
    check_taken(address)
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
    assignments: Sequence[str] = (),
    failed: bool = False,
) -> RunEnd:
    """Go on with a study that was stopped or whose driver died; of a complete one, bring MLflow up to date.

    Args:
        trials: how many more configurations the search tries, as `+50`, also if it was complete.
        address: as for `start`; it need not be where the study ran before.
        shared: as for `start`.
        assignments: `key=value` of what may change from here on, see `study.commands.placement`.
        failed: let all that failed run again, also if the study was complete.

    Raises:
        UserError: there is no such study, it is complete and all in MLflow, or has failed and nothing else is left, or
            it runs; it cannot be extended, has nothing that failed, or what is assigned cannot change.
        Stopped, Interrupted: as for `start`.
    """
    with interrupted_as(GO_ON.format(name)):
        return _resume(home, name, view, trials, address, shared, assignments, failed)


def _resume(
    home: Home,
    name: str,
    view: View,
    trials: str | None,
    address: str | None,
    shared: SharedRay | None,
    assignments: Sequence[str],
    failed: bool,
) -> RunEnd:
    folder = home.find(name)
    check_not_there(folder)
    spec, record = folder.checked_spec(), StudyRecord.load(folder.ledger_file)
    told = placement(folder, record, assignments)
    placed = spec.placed(told)
    if trials is not None:
        _check_place(home, placed, address)
        with resumable(folder):
            record = extend_search.more_trials(folder, spec, trials)
    if failed:
        _check_place(home, placed, address)
        with resumable(folder):
            record = extend_search.failed_again(folder, spec)
    if record.state != "complete" or trials is not None:
        extend_search.check_not_spent(record, spec)
        _check_place(home, placed, address)
        return run_session(home, folder, loaded(spec, view), view, address, shared, told)
    tracker = Tracker(home, folder, spec)
    is_cut_off = spec.final_seeds is not None and not spec.function and not folder.card_file.exists()
    datasets = loaded(spec, view) if is_cut_off else None
    with shown(folder), resumable(folder), closing(Ledger(folder.ledger_file)):
        if not is_cut_off and not tracker.is_behind and not tracker.is_lost():
            again = f". {extend_search.RETRY.format(name)}" if extend_search.failed_trials(record) else ""
            raise UserError(
                f"{name}: complete, there is nothing to go on with. Its results: study report {name}{again}"
            )
        tracker.start()
        untracked = (
            tracker.finish()
            or tracker.attach(outputs(folder, spec, record, datasets), lead_parts(spec, record))
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
        top, seeds, rules: see `study.commands.extend_search.more_seeds`.

    Raises:
        UserError: see `resume`; or nothing would be run, see `study.commands.extend_search.more_seeds`.
    """
    folder, spec = _going_on(home, name, address)
    datasets = loaded(spec, view)
    with resumable(folder):
        extend_search.more_seeds(folder, spec, top, seeds, rules)
    return run_session(home, folder, datasets, view, address)


def extend(home: Home, name: str, view: View, request: extend_trials.Request, address: str | None = None) -> RunEnd:
    """Let trials of a study whose search is over go on beyond their last epoch.

    Raises:
        UserError: see `resume`; or these cannot go on, see `study.commands.extend_trials.planned`.
    """
    folder, spec = _going_on(home, name, address)
    datasets = loaded(spec, view)
    with resumable(folder):
        extend_trials.ask(folder, spec, request)
    return run_session(home, folder, datasets, view, address)


def _going_on(home: Home, name: str, address: str | None) -> tuple[StudyFolder, StudySpec]:
    """A study of this home that more is asked of, and its file; raises as `resume`."""
    folder = home.find(name)
    check_not_there(folder)
    spec = folder.checked_spec()
    _check_place(home, spec.placed(StudyRecord.load(folder.ledger_file).placement), address)
    return folder, spec


def ablate(home: Home, name: str, view: View, request: Request, address: str | None = None) -> RunEnd | None:
    """Run the steps from a study's baseline to its best configuration, each on the same fresh seeds.

    Returns:
        None: all that is asked for has run.

    Raises:
        UserError: see `resume`; or there is nothing to ablate, see `study.commands.ablation.planned`.
    """
    folder, spec = _going_on(home, name, address)
    datasets = loaded(spec, view)
    with resumable(folder):
        is_measured = not ablation.ask(folder, spec, request)
    return None if is_measured else run_session(home, folder, datasets, view, address)


def train(home: Home, spec: StudySpec, view: View, address: str | None = None) -> RunEnd:
    """Train a configuration on several seeds; seeds that were trained before are kept.

    Args:
        spec: a final training, see `study.commands.final_training.final_study`.

    Raises:
        UserError: see `start`; or the name belongs to another configuration.
    """
    _check_place(home, spec, address)
    datasets = loaded(spec, view)
    return run_session(home, final_training.extend(home, spec, brought(home, spec)), datasets, view, address)
