"""What `study fetch` does: copy a study of a cluster into the local home, where every command works on it."""

import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from study.cluster.dashboard import ClusterDashboard
from study.cluster.mirror import FetchOptions, LedgerMismatchError, RemoteStudy, is_downloaded_by_default
from study.commands.final_training import fetch_models_command
from study.errors import UserError, find_disk_error
from study.files import safe_path_below
from study.home import ledger
from study.home.folder import FetchOrigin, Home, StudyFolder, read_fetch_origin, write_home_format
from study.home.record import StudyRecord
from study.ranking import Results
from study.spec.load import check_study_name
from study.spec.yaml_document import dump_yaml, read_study_file
from study.text import study_command


@dataclass(frozen=True)
class FetchOutcome:
    """Outcome of a fetch.

    Attributes:
        folder: the study here.
        origin: where it came from.
        files: those that came; empty where nothing was new.
        has_models: whether the weights of its models were to come.
        n_own_events: events that it has here and not on the cluster.
        untracked_reason: why MLflow here lacks some of it, None if it has everything.
    """

    folder: StudyFolder
    origin: FetchOrigin
    files: list[str]
    has_models: bool
    n_own_events: int
    untracked_reason: str | None


def fetch_study(home: Home, name: str, address: str, models: bool = False, rename: str | None = None) -> FetchOutcome:
    """Copy a study of a cluster into the home, or what is new of it.

    A first fetch that is cut off leaves no study; the next one goes on from the files that came.

    Args:
        models: whether the weights of its models come too.
        rename: its name here; None: as there.

    Raises:
        UserError: there is no such study there; or another one has its name here, or this one went on by itself.
    """
    local = rename or name
    check_study_name(local)
    folder = StudyFolder(safe_path_below(home.path, local))
    head = ClusterDashboard(address)
    drivers = [job for job in head.driver_jobs() if job.study == name]
    known = _known_origin(home, folder, name)
    if known is None and folder.path.exists():
        return _outcome_if_name_is_taken(home, folder, RemoteStudy(head, name, drivers), name, address)
    place = folder.path if known else home.path / f".{local}.fetch"
    reading = RemoteStudy(head, name, drivers, known or read_fetch_origin(StudyFolder(place)))
    options = FetchOptions(
        lambda file: is_downloaded_by_default(file) or not file.startswith("models/") or models,
        keeps_own_events=known is not None,
        change_study_file=None if local == name else _study_file_renamer(local),
    )
    try:
        home.path.mkdir(parents=True, exist_ok=True)
        write_home_format(home.path)
        source, files = reading.download_study_files(place, options)
        StudyRecord.load(place / folder.ledger_file.name)  # raises where this version cannot read it
        if not known:
            home.check_name_is_free(local)
            place.rename(folder.path)
    except LedgerMismatchError as error:
        raise UserError(
            f"{local}: {error} in {home.path}, and {name} at {address} goes on otherwise. "
            f"Beside it: {study_command('fetch', name, '--address', address, '--name', f'{local}-2')}"
        ) from None
    except OSError as error:
        if find_disk_error(error):
            raise
        raise UserError(f"{error.filename or place}: {error.strerror}") from None
    own = len(ledger.read_entries(folder.ledger_file)) - source.events
    return FetchOutcome(folder, source, files, models, max(0, own), _track_in_mlflow(home, folder))


def _known_origin(home: Home, folder: StudyFolder, name: str) -> FetchOrigin | None:
    """Return where the local study came from; None: there is none, or it did not come from there.

    Raises:
        UserError: it runs here.
    """
    if home.study_or_none(folder.name) is None:
        home.check_name_is_free(folder.name)
        return None
    known = read_fetch_origin(folder)
    if known is None or known.name != name:
        return None
    if ledger.is_driver_running(folder.ledger_file):
        raise UserError(f"{folder.name}: runs here. Its state: {study_command('status', folder.name)}")
    return known


def _outcome_if_name_is_taken(
    home: Home, folder: StudyFolder, reading: RemoteStudy, name: str, address: str
) -> FetchOutcome:
    """Return the outcome for a study whose name is taken here by one that was not fetched from there.

    It is no error if both are one study: a cluster on this home, as that of `study cluster up`, reads this very folder.

    Raises:
        UserError: it is another study, or the one on the cluster has gone on otherwise.
    """
    with TemporaryDirectory(prefix=f".{folder.name}.", dir=home.path) as place:
        source, _ = reading.download_study_files(Path(place), FetchOptions(lambda file: False))
        there = (Path(place) / folder.ledger_file.name).read_bytes()
    here = folder.ledger_file.read_bytes() if folder.ledger_file.exists() else b""
    if here.startswith(there):
        return FetchOutcome(folder, source, [], False, 0, None)
    is_same = here.partition(b"\n")[0] == there.partition(b"\n")[0]
    known = read_fetch_origin(folder)
    came = f"was fetched, by the name {known.name}" if known else "was not fetched"
    what = "the same study, which went on otherwise," if is_same else "another study of that name"
    again = study_command("fetch", name, "--address", address, "--name", f"{folder.name}-2")
    raise UserError(f"{folder.name}: {what} is in {home.path}, it {came}. Beside it: {again}")


def _study_file_renamer(name: str) -> Callable[[Path], None]:
    """Return a function that gives a study file another name."""

    def change(path: Path) -> None:
        path.write_text(dump_yaml({**read_study_file(path).values, "name": name}), encoding="utf-8")

    return change


def _track_in_mlflow(home: Home, folder: StudyFolder) -> str | None:
    """Bring a fetched study into MLflow if that is this home's own; another may be the cluster's, which has it."""
    if not home.uses_own_mlflow:
        return None
    from study.commands.report import artifact_folder_by_result_file, lead_sentences_by_title
    from study.tracking import MlflowTracker

    results = Results.load(folder)
    tracker = MlflowTracker(home, folder, results.spec)
    if not tracker.is_behind:
        return None
    tracker.start_following()
    with redirect_stdout(sys.stderr):  # the tracker prints when it waits
        untracked = tracker.finish_writing()
    return untracked or tracker.log_artifacts(artifact_folder_by_result_file(folder), lead_sentences_by_title(results))


def check_not_running_at_origin(folder: StudyFolder) -> None:
    """Refuse to go on here with a study that still runs where it was fetched from.

    Raises:
        UserError: says how to go on with it there, or here.
    """
    known = read_fetch_origin(folder)
    if known is None:
        return
    at, runs = f"when it was fetched, on {known.download_time_text}", known.was_running
    try:
        drivers = [job for job in ClusterDashboard(known.address).driver_jobs() if job.study == known.name]
        if drivers:
            at, runs = f"({drivers[-1].id})", not drivers[-1].has_ended
    except UserError:  # no answer: what was known at the fetch counts
        pass
    if runs:
        stop = study_command("stop", known.name, "--address", known.address)
        raise UserError(
            f"{folder.name}: runs at {known.address} {at}. To go on with it here, stop it there: "
            f"{stop}, and bring the rest: {known.fetch_command(folder.name)}"
        )


def fetch_outcome_lines(done: FetchOutcome) -> list[str]:
    """Return the lines that tell a user what a fetch brought."""
    name, source = done.folder.name, done.origin
    count = f"{len(done.files)} files" if len(done.files) != 1 else done.files[0]
    lines = [f"{name}: {f'brought {count}' if done.files else 'nothing new'}, in {done.folder.path}"]
    if not done.files and read_fetch_origin(done.folder) is None:
        lines = [f"{name}: is this very study, which the cluster has from this home: {done.folder.path}"]
    elif source.was_running:
        job = f"{source.address} ({source.job})"
        lines.append(f"it runs at {job}: this is what there was then. What is new: {source.fetch_command(name)}")
    if done.has_models:
        there = {file.name for file in done.folder.list_model_files()}
        came = sum(file.rpartition("/")[2] in there for file in done.files)
        lines.append(f"models: {came} new, {len(there)} in all" if there else "models: it has none")
    elif how := fetch_models_command(done.folder, Results.load(done.folder)):
        lines.append(f"its models stayed there. To fetch them: {how}")
    if done.n_own_events:
        lines.append(f"it has {done.n_own_events} events of its own here, which the cluster does not have")
    if done.untracked_reason:
        lines.append(f"not everything is in MLflow: {done.untracked_reason}")
    here = ["--address", "local"] if os.environ.get("STUDY_ADDRESS") else []
    return [*lines, f"what it says: {study_command('report', name, *here)}"]


def fetch_outcome_to_dict(done: FetchOutcome) -> dict[str, object]:
    """Return the outcome of a fetch as plain values for JSON."""
    told = done.origin
    source = {"address": told.address, "name": told.name, "state": told.state, "at": told.downloaded_at}
    return {"name": done.folder.name, "files": done.files, "own_events": done.n_own_events, "from": source}
