"""Brings a ledger into MLflow, some events at a time."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from study.home.folder import Home, StudyFolder
from study.home.ledger import LedgerTail, line_checksum
from study.home.ledger_line import Entry
from study.home.record import StudyRecord
from study.ranking import Results
from study.spec import StudySpec
from study.text import redact_credentials
from study.tracking.connection import correct_artifact_locations, move_damaged_database_aside, open_mlflow_of_home
from study.tracking.mlflow_runs import MAX_PARALLEL_REQUESTS, NOTE_TAG, MlflowRunStore, RunUpdate, to_milliseconds
from study.tracking.mlflow_urls import RESULTS_VIEW_KEY, run_page_url, trials_page_url, view_url
from study.tracking.runs_from_events import EventTranslator, study_run_note
from study.tracking.tracking_state import STUDY_RUN_KEY, TrackingState, study_id_of_ledger

EVENTS_PER_BATCH = 500
"""Most events that are brought at once."""


class LedgerToMlflowWriter:
    """Writer of one study's events to MLflow, from where its progress file says.

    It is used until something goes wrong; the next one then goes on from what that file says. Between the two MLflow
    may have got more than the file tells, so that the first events are looked for before they are written.

    Args:
        since: time of the first event that something went wrong with, in milliseconds since the epoch; None if nothing
            did.

    Attributes:
        notes: what was wrong with MLflow and was repaired, in sentences for people.
        reached: time of the first of the events that were brought last, in milliseconds since the epoch.

    Raises:
        Exception: whatever MLflow, its database or the network raise.
    """

    def __init__(self, home: Home, folder: StudyFolder, spec: StudySpec, since: int | None = None) -> None:
        self._home, self._folder, self._spec, self._since = home, folder, spec, since
        damaged = move_damaged_database_aside(home.database_file) if home.uses_own_mlflow else None
        is_server = home.tracking_uri.startswith(("http:", "https:"))
        self._store = MlflowRunStore(open_mlflow_of_home(home), MAX_PARALLEL_REQUESTS if is_server else 1)
        self._progress = TrackingState.load(folder.tracking_state_file, home.tracking_uri)
        if line_checksum(folder.ledger_file, self._progress.offset) != self._progress.last:
            self._progress = TrackingState(self._progress.uri)  # the ledger lost its end, and may have another now
            cut = [f"MLflow had more of {folder.name} than its ledger tells; it is brought there anew"]
        else:
            cut = []
        self._above = self._tracking_state_of_origin()
        is_lost = self._has_lost_runs()
        self.notes = cut + _mlflow_problem_notes(home, folder, damaged, is_lost)
        if is_lost:
            self._progress = TrackingState(self._progress.uri, former=self._progress.former | self._progress.runs)
            self._progress.save(folder.tracking_state_file)
        self._tail = LedgerTail(folder.ledger_file, self._progress.offset)
        record = StudyRecord.from_entries(_entries_before_offset(folder.ledger_file, self._progress.offset))
        self._study = record.id
        above = self._above.runs.get(STUDY_RUN_KEY, "")
        self._events = EventTranslator(spec, self._progress, record, folder.trial_mlflow_folder, above)
        self._sure = False
        self.reached: int | None = None

    def write_next_events(self) -> int:
        """Write the next events of the ledger, at most `EVENTS_PER_BATCH`; return how many there were."""
        events = list(islice(self._tail.new_entries(), EVENTS_PER_BATCH))
        if not events:
            return 0
        time = events[0]["time"]
        assert isinstance(time, int | float)
        self.reached = to_milliseconds(time)
        self._study = self._study or str(events[0]["id"])
        progress = self._progress
        if not progress.experiment:
            own = (self._home.artifacts_folder / self._spec.name).as_uri() if self._home.uses_own_mlflow else None
            progress.experiment = self._above.experiment or self._store.find_or_make_experiment(self._spec, own)
        if not self._sure:
            self._adopt_existing_runs(self.reached)
        changes = self._events.translate(events)
        self._store.apply_run_updates(progress.experiment, changes, progress.runs)
        self._restore_artifacts()
        for key, path, place in ((change.run_key, *file) for change in changes for file in change.files):
            self._log_artifact(key, path, place)
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir(exist_ok=True)  # MLflow finds no run without this folder
        names = {event["event"] for event in events}
        if "opened" in names:
            self._log_artifact(STUDY_RUN_KEY, self._folder.spec_file, None)
        if "closed" in names and self._since is not None:
            self._adopt_existing_runs(self._since)  # MLflow may have carried out late a request that was given up
        self._sure, progress.offset = True, self._tail.offset
        progress.last = line_checksum(self._folder.ledger_file, progress.offset)
        progress.save(self._folder.tracking_state_file)
        return len(events)

    def log_artifacts(self, files: Mapping[Path, str | None], lead: Mapping[str, Sequence[str]] | None = None) -> None:
        """Log files as artifacts of the study's run, each in the artifact folder given (None: the topmost).

        Args:
            lead: the sentences of the report's lead by title, for the run's note.
        """
        progress = self._progress
        run_id = progress.runs[STUDY_RUN_KEY]
        for path, folder in files.items():
            self._log_artifact(STUDY_RUN_KEY, path, folder)
        shown = {path.name: f"{folder}/{path.name}" if folder else path.name for path, folder in files.items()}
        is_final = self._spec.final_seeds is not None
        links = {} if is_final else {"the results in a table": view_url(progress.experiment, RESULTS_VIEW_KEY)}
        links["the trials"] = trials_page_url(progress.experiment, is_final)
        linked = [name for name in LINKED_ARTIFACTS if name in shown]
        links |= {name: run_page_url("", progress.experiment, run_id, shown[name]) for name in linked}
        text = study_run_note(Results(self._spec, self._events.record), lead, links)
        self._store.apply_run_updates(
            progress.experiment, [RunUpdate(STUDY_RUN_KEY, tags={NOTE_TAG: text})], progress.runs
        )
        progress.attached = True
        self._progress.save(self._folder.tracking_state_file)

    def _has_lost_runs(self) -> bool:
        """Return whether MLflow lacks runs that it had.

        In a home's own database each is looked for: its page has a button that deletes one.
        """
        runs, experiment = self._progress.runs, self._progress.experiment
        if not self._home.uses_own_mlflow or not runs or self._store.has_lost_runs(runs):
            return self._store.has_lost_runs(runs)
        there = self._store.find_runs(experiment, study_id_of_ledger(self._folder.ledger_file))
        return not set(runs.values()) <= {run_id for _, run_id in there}

    def _tracking_state_of_origin(self) -> TrackingState:
        """Return what MLflow has of the study whose configuration a final training trains: its runs are nested there.

        Empty for other studies, and where this home or its MLflow does not have that study.
        """
        origin = self._spec.origin or {}
        folder = self._home.study_or_none(origin.get("study"))
        if folder is None or self._spec.final_seeds is None or folder.name == self._spec.name:
            return TrackingState()
        found = TrackingState.load(folder.tracking_state_file, self._home.tracking_uri)
        own = study_id_of_ledger(folder.ledger_file)
        is_other = STUDY_RUN_KEY not in found.runs or origin.get("study_id", own) != own
        return TrackingState() if is_other or self._store.has_lost_runs(found.runs) else found

    def _log_artifact(self, key: str, path: Path, place: str | None) -> None:
        """Log a file, or all in a folder, as artifacts of a run.

        The database's addresses are corrected first: a machine that sees the home by another path may have changed
        them.
        """
        if self._home.uses_own_mlflow:
            correct_artifact_locations(self._home.database_file, self._home.artifacts_folder)
        self._store.log_artifacts(self._progress.runs[key], path, place)

    def _restore_artifacts(self) -> None:
        """Give runs that were made again the artifacts that they had: they have other ids now, and another place."""
        former = self._progress.former if self._home.uses_own_mlflow else {}
        for key in former.keys() & self._progress.runs.keys():
            if former[key] != self._progress.runs[key]:
                for folder in self._home.artifacts_folder.glob(f"*/{former[key]}/artifacts"):
                    self._log_artifact(key, folder, None)
                    shutil.rmtree(folder.parent)
            del former[key]

    def _adopt_existing_runs(self, since: int) -> None:
        """Add the runs that MLflow has; of two of one key keep the first, and delete the other."""
        runs = self._progress.runs
        for key, run_id in list(self._store.find_runs(self._progress.experiment, self._study, since - CLOCK_SKEW_MS)):
            if runs.setdefault(key, run_id) != run_id:
                self._store.client.delete_run(run_id)


LINKED_ARTIFACTS = ("report.html", "best.yaml", "model_card.md")
"""Files that the note of a study's run links to."""

CLOCK_SKEW_MS = 60_000
"""Milliseconds by which a clock may have been set back."""


def _mlflow_problem_notes(
    home: Home, folder: StudyFolder, damaged: tuple[str, Path] | None, is_lost: bool
) -> list[str]:
    """Return what was wrong with MLflow."""
    again = f"the runs of {folder.name} are made again from its ledger"
    others = ", those of other studies with: study resume NAME" if home.uses_own_mlflow else ""
    if damaged:
        why, aside = damaged
        return [f"{home.database_file} was damaged: {why}. It is kept as {aside.name}; {again}{others}"]
    where = home.database_file if home.uses_own_mlflow else redact_credentials(home.tracking_uri)
    return [f"{where}: runs of {folder.name} were missing; {again}{others}"] if is_lost else []


def _entries_before_offset(path: Path, offset: int) -> Iterator[Entry]:
    """Yield the events of a ledger up to an offset."""
    tail = LedgerTail(path)
    for event in tail.new_entries():
        if tail.offset > offset:
            return
        yield event
