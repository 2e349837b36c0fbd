"""Whatever happened to a study, its driver, whoever reads its ledger, and MLflow tell the same of it."""

from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from event_stories import next_event
from helpers import quickstart
from hypothesis import given
from hypothesis import strategies as st

from study.home.events import ENDED_STATES, SessionClosed
from study.home.ledger import Ledger, LedgerTail, read_entries
from study.home.ledger_line import Entry
from study.home.record import StudyRecord
from study.tracking.mlflow_runs import RunUpdate
from study.tracking.runs_from_events import RUN_STATUS_BY_OUTCOME, EventTranslator
from study.tracking.tracking_state import TrackingState

SPEC = quickstart("train.epochs=3", "search.early_stopping={}")
SEEDS = st.integers(0, 2**64)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stories")


def driven(place: Path, seed: int) -> tuple[Path, StudyRecord]:
    """A new ledger that a driver wrote by chance, and what it has then."""
    random, path = Random(seed), place / f"{seed}.jsonl"
    path.unlink(missing_ok=True)
    Ledger.create(path)
    record = StudyRecord.load_without_closing(path)
    with closing(Ledger(path)) as ledger:
        for second in range(random.randrange(1, 80)):
            event = next_event(random, record, 2e9 + second)
            ledger.append(event)
            record.apply(event)
    return path, record


def plain(entries: list[Entry]) -> dict[int, tuple[str, int, int]]:
    """State, epochs and attempt of each trial, read from the entries without a record."""
    told: dict[int, tuple[str, int, int]] = {}
    for entry in entries:
        kind, number = entry["event"], entry.get("trial")
        for one in entry["trials"] if kind == "retried" else ():
            told[one] = ("waiting", 0, told[one][2] + 1)
        if kind == "closed":
            states = {"running": "interrupted"}
            told = {one: (states.get(state, state), *rest) for one, (state, *rest) in told.items()}
        _, epochs, attempt = told.get(number, ("", 0, 0))
        changed = {
            "trial": ("waiting", 0, 0),
            "started": ("running", min(epochs, entry.get("epoch", 0)), attempt),
            "report": ("running", epochs + 1, attempt),
            "lost": ("waiting", epochs, entry.get("attempt")),
            "ended": (entry.get("state"), epochs, attempt),
        }
        told |= {number: changed[kind]} if kind in changed else {}
    return told


@given(SEEDS)
def test_a_reader_has_what_the_driver_has(place: Path, seed: int) -> None:
    path, driver = driven(place, seed)
    assert StudyRecord.load_without_closing(path) == driver
    assert {one.number: (one.state, one.n_epochs, one.attempt) for one in driver.trials.values()} == plain(
        read_entries(path)
    )
    if driver.state == "running":
        driver.apply(SessionClosed("interrupted"))
    assert StudyRecord.load(path) == driver


@given(SEEDS)
def test_a_ledger_that_was_cut_off_anywhere_is_what_its_whole_lines_say(place: Path, seed: int) -> None:
    """And what comes behind the cut is told as if it had not been there."""
    path, driver = driven(place, seed)
    whole, entries = path.read_bytes(), read_entries(path)
    first = whole.index(b"\n") + 1
    path.write_bytes(whole[: Random(seed).randrange(first, len(whole) + 1)])
    cut = StudyRecord.load_without_closing(path)
    tail = LedgerTail(path)
    count = len(list(tail.new_entries()))
    assert cut == StudyRecord.from_entries(entries[:count])
    for entry in entries[count:]:
        cut.apply_entry(entry)
    assert cut == driver


@given(SEEDS)
def test_mlflow_has_what_the_driver_has_however_it_was_brought(place: Path, seed: int) -> None:
    """In one piece, or in several with another writer behind each."""
    path, driver = driven(place, seed)
    random, entries = Random(seed), read_entries(path)
    whole, pieces, progress = Runs(), Runs(), TrackingState("")
    whole.take(EventTranslator(SPEC, TrackingState(""), StudyRecord()).translate(entries))
    done = 0
    while done < len(entries):
        upto = random.randrange(done, len(entries)) + 1
        pieces.take(
            EventTranslator(SPEC, progress, StudyRecord.from_entries(entries[:done])).translate(entries[done:upto])
        )
        progress.runs |= {key: key for key in pieces.runs}
        done = upto
    assert pieces.runs == whole.runs
    for trial in driver.trials.values():
        if str(trial.number) not in whole.runs:
            assert trial.started_at is None
            assert trial.state in ("waiting", "interrupted")
            continue
        run, reported = whole.runs[str(trial.number)], [one["val/accuracy"] for one in trial.reports]
        if trial.state in ENDED_STATES or trial.state == "interrupted":
            assert run.status == RUN_STATUS_BY_OUTCOME[trial.state]
        elif trial.state == "running":
            assert run.status in (None, "RUNNING")
        told = {point.step for point in run.metric_values if point.name == "val/accuracy"}
        assert {epoch for epoch, value in enumerate(reported, 1) if value is not None} <= told


class Runs:
    """The runs that changes make."""

    def __init__(self) -> None:
        self.runs: dict[str, RunUpdate] = {}

    def take(self, changes: list[RunUpdate]) -> None:
        for change in changes:
            run = self.runs.setdefault(change.run_key, RunUpdate(change.run_key, parent_key=change.parent_key))
            run.tags = {
                name: value for name, value in (run.tags | change.tags).items() if name not in change.removed_tags
            }
            run.params |= change.params
            run.metric_values += change.metric_values
            run.name, run.new_name = change.name or run.name, change.new_name or run.new_name
            run.start_ms = change.start_ms or run.start_ms
            if change.status:
                run.status, run.end_ms = change.status, change.end_ms
