"""Brings a ledger into MLflow, some events at a time."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from study.home.folder import Home, StudyFolder
from study.home.ledger import Tail, check_value
from study.home.line import Entry
from study.home.record import StudyRecord
from study.spec import StudySpec
from study.tracking.connection import open_mlflow, public, set_aside
from study.tracking.database import Database, close_connections
from study.tracking.events import NOTE, Events, note
from study.tracking.store import AT_ONCE, RunUpdate, Store, milliseconds
from study.tracking.tracked import STUDY, Tracked, run_page

SHARE = 500
"""Events that are brought at once."""


class Writer:
    """Brings one study's events into MLflow, from where its progress file says.

    It is used until something goes wrong; the next one then goes on from what that file says. Between the two MLflow
    may have got more than the file tells, so that the first events are looked for before they are written.

    Args:
        since: when the first event was that something went wrong with, in milliseconds since the epoch, None if
            nothing did.

    Attributes:
        notes: what was wrong with MLflow and was mended, in sentences for people.
        reached: when the first of the events was that were brought last, in milliseconds since the epoch.

    Raises:
        Exception: whatever MLflow, its database or the network raise.
    """

    def __init__(self, home: Home, folder: StudyFolder, spec: StudySpec, since: int | None = None) -> None:
        self._home, self._folder, self._spec, self._since = home, folder, spec, since
        damaged = set_aside(home.database) if home.owns_tracking else None
        close_connections(home.tracking_uri)
        self._store = _store(home)
        self._progress = Tracked.load(folder.tracking_file, home.tracking_uri)
        if check_value(folder.ledger_file, self._progress.offset) != self._progress.last:
            self._progress = Tracked(self._progress.uri)  # the ledger has lost its end since, and may have another now
            cut = [f"MLflow had more of {folder.name} than its ledger tells; it is brought there anew"]
        else:
            cut = []
        is_lost = self._store.lacks(self._progress.runs)
        self.notes = cut + _notes(home, folder, damaged, is_lost)
        if is_lost:
            self._progress = Tracked(self._progress.uri, former=self._progress.former | self._progress.runs)
            self._progress.save(folder.tracking_file)
        self._tail = Tail(folder.ledger_file, self._progress.offset)
        record = StudyRecord.fold(_before(folder.ledger_file, self._progress.offset))
        self._study, self._events = record.id, Events(spec, self._progress, record, folder.own_runs)
        self._sure = False
        self.reached: int | None = None

    def write_new(self) -> int:
        """Write the next events of the ledger, `SHARE` at most. Says how many there were."""
        events = list(islice(self._tail.new(), SHARE))
        if not events:
            return 0
        self.reached = milliseconds(events[0]["time"])
        self._study = self._study or events[0]["id"]
        progress = self._progress
        if not progress.experiment:
            own = (self._home.artifacts / self._spec.name).as_uri() if self._home.owns_tracking else None
            progress.experiment = self._store.experiment(self._spec.name, own, self._spec.metric)
        if not self._sure:
            self._take_up_runs(self.reached)
        changes = self._events.changes(events)
        self._store.write(progress.experiment, changes, progress.runs, progress.former)
        for key, path, place in ((change.key, *file) for change in changes for file in change.files):
            self._store.attach(progress.runs[key], path, place)
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir(exist_ok=True)  # MLflow knows no run without this folder
        names = {event["event"] for event in events}
        if "opened" in names:
            self._store.attach(progress.runs[STUDY], self._folder.spec_file, None)
        if "closed" in names and self._since is not None:
            self._take_up_runs(self._since)  # a request that was given up may have been carried out late
        self._sure, progress.offset = True, self._tail.offset
        progress.last = check_value(self._folder.ledger_file, progress.offset)
        progress.save(self._folder.tracking_file)
        return len(events)

    def attach(self, files: Mapping[Path, str | None], lead: Mapping[str, Sequence[str]] | None = None) -> None:
        """Log files as artifacts of the study's run, each in the artifact folder given (None: the topmost).

        Args:
            lead: the sentences of the report's lead by title, for the run's note.
        """
        progress = self._progress
        run_id = progress.runs[STUDY]
        for path, folder in files.items():
            self._store.attach(run_id, path, folder)
        shown = {path.name: f"{folder}/{path.name}" if folder else path.name for path, folder in files.items()}
        links = {name: run_page("", progress.experiment, run_id, shown[name]) for name in LINKED if name in shown}
        text = note(self._spec, self._events.record, lead, links)
        self._store.write(progress.experiment, [RunUpdate(STUDY, tags={NOTE: text})], progress.runs)
        progress.attached = True
        self._progress.save(self._folder.tracking_file)

    def _take_up_runs(self, since: int) -> None:
        """Take up the runs that MLflow has; of two of one trial the first."""
        runs = self._progress.runs
        for key, run_id in list(self._store.find(self._progress.experiment, self._study, since - MARGIN)):
            if runs.setdefault(key, run_id) != run_id:
                self._store.client.delete_run(run_id)


LINKED = ("report.html", "best.yaml", "model_card.md")
"""Files that the note of a study's run leads to."""

MARGIN = 60_000
"""Milliseconds that a clock may be set back by."""


def _store(home: Home) -> Store:
    client = open_mlflow(home)
    if home.owns_tracking:
        return Database(client, home)
    return Store(client, AT_ONCE if home.tracking_uri.startswith(("http:", "https:")) else 1)


def _notes(home: Home, folder: StudyFolder, damaged: tuple[str, Path] | None, is_lost: bool) -> list[str]:
    """Return what was wrong with MLflow."""
    again = f"the runs of {folder.name} are made again from its ledger"
    others = ", those of other studies with: study resume NAME" if home.owns_tracking else ""
    if damaged:
        why, aside = damaged
        return [f"{home.database} was damaged: {why}. It is kept as {aside.name}; {again}{others}"]
    where = home.database if home.owns_tracking else public(home.tracking_uri)
    return [f"{where}: runs of {folder.name} were missing; {again}{others}"] if is_lost else []


def _before(path: Path, offset: int) -> Iterator[Entry]:
    """The events of a ledger up to an offset."""
    tail = Tail(path)
    for event in tail.new():
        if tail.offset > offset:
            return
        yield event
