"""A study's trials and state, folded from its ledger."""

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

from study import __version__
from study.errors import UserError
from study.home import ledger
from study.home.events import STATES, Closed, Event, Referenced, Stage, UnknownEventError, event_of
from study.home.line import Entry
from study.home.reducer import InvalidLedgerError, StudyState
from study.home.trial_record import BY_HAND, EVERY_CONFIGURATION, LARGEST, Epoch, TrialRecord, finite, infinite

__all__ = [
    "BY_HAND",
    "EVERY_CONFIGURATION",
    "LARGEST",
    "Epoch",
    "InvalidLedgerError",
    "StudyRecord",
    "TrialRecord",
    "finite",
    "infinite",
    "without_extensions",
]


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable garbage collection in the block: it would look again and again at a million new objects, all in use."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def is_tested(event: Referenced) -> bool:
    """Return whether the test split was read with a reference."""
    return any(name.startswith("test/") for name in event.metrics or ())


class StudyRecord(StudyState):
    """A study's trials and state, as its ledger tells."""

    @classmethod
    def load(cls, path: Path) -> "StudyRecord":
        """Read a ledger; raises as `told`.

        A study whose driver died without a word reads as interrupted, and so do its running trials.
        """
        record = cls.told(path)
        if record.state == "running" and not ledger.is_open(path):
            record.apply(Closed("interrupted"))
        return record

    def close_after_the_dead(self, opened: ledger.Ledger) -> None:
        """Write the end of a session whose driver died without a word, before anything else is written.

        Otherwise the time since its death would count as its work.

        Args:
            opened: the study's ledger, which nobody else writes.
        """
        if self.state == "running":
            self.apply(opened.append(Closed("interrupted")))

    @classmethod
    def told(cls, path: Path) -> "StudyRecord":
        """Return what a ledger says, also that a study runs whose driver may have died.

        Raises:
            UserError: it is damaged, or another version of this package wrote it.
        """
        tail, record, begin = ledger.Tail(path), cls(), 0
        try:
            with uncollected():
                for line in tail.new():
                    record.take(line)
                    begin = tail.offset
        except InvalidLedgerError as error:
            raise UserError(f"{path}: {error}. It stands at byte {begin}") from None
        if not begin:
            raise UserError(ledger.empty(path))
        return record

    @classmethod
    def fold(cls, entries: Iterable[Entry]) -> "StudyRecord":
        record = cls()
        for one in entries:
            record.take(one)
        return record

    def take(self, entry: Entry) -> Event:
        """Apply an event as it stands in the ledger, and return it.

        Raises:
            InvalidLedgerError: another version wrote it, or it cannot follow those before it.
        """
        try:
            event = event_of(entry)
        except UnknownEventError:
            raise self._foreign(f"{entry['event']!r}, which study {__version__} does not know") from None
        except ValueError as fault:
            raise self._unreadable(str(entry["event"]), str(fault)) from None
        self.apply(event)
        return event

    @property
    def heard(self) -> float:
        """Time of the last event of a driver that was at work."""
        return self._last

    @property
    def owner(self) -> str | None:
        """Owner of the study, whoever goes on with it; None before its first driver."""
        return self.sessions[0].owner if self.sessions else None

    def by_stage(self, *stages: Stage) -> Iterator[TrialRecord]:
        """Return the trials of these stages, by number."""
        if sum(map(len, self._stages.values())) != len(self.trials):  # in a record that was made with its trials
            return (trial for trial in list(self.trials.values()) if trial.stage in stages)
        found = [trial for stage in stages for trial in list(self._stages.get(stage, ()))]
        return iter(found if len(stages) == 1 else sorted(found, key=lambda trial: trial.number))

    def repeats_of(self, number: int, stage: Stage = "confirm") -> list[TrialRecord]:
        """Return the trials of a stage that repeat a trial's configuration."""
        return [trial for repeat in self._repeats.get(number, []) if (trial := self.trials[repeat]).stage == stage]

    def limit(self, planned: int) -> int:
        """Return how many configurations the search may try, of `planned` ones by its file."""
        return self.extended or planned

    @property
    def tried(self) -> int:
        """Number of configurations that were tried, the baseline's among them."""
        return sum(1 for _ in self.by_stage("baseline", "search"))

    def search_is_over(self, planned: int, asked_for: int = 0) -> bool:
        """Return whether the search tries nothing beyond what it has and so many configurations that were asked for.

        Args:
            planned: how many it may try by its file.
        """
        ended = self.ending or self.enough not in (None, "trials")  # for "trials" the numbers decide
        return ended or self.tried + asked_for >= self.limit(planned)

    def counts(self) -> dict[str, int]:
        """Return how many trials are in each state, in the order of a trial's life."""
        states = [trial.state for trial in list(self.trials.values())]
        return {state: states.count(state) for state in STATES}

    @property
    def test_readings(self) -> int:
        """Number of readings of the test split: by trials, in `report_test`'s epochs, by references, by evaluation."""
        referred = sum(is_tested(event) for event in list(self.references.values()))
        return sum(trial.test_readings for trial in list(self.trials.values())) + referred + self.evaluations

    def taken(self, key: Literal["cpu", "gpu"], planned: float) -> float:
        """Return the seconds of a CPU core or GPU that trials took, where the study file gives `planned` to each."""
        amounts = ((told.get(f"resources.{key}"), busy) for told, busy in self._busy)
        return sum((amount if isinstance(amount, int | float) else planned) * busy for amount, busy in amounts)


def without_extensions(record: StudyRecord) -> StudyRecord:
    """Return a record without what trials did once they were extended; the record itself where none was.

    So trials are compared at equally many epochs where the search is described. Its trials are shared with the record,
    and must not be changed.
    """
    if not record.lengthened:
        return record
    trials = {number: trial.searched for number, trial in record.trials.items()}
    return replace(record, trials=trials, lengthened=[])
