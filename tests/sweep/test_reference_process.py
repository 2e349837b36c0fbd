"""What needs no search is fitted in a process of its own: once, failing alone, and heard by nobody who searches."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
from course import Course, outcome, prefixes, spec_of
from sklearn.linear_model import LogisticRegression

from study import data
from study.data.folds import select_fold
from study.home.events import ReferenceFitted
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger
from study.home.record import StudyRecord, finite_metrics, has_test_metrics
from study.ranking import Results
from study.spec import StudySpec
from study.spec.reference_models import requested_reference_names
from study.sweep.agenda import Agenda
from study.sweep.early_stopping import EarlyStopping
from study.sweep.reference_process import ReferenceFitter, fit_references, missing_references
from study.training import reference_fitting as fits

NAMES = ["majority", "logistic_regression", "logistic_regression_cell_balanced"]
ON = "search.references=true"
UNTESTED = "search.confirm={top: 0}"


@contextmanager
def session(folder: StudyFolder, spec: StudySpec) -> Iterator[tuple[ReferenceFitter, Agenda]]:
    """What fits references for a driver of a study."""
    record = StudyRecord.load_without_closing(folder.ledger_file)
    with closing(Ledger(folder.ledger_file)) as ledger:
        agenda = Agenda(spec, ledger, record, EarlyStopping(spec))
        with closing(ReferenceFitter(agenda, folder)) as found:
            yield found, agenda


def no_word(text: str) -> None:
    """Who is told nothing."""


def told(folder: StudyFolder) -> StudyRecord:
    return StudyRecord.load(folder.ledger_file)


def test_the_search_goes_as_it_would_without(tmp_path: Path) -> None:
    """Neither sampler nor early stopping hears of them; a study that was cut anywhere goes on as one that was not."""

    class Referring(Course):
        def _step(self, work: list[object]) -> bool:
            for place, name in enumerate(NAMES):
                if len(self.record.trials) > 2 * place and name not in self.record.reference_events:
                    self.agenda.append_event(ReferenceFitted(name, {"val/accuracy": 0.99}, 1.0))
            return super()._step(work)

    plain = Course(tmp_path / "plain.jsonl", spec_of()).play()
    whole = Referring(tmp_path / "whole.jsonl", spec_of(ON)).play()
    assert outcome(whole.record) == outcome(plain.record)
    assert list(whole.record.reference_events) == NAMES
    assert Results(whole.spec, whole.record).reference_as_result
    assert Results(plain.spec, plain.record).reference_as_result is None
    kept = prefixes(whole)
    for count in range(1, len(kept), 7):
        (tmp_path / f"{count}.jsonl").write_bytes(kept[count])
        resumed = Referring(tmp_path / f"{count}.jsonl", spec_of(ON)).play()
        assert outcome(resumed.record) == outcome(whole.record), f"cut after line {count + 1}"
        assert list(resumed.record.reference_events) == NAMES


def test_a_process_fits_them_and_each_is_an_event(tmp_path: Path) -> None:
    spec = spec_of(ON)
    folder = Home(tmp_path).create_study(spec)
    with session(folder, spec) as (found, agenda):
        said: list[str] = []
        found.wait_until_fitted(said.append)
        assert said == [f"fitting what needs no search: {', '.join(NAMES)}"]
        assert missing_references(spec, agenda.record) == []
    record = told(folder)
    assert list(record.reference_events) == NAMES == list(requested_reference_names(spec))
    assert record.trials == {}
    assert record.n_test_readings == 3
    dataset = data.load(spec.trial_data_sections[0])
    rows = {name: fits.ReferenceRows.from_split(split, dataset.facts) for name, split in dataset.splits.items()}
    for name, event in record.reference_events.items():
        model = fits.fit_reference(name, rows["train"], spec.seed)
        here = fits.measure_reference(model, {split: rows[split] for split in ("val", "test")}, spec.seed)
        assert event.metrics == pytest.approx(
            finite_metrics(here), abs=1e-6, nan_ok=True
        )  # the loss of a sure error has no end
        assert event.reason is None
        assert event.seconds
    with session(folder, spec) as (again, _):
        assert again._process is None, "nothing is fitted twice"


def test_a_study_that_stops_waits_for_none_and_says_nothing_of_them(tmp_path: Path) -> None:
    spec = spec_of(ON)
    with session(Home(tmp_path).create_study(spec), spec) as (found, agenda):
        agenda.stopping = "interrupted"
        said: list[str] = []
        found.wait_until_fitted(said.append)
        assert said == []


@pytest.mark.slow
def test_a_driver_that_is_killed_fits_the_others_next_time(tmp_path: Path) -> None:
    spec = spec_of(ON, UNTESTED)
    folder = Home(tmp_path).create_study(spec)
    with closing(Ledger(folder.ledger_file)) as ledger:
        ledger.append(ReferenceFitted("logistic_regression", {"val/accuracy": 0.5}, 1.0))
    with session(folder, spec) as (found, agenda):
        assert missing_references(spec, agenda.record) == ["majority", "logistic_regression_cell_balanced"]
        found.wait_until_fitted(no_word)
    record = told(folder)
    assert sorted(record.reference_events) == sorted(NAMES)
    assert record.reference_events["logistic_regression"].metrics == {"val/accuracy": 0.5}
    assert not any(map(has_test_metrics, record.reference_events.values())), (
        "as the test split is not read for the baseline"
    )


@pytest.mark.slow
def test_what_a_stop_cuts_off_has_no_event(tmp_path: Path) -> None:
    spec = spec_of(ON)
    folder = Home(tmp_path).create_study(spec)
    with session(folder, spec) as (found, agenda):
        agenda.stopping = "interrupted"
        found.wait_until_fitted(no_word)
        process = found._process
    assert process is not None
    assert process.poll() is not None
    assert missing_references(spec, told(folder)) == [
        name for name in NAMES if name not in told(folder).reference_events
    ]


def test_test_is_read_once_confirming_was_asked_for_later(tmp_path: Path) -> None:
    spec, record = spec_of(ON, UNTESTED), StudyRecord()
    record.reference_events = {name: ReferenceFitted(name, {"val/accuracy": 0.5}, 1.0) for name in NAMES[:2]}
    record.reference_events[NAMES[2]] = ReferenceFitted(NAMES[2], reason="no memory")
    assert missing_references(spec, record) == []
    record.confirm_request = (2, 3, False)
    assert missing_references(spec, record) == NAMES[:2]
    record.reference_events[NAMES[0]] = ReferenceFitted(NAMES[0], {"val/accuracy": 0.5, "test/accuracy": 0.4}, 1.0)
    assert missing_references(spec, record) == NAMES[1:2]
    assert record.n_test_readings == 1


def test_one_that_cannot_be_fitted_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(train: fits.ReferenceRows, seed: int) -> object:
        raise MemoryError("no room for\nthat")

    monkeypatch.setattr(fits, "REFERENCE_FITTERS", {**fits.REFERENCE_FITTERS, "logistic_regression": fails})
    found: list[ReferenceFitted] = []
    fit_references(spec_of(ON), False, NAMES, found.append)
    assert [event.name for event in found] == NAMES
    assert [event.reason is None for event in found] == [True, False, True]
    assert "no room for" in (found[1].reason or "")
    assert "\n" not in (found[1].reason or "")


@pytest.mark.slow
def test_a_process_that_dies_says_how_and_the_study_goes_on(tmp_path: Path) -> None:
    spec = spec_of(ON)
    folder = Home(tmp_path).create_study(spec)
    with session(folder, spec) as (found, agenda):
        assert found._process
        found._process.send_signal(signal.SIGKILL)
        found.wait_until_fitted(no_word)
        assert {event.reason for event in agenda.record.reference_events.values()} == {"its process ended with -9"}
        assert agenda.stopping is None
    assert missing_references(spec, told(folder)) == []


def test_a_process_that_cannot_begin_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_of(ON)
    folder = Home(tmp_path).create_study(spec)
    monkeypatch.setattr("study.sweep.reference_process.FITTING_PROGRAM", "raise ImportError('no such module')")
    with session(folder, spec) as (found, agenda):
        found.wait_until_fitted(no_word)
        reasons = {event.reason for event in agenda.record.reference_events.values()}
    assert reasons == {"its process ended with 1: ImportError: no such module"}


@pytest.mark.slow
def test_the_process_ends_with_its_driver(tmp_path: Path) -> None:
    spec = spec_of(ON)
    folder = Home(tmp_path).create_study(spec)
    driver = """
import sys, time
from pathlib import Path
from study.home.folder import StudyFolder
from study.sweep import reference_process
class A: pass
folder = StudyFolder(Path(sys.argv[1]))
agenda = A(); agenda.spec = folder.load_spec(); agenda.record = reference_process.StudyRecord()
print(reference_process.ReferenceFitter(agenda, folder)._process.pid, flush=True)
time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", driver, str(folder.path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    pid = int(process.stdout.readline())
    wait_for(lambda: ready(pid))
    process.kill()
    process.wait()
    process.stdout.close()
    wait_for(lambda: not alive(pid))


def ready(pid: int) -> bool:
    """Whether it is beyond its first lines, where it asks to end with its parent; 5 is how nice it is then."""
    return not alive(pid) or os.getpriority(os.PRIO_PROCESS, pid) >= 5


def alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return False


def wait_for(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_with_folds_each_sample_is_judged_by_a_model_that_was_not_fitted_to_it() -> None:
    spec = spec_of(ON, UNTESTED, "data.val=biased", "data.folds=3")
    found: list[ReferenceFitted] = []
    fit_references(spec, True, NAMES[1:2], found.append)
    (event,) = found
    dataset = data.load(spec.trial_data_sections[0])
    assert dataset.folds
    right, tested = [], []
    for fold in range(3):
        part = select_fold(dataset, fold)
        rows = {name: fits.ReferenceRows.from_split(each, part.facts) for name, each in part.splits.items()}
        model = LogisticRegression(max_iter=200).fit(rows["train"].inputs, rows["train"].target)
        right += (model.predict(rows["val"].inputs) == rows["val"].target).tolist()
        tested.append(model.score(rows["test"].inputs, rows["test"].target))
    assert event.metrics
    assert len(right) == len(dataset.folds.non_test_samples)
    assert event.metrics["val/accuracy"] == pytest.approx(np.mean(right), abs=1e-12)
    assert event.metrics["test/accuracy"] == pytest.approx(np.mean(tested), abs=1e-12)
    assert event.draws
    assert np.std(event.draws["val/accuracy"], ddof=1) == pytest.approx(
        event.metrics["val/accuracy_standard_error"], rel=1e-3
    )
