"""A thread that follows the ledger file and brings what is new into MLflow, in batches.

It may lag, lose its connection or be killed: what is not in MLflow yet is in the ledger, and each event arrives once,
in order, sooner or later. The study itself never waits for MLflow, but at its end, for a while.
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from study.errors import Stopped
from study.home.events import EVENTS
from study.home.folder import Home, StudyFolder
from study.home.ledger import Event, Tail, check_value
from study.home.record import StudyRecord
from study.spec import StudySpec
from study.text import tell
from study.tracking.connection import error_line, open_mlflow, public
from study.tracking.database import Database, close_connections
from study.tracking.database_file import set_aside
from study.tracking.events import Events
from study.tracking.pages import run_page
from study.tracking.run_update import Change, milliseconds
from study.tracking.store import AT_ONCE, Store
from study.tracking.study_run import NOTE, note
from study.tracking.tracked import STUDY, Tracked

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
        self.notes = cut + _notes(home, folder, self._store, damaged, is_lost)
        if is_lost:
            self._progress = Tracked(self._progress.uri, former=self._progress.former | self._progress.runs)
            self._progress.save(folder.tracking_file)
        self._tail = Tail(folder.ledger_file, self._progress.offset)
        record = StudyRecord.fold(_before(folder.ledger_file, self._progress.offset))
        self._study, self._events = record.id, Events(spec, self._progress, record)
        self._sure = False
        self.reached: int | None = None

    def bring(self) -> int:
        """Write the next events of the ledger, `SHARE` at most. Says how many there were."""
        events = list(islice(self._tail.new(), SHARE))
        if not events:
            return 0
        self.reached = milliseconds(events[0])
        self._study = self._study or events[0]["id"]
        progress = self._progress
        if not progress.experiment:
            progress.experiment = self._store.experiment(self._spec.name, self._location(), self._spec.metric)
        if not self._sure:
            self._take_up_runs(self.reached)
        self._store.write(progress.experiment, self._events.changes(events), progress.runs, progress.former)
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
        self._store.write(progress.experiment, [Change(STUDY, tags={NOTE: text})], progress.runs)
        progress.attached = True
        self._progress.save(self._folder.tracking_file)

    def _take_up_runs(self, since: int) -> None:
        """Take up the runs that MLflow has; of two of one trial the first."""
        runs = self._progress.runs
        for key, run_id in list(self._store.find(self._progress.experiment, self._study, since - MARGIN)):
            if runs.setdefault(key, run_id) != run_id:
                self._store.delete(run_id)

    def _location(self) -> str | None:
        """Return where artifacts lie: in the home, unless an MLflow of its own says where."""
        return (self._home.artifacts / self._spec.name).as_uri() if self._home.owns_tracking else None


LINKED = ("report.html", "best.yaml", "model_card.md")
"""Files that the note of a study's run leads to."""

MARGIN = 60_000
"""Milliseconds that a clock may be set back by."""


def _store(home: Home) -> Store:
    client = open_mlflow(home)
    if home.owns_tracking:
        return Database(client, home)
    return Store(client, AT_ONCE if home.tracking_uri.startswith(("http:", "https:")) else 1)


def _notes(home: Home, folder: StudyFolder, store: Store, damaged: tuple[str, Path] | None, is_lost: bool) -> list[str]:
    """Return what was wrong with MLflow, and which other studies it lost runs of."""
    again = f"the runs of {folder.name} are made again from its ledger"
    if damaged:
        why, aside = damaged
        notes = [f"{home.database} was damaged: {why}. It is kept as {aside.name}; {again}"]
    elif is_lost:
        where = home.database if home.owns_tracking else public(home.tracking_uri)
        notes = [f"{where}: runs of {folder.name} were missing; {again}"]
    else:
        return []
    others = (other for other in home.studies() if other.name != folder.name)
    lost = [other.name for other in others if home.owns_tracking and _lost(home, store, other)]
    return notes + [f"runs of {name} are missing, too. They come back with: study resume {name}" for name in lost]


def _lost(home: Home, store: Store, folder: StudyFolder) -> bool:
    """Return whether runs of a study are not there any more, or nobody knows where they were."""
    progress = Tracked.load(folder.tracking_file, home.tracking_uri)
    return store.lacks(progress.runs) or not folder.tracking_file.exists()


def _before(path: Path, offset: int) -> Iterator[Event]:
    """The events of a ledger up to an offset that results depend on."""
    tail = Tail(path)
    for event in tail.new():
        if tail.offset > offset:
            return
        if event["event"] in EVENTS:
            yield event


if TYPE_CHECKING:
    from study.tracking.tracker import Writer

WINDOW = 2.0
"""Seconds between two looks at the ledger: each that finds something costs about 10 ms, however little it is."""

REST, LONGEST = 3.0, 5.0
"""The tracking rests `REST` times as long as it wrote, `LONGEST` seconds at most, and not at all while it is behind: a
server on the same machine shares its cores with the trials, and news that wait for each other take fewer requests."""

PATIENCE, IMPATIENCE = 120.0, 5.0
"""Seconds that the end of a study waits for MLflow, and for one that does not answer."""

QUIET = 3.0
"""Seconds of it that nothing is said about."""

PARTING = 1.0
"""Seconds that it waits then for the request that is under way."""

RETRY = 3.0
"""Seconds to wait when MLflow does not answer."""

HEAD_START = 30.0
"""Seconds that a study which begins may take for its first report before MLflow is opened: to import it and to make its
database takes seconds of the process that starts the trials."""


def rest(spent: float) -> float:
    """Seconds until the next look at the ledger after so many of writing."""
    return max(WINDOW, min(LONGEST, REST * spent))


class Tracker:
    """Follows one study's ledger from `start` to `finish`."""

    def __init__(self, home: Home, folder: StudyFolder, spec: StudySpec) -> None:
        self._home, self._folder, self._spec = home, folder, spec
        self._writer: Writer | None = None
        self._finish, self._given_up = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._follow, name="tracking", daemon=True)
        self._trouble: str | None = None
        self._troubled = 0.0  # since when, on the monotonic clock
        self._since: int | None = None
        self._begins_at, self._head_start = 0, 0.0
        self.notes: list[str] = []
        """What was wrong with MLflow and was mended, in sentences for people."""

    @property
    def is_behind(self) -> bool:
        """Return whether MLflow lacks events of the ledger, or has others, or lacks the study's files."""
        progress = self._progress()
        return progress.offset != self._folder.ledger_file.stat().st_size or not progress.attached

    def is_lost(self) -> bool:
        """Return whether MLflow lacks runs that it had; without `start`.

        Raises:
            Stopped: MLflow cannot be asked.
        """
        try:
            self._connected()
        except Exception as error:  # as in _follow
            name, database = self._folder.name, self._home.database
            remedy = f". Move {database} away, then study resume {name} makes its runs again"
            raise Stopped(
                f"{name} is complete, but whether MLflow has all of it cannot be told: "
                f"{error_line(error, self._home.tracking_uri)}{remedy if self._home.owns_tracking else ''}"
            ) from error
        return self.is_behind

    def start(self, head_start: float = 0.0) -> None:
        """Begin to follow the ledger.

        Args:
            head_start: seconds that MLflow waits for the study's next report, at most; see `HEAD_START`.
        """
        self._begins_at, self._head_start = self._folder.ledger_file.stat().st_size, head_start
        self._thread.start()

    def finish(self) -> str | None:
        """Write the rest of the ledger; give up after a while, sooner if MLflow did not answer lately.

        Returns:
            What went wrong if not everything is in MLflow, else None.
        """
        self._finish.set()
        began, told_so = time.monotonic(), False
        while self._thread.is_alive() and time.monotonic() < self._deadline(began):
            self._thread.join(0.1)
            if not told_so and time.monotonic() - began > QUIET:
                tell(f"MLflow gets the rest; this waits {PATIENCE:.0f} s at most ...")
                told_so = True
        problem = (self._trouble or "it is slow") if self._thread.is_alive() else None
        self._given_up.set()
        self._thread.join(PARTING)
        return problem

    def abandon(self) -> None:
        """Write no more, before `finish`: the study is another driver's now."""
        self._given_up.set()

    def attach(self, files: Mapping[Path, str | None], lead: Mapping[str, Sequence[str]] | None = None) -> str | None:
        """Log files as artifacts of the study's run, after `finish` or without `start`.

        Args:
            files: each with the artifact folder that it goes to (None: the topmost).
            lead: the sentences of the report's lead by title, for the run's note.

        Returns:
            What went wrong, else None; nothing is done for a study that MLflow does not have.
        """
        if STUDY not in self._progress().runs:
            return None
        try:
            self._connected().attach(files, lead)
        except Exception as error:  # as in _follow
            return error_line(error, self._home.tracking_uri)
        return None

    def _deadline(self, began: float) -> float:
        """When a wait that began then is over; an MLflow that answers again after trouble gets its time."""
        answers = self._trouble is None or self._writer is not None
        return began + PATIENCE if answers else max(began, self._troubled) + IMPATIENCE

    def _progress(self) -> Tracked:
        return Tracked.load(self._folder.tracking_file, self._home.tracking_uri)

    def _let_the_study_begin(self) -> None:
        """Wait for the first report from now on, for what ends a study without one, or for long enough."""
        tail = Tail(self._folder.ledger_file, self._begins_at)
        deadline = time.monotonic() + self._head_start
        while time.monotonic() < deadline and not self._finish.is_set() and not self._given_up.is_set():
            if any(event["event"] == "report" for event in tail.new()):
                return
            self._finish.wait(WINDOW)

    def _follow(self) -> None:
        with suppress(Exception):  # what is wrong with the ledger, the loop finds again, tells and tries anew
            self._let_the_study_begin()
        while not self._given_up.is_set():
            last, began = self._finish.is_set(), time.monotonic()
            try:
                while not self._given_up.is_set() and self._bring(to_the_end=last):
                    pass
                self._trouble = None
                if last:
                    return
                self._finish.wait(rest(time.monotonic() - began))
            except Exception as error:  # whatever MLflow, its database or the network raise: try again later
                if self._trouble is None:
                    self._troubled = time.monotonic()
                self._trouble = error_line(error, self._home.tracking_uri)
                self._writer = None
                self._given_up.wait(RETRY)

    def _bring(self, to_the_end: bool) -> bool:
        """Write some events; says whether to go on at once: there may be more, and many or it is the end."""
        writer = self._connected()
        from study.tracking.tracker import SHARE

        if self._given_up.is_set():  # while MLflow was opened: whoever goes on with the study may be bringing the same
            return False
        try:
            return writer.bring() >= (1 if to_the_end else SHARE)
        except Exception:
            self._since = self._since or writer.reached
            raise

    def _connected(self) -> "Writer":
        if self._writer is None:
            from study.tracking.tracker import Writer

            self._writer = Writer(self._home, self._folder, self._spec, self._since)
            self.notes += self._writer.notes
        return self._writer
