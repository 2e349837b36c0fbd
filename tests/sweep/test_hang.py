"""Which trials hang: by the study's usual epoch, and only while the driver itself was awake."""

import pytest
from helpers import Told, record

from study.home.record import StudyRecord
from study.sweep import tune_adapters
from study.sweep.tune_adapters import HangDetector


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(tune_adapters.time, "monotonic", lambda: now[0])
    return now


def hangs_after(watch: HangDetector, clock: list[float], most: float = 2000.0) -> float:
    """Seconds of silence until the trial `a`, which is looked at every second, is told."""
    began = clock[0]
    while not watch.find_hanging_trials(["a"]):
        clock[0] += 1.0
        assert clock[0] - began < most
    return clock[0] - began


def test_nothing_is_known_at_first(clock: list[float]) -> None:
    """Ten minutes to begin, and for the first epoch."""
    watch = HangDetector(None, StudyRecord(), last=5)
    assert hangs_after(watch, clock) == 601
    watch.note_report("a")
    assert hangs_after(watch, clock) == 601


@pytest.mark.parametrize(("epoch", "limit"), [(1.0, 61), (30.0, 301)])
def test_ten_usual_epochs_and_a_minute_at_least(clock: list[float], epoch: float, limit: int) -> None:
    watch = HangDetector(None, StudyRecord(), last=5)
    for number, seconds in enumerate([epoch, epoch, 500.0], start=1):
        watch.note_report("a", number, seconds)
    assert hangs_after(watch, clock) == limit


def test_the_last_epoch_may_take_longer(clock: list[float]) -> None:
    watch = HangDetector(None, StudyRecord(), last=5)
    watch.note_report("a", 4, 1.0)
    assert hangs_after(watch, clock) == 601


def test_a_limit_that_is_given_is_the_limit(clock: list[float]) -> None:
    watch = HangDetector(7.0, StudyRecord(), last=5)
    watch.note_report("a", 4, 100.0)
    assert hangs_after(watch, clock) == 8


def test_a_trial_is_told_once_and_may_come_back(clock: list[float]) -> None:
    watch = HangDetector(7.0, StudyRecord(), last=5)
    hangs_after(watch, clock)
    clock[0] += 3.0
    assert watch.find_hanging_trials(["a"]) == []
    assert watch.find_hanging_trials([]) == []
    assert hangs_after(watch, clock) == 8


def test_time_in_which_the_driver_slept_does_not_count(clock: list[float]) -> None:
    watch = HangDetector(100.0, StudyRecord(), last=5)
    assert watch.find_hanging_trials(["a"]) == []
    clock[0] += 5000.0
    assert watch.find_hanging_trials(["a"]) == []
    assert hangs_after(watch, clock) == 96


def test_who_reports_does_not_hang(clock: list[float]) -> None:
    watch = HangDetector(7.0, StudyRecord(), last=100)
    for epoch in range(1, 50):
        clock[0] += 5.0
        watch.note_report("a", epoch, 5.0)
        assert watch.find_hanging_trials(["a", "b"]) == (["b"] if epoch == 3 else [])


def test_several_kinds_of_cards_have_a_usual_epoch_each(clock: list[float]) -> None:
    """A slow card's trials do not hang by a fast one's epoch, and a fast card's are not waited for by a slow one's."""
    watch = HangDetector(None, StudyRecord(), last=9)
    for number in range(1, 4):
        watch.note_report("slow", number, 100.0, "T4")
    for _ in range(50):
        for number in range(1, 4):
            watch.note_report("fast", number, 10.0, "H100")
    watch.note_report("a", 3, 10.0, "H100")
    assert hangs_after(watch, clock) == 101
    watch.note_report("a", 3, 100.0, "T4")
    assert hangs_after(watch, clock) == 1001
    watch.note_report("a", 3, None, "L40S")  # as long as the slowest, of which the study knows
    assert hangs_after(watch, clock) == 1001


def test_a_resumed_study_knows_its_kinds_of_cards(clock: list[float]) -> None:
    known = record(*(Told("search", [seconds] * 3, metric="time/epoch") for seconds in (100.0, 10.0)))
    known.trials[0].device, known.trials[1].device = {"name": "T4"}, {"name": "H100"}
    watch = HangDetector(None, known, last=9)
    watch.note_report("a", 3, None, "H100")
    assert hangs_after(watch, clock) == 101
