"""A study's trials and state, folded from its ledger."""

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from study import __version__
from study.errors import UserError
from study.home import events, ledger
from study.home.ledger_line import Entry
from study.home.reducer import InvalidLedgerError, StudyState
from study.home.trial_record import (
    MAX_METRIC_MAGNITUDE,
    SPACE_EXHAUSTED_REASON,
    STOPPED_BY_USER_REASON,
    EpochMetrics,
    TrialRecord,
    finite_metrics,
    infinite_metrics_note,
)
from study.text import pluralise

__all__ = [
    "MAX_METRIC_MAGNITUDE",
    "SPACE_EXHAUSTED_REASON",
    "STOPPED_BY_USER_REASON",
    "EpochMetrics",
    "InvalidLedgerError",
    "StudyRecord",
    "TrialRecord",
    "finite_metrics",
    "infinite_metrics_note",
]


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Disable garbage collection in the block: it would look again and again at a million new objects, all in use."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def has_test_metrics(event: events.ReferenceFitted) -> bool:
    """Return whether the test split was read with a reference."""
    return any(name.startswith("test/") for name in event.metrics or ())


class StudyRecord(StudyState):
    """A study's trials and state, as its ledger tells."""

    @classmethod
    def load(cls, path: Path) -> "StudyRecord":
        """Read a ledger; raises as `load_without_closing`.

        A study whose driver died without a word reads as interrupted, and so do its running trials.
        """
        record = cls.load_without_closing(path)
        if record.state == "running" and not ledger.is_driver_running(path):
            record.apply(events.SessionClosed("interrupted"))
        return record

    def close_dead_session(self, opened: ledger.Ledger) -> None:
        """Write the end of a session whose driver died without a word, before anything else is written.

        Otherwise the time since its death would count as its work.

        Args:
            opened: the study's ledger, which nobody else writes.
        """
        if self.state == "running":
            self.apply(opened.append(events.SessionClosed("interrupted")))

    @classmethod
    def load_without_closing(cls, path: Path) -> "StudyRecord":
        """Return what a ledger says word for word, also that a study runs whose driver may have died.

        Raises:
            UserError: it is damaged, or another version of this package wrote it.
        """
        tail, record, begin = ledger.LedgerTail(path), cls(), 0
        try:
            with without_garbage_collection():
                for line in tail.new_entries():
                    record.apply_entry(line)
                    begin = tail.offset
        except InvalidLedgerError as error:
            raise UserError(f"{path}: {error}. It stands at byte {begin}") from None
        if not begin:
            raise UserError(ledger.empty_ledger_message(path))
        return record

    @classmethod
    def from_entries(cls, entries: Iterable[Entry]) -> "StudyRecord":
        record = cls()
        for one in entries:
            record.apply_entry(one)
        return record

    def apply_entry(self, entry: Entry) -> events.Event:
        """Apply an event as it stands in the ledger, and return it.

        Raises:
            InvalidLedgerError: another version wrote it, or it cannot follow those before it.
        """
        try:
            event = events.entry_to_event(entry)
        except events.UnknownEventError:
            raise self._unknown_event_error(f"{entry['event']!r}, which study {__version__} does not know") from None
        except ValueError as fault:
            raise self._inconsistent_event_error(str(entry["event"]), str(fault)) from None
        self.apply(event)
        return event

    @property
    def last_event_time(self) -> float:
        """Time of the last event of a driver that was at work."""
        return self._last_event_time

    @property
    def owner(self) -> str | None:
        """Owner of the study, whoever goes on with it; None before its first driver."""
        return self.sessions[0].owner if self.sessions else None

    def trials_of_stages(self, *stages: events.Stage) -> Iterator[TrialRecord]:
        """Return the trials of these stages, by number."""
        n_applied = sum(map(len, self._trials_by_stage.values()))
        if n_applied != len(self.trials):  # in a record that was made with its trials
            return (trial for trial in list(self.trials.values()) if trial.stage in stages)
        found = [trial for stage in stages for trial in list(self._trials_by_stage.get(stage, ()))]
        return iter(found if len(stages) == 1 else sorted(found, key=lambda trial: trial.number))

    def find_trial(self, number: int, given_as: str, name: str) -> TrialRecord:
        """Return the trial of a number that a user gave.

        Args:
            given_as: how it was given, for the message: `--trial 99`.
            name: of the study.

        Raises:
            UserError: there is none; says which there are.
        """
        if number not in self.trials:
            there = f", {min(self.trials)} to {max(self.trials)}" if len(self.trials) > 1 else ""
            raise UserError(f"{given_as}: {name} has {pluralise(len(self.trials), 'trial')}{there}")
        return self.trials[number]

    def repeat_trials(self, number: int, stage: events.Stage = "confirm") -> list[TrialRecord]:
        """Return the trials of a stage that repeat a trial's configuration."""
        repeats = (self.trials[repeat] for repeat in self._repeats_by_trial.get(number, []))
        return [trial for trial in repeats if trial.stage == stage]

    def max_configurations(self, planned: int) -> int:
        """Return how many configurations the search may try, of `planned` ones by its file."""
        return self.extended_n_configurations or planned

    @property
    def n_configurations_tried(self) -> int:
        """Number of configurations that were tried, the baseline's among them."""
        return sum(1 for _ in self.trials_of_stages("baseline", "search"))

    def search_is_over(self, planned: int, asked_for: int = 0) -> bool:
        """Return whether the search tries nothing beyond what it has and so many configurations that were asked for.

        Args:
            planned: how many it may try by its file.
        """
        hit_limit = self.search_ended_by not in (None, "trials")  # for "trials" the numbers decide
        ended = self.has_search_end_request or hit_limit
        return ended or self.n_configurations_tried + asked_for >= self.max_configurations(planned)

    @property
    def first_failed_trial(self) -> TrialRecord | None:
        """The first trial that has failed, None if none has. A driver's thread may add trials meanwhile."""
        return next((trial for trial in list(self.trials.values()) if trial.state == "failed"), None)

    def trials_by_state(self) -> dict[str, int]:
        """Return how many trials are in each state, in the order of a trial's life."""
        states = [trial.state for trial in list(self.trials.values())]
        return {state: states.count(state) for state in events.TRIAL_STATES}

    @property
    def n_test_readings(self) -> int:
        """Number of readings of the test split: by trials, in `report_test`'s epochs, by references, by evaluation.

        A reference is fitted to each fold, and each of its models reads it.
        """
        trials = list(self.trials.values())
        folds = len({trial.fold for trial in trials} - {None}) or 1
        referred = folds * sum(has_test_metrics(event) for event in list(self.reference_events.values()))
        return sum(trial.n_test_readings for trial in trials) + referred + self.n_test_evaluations

    def device_seconds(self, key: Literal["cpu", "gpu"], planned: float) -> float:
        """Return the seconds of a CPU core or GPU that trials took, where the study file gives `planned` to each."""
        amounts = ((told.get(f"resources.{key}"), busy) for told, busy in self._run_seconds)
        return sum((amount if isinstance(amount, int | float) else planned) * busy for amount, busy in amounts)
