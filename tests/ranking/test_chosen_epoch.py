"""At which epoch a trial is taken, and with which values."""

import json
import math
from statistics import fmean
from typing import Any

import pytest
from helpers import Told, quickstart, record
from hypothesis import given
from hypothesis import strategies as st

from study import ranking
from study.home.record import EpochMetrics, TrialRecord
from study.ranking import Results, SeedStatistics
from study.ranking.chosen_epoch import (
    LAST_EPOCH_TEXT,
    BestEpochTracker,
    iter_scores_if_ended,
    metric_at_chosen_epoch,
    metrics_at_chosen_epoch,
)
from study.ranking.study_summary import BEST_ON_TEST_TEXT, metrics_at_other_epochs
from study.spec.constraints import MetricConstraint
from study.spec.objective import Objective

UP = Objective(("val/accuracy",), ("max",), (), 1)
NUMBERS = st.floats(-1, 1) | st.sampled_from([0.0, 0.25, 0.5])
COURSES = st.lists(st.none() | NUMBERS, min_size=1, max_size=12)


def trial(*values: float | None, **further: list[float | None]) -> TrialRecord:
    names = {"val/accuracy": values, **{f"val/{name}": column for name, column in further.items()}}
    reports = [
        EpochMetrics(epoch, {name: column[epoch - 1] for name, column in names.items()})
        for epoch in range(1, len(values) + 1)
    ]
    return TrialRecord(0, "search", {}, 0, state="complete", reports=reports)


def smooth(window: int, *limits: MetricConstraint) -> Objective:
    return Objective(("val/accuracy",), ("max",), limits, window)


def slow(values: list[float | None], gaps: list[float | None], window: int, limit: float | None) -> tuple[int, Any]:
    """The same choice, spelled out: all windows, sorted by violation, then value, then epoch."""
    width = min(window, len(values))
    rivals = []
    for epoch in range(width, len(values) + 1):
        part, gap = values[epoch - width : epoch], gaps[epoch - width : epoch]
        if None not in part and (limit is None or None not in gap):
            missed = 0.0 if limit is None else max(0.0, fmean(gap) - limit)  # type: ignore[type-var]
            rivals.append((missed, -fmean(part), epoch))  # type: ignore[type-var]
    if not rivals:
        return len(values), None
    _, negative, epoch = min(rivals)
    return epoch, -negative


@given(COURSES, st.integers(1, 6), st.none() | NUMBERS, st.data())
def test_the_choice_is_that_of_a_slow_search(
    values: list[float | None], window: int, limit: float | None, data: st.DataObject
) -> None:
    gaps = data.draw(st.lists(st.none() | NUMBERS, min_size=len(values), max_size=len(values)))
    limits = () if limit is None else (MetricConstraint("val/gap", "<=", limit),)
    goal, told = smooth(window, *limits), trial(*values, gap=gaps)
    epoch, value = slow(values, gaps, window, limit)
    score = ranking.mean_score(goal, [told])
    assert (score and score.values[0]) == value
    if value is not None:
        assert metrics_at_chosen_epoch(goal, told)["epoch"] == epoch


@pytest.mark.slow
@given(st.lists(NUMBERS, min_size=1, max_size=12))
def test_a_window_of_one_is_the_first_best_epoch(values: list[float]) -> None:
    chosen = metrics_at_chosen_epoch(UP, trial(*values))
    assert (chosen["val/accuracy"], chosen["epoch"]) == (max(values), values.index(max(values)) + 1)


@given(st.lists(st.integers(-8, 8), min_size=1, max_size=12))
def test_another_scale_chooses_the_same_epoch(whole: list[int]) -> None:
    """Any that keeps the order where nothing is smoothed, any line where it is; turned round, the least is best."""
    stretched = trial(*(math.exp(value) for value in whole))
    assert (
        metrics_at_chosen_epoch(UP, stretched)["epoch"]
        == metrics_at_chosen_epoch(UP, trial(*map(float, whole)))["epoch"]
    )
    # sums of small whole numbers are exact
    expected = metrics_at_chosen_epoch(smooth(4), trial(*map(float, whole)))["epoch"]
    assert metrics_at_chosen_epoch(smooth(4), trial(*(8.0 * value + 3 for value in whole)))["epoch"] == expected
    down = Objective(("val/accuracy",), ("min",), (), 4)
    assert metrics_at_chosen_epoch(down, trial(*(-float(value) for value in whole)))["epoch"] == expected


@given(COURSES, st.integers(1, 6), st.integers(0, 12))
def test_a_choice_goes_on_from_its_kept_state(values: list[float | None], window: int, cut: int) -> None:
    reports, goal = trial(*values).reports, smooth(window, MetricConstraint("val/accuracy", "<=", 0.3))
    whole, first = BestEpochTracker(goal), BestEpochTracker(goal)
    heard = [whole.update(report) for report in reports]
    before = [first.update(report) for report in reports[:cut]]
    again = BestEpochTracker(goal)
    again.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert [*before, *(again.update(report) for report in reports[cut:])] == heard
    assert (again.chosen_epoch, again.chosen_score, again.n_reports) == (
        whole.chosen_epoch,
        whole.chosen_score,
        whole.n_reports,
    )


@given(COURSES, st.none() | st.integers(1, 6))
def test_each_epoch_is_scored_as_if_the_trial_had_ended_there(values: list[float | None], window: int | None) -> None:
    goal = Objective(("val/accuracy",), ("max",), (), window)
    told = trial(*values)
    each = {cut: ranking.mean_score(goal, [trial(*values[:cut])]) for cut in range(1, len(values) + 1)}
    assert dict(iter_scores_if_ended(goal, told.reports)) == {epoch: score for epoch, score in each.items() if score}


def test_one_lucky_epoch_does_not_win() -> None:
    told = trial(0.1, 0.9, 0.1, 0.5, 0.5, 0.5, 0.4)
    assert metrics_at_chosen_epoch(UP, told)["epoch"] == 2
    chosen = metrics_at_chosen_epoch(smooth(3), told)
    assert (chosen["epoch"], chosen["val/accuracy"]) == (4, 0.5), "(0.9 + 0.1 + 0.5) / 3, as early as it comes to 0.5"
    chosen = metrics_at_chosen_epoch(smooth(4), told)
    assert chosen == {"epoch": 5, "val/accuracy": pytest.approx(0.5)}
    assert metrics_at_chosen_epoch(smooth(9), told)["epoch"] == 7, "shorter than the window: all of it"


def test_what_is_not_a_number_is_never_chosen() -> None:
    worker = BestEpochTracker(UP)
    assert [worker.update({"val/accuracy": value}) for value in (math.nan, 0.2, math.inf, 0.1)] == [
        True,
        True,
        False,
        False,
    ]
    assert worker.chosen_epoch == 2
    assert ranking.mean_score(UP, [trial(None, None)]) is None


def test_of_several_metrics_the_first_chooses() -> None:
    goal = Objective(("val/gap", "val/accuracy"), ("min", "max"), (), 1)
    score = ranking.mean_score(goal, [trial(0.9, 0.8, 0.95, gap=[0.3, 0.1, 0.2])])
    assert score is not None
    assert score.values == (0.1, 0.8)


def test_other_metrics_are_means_over_the_same_epochs_and_final_ones_as_they_are() -> None:
    told = trial(0.2, 0.6, 0.4, 0.1, loss=[1.0, 2.0, 4.0, 8.0])
    told.reports[-1] = EpochMetrics(4, {"val/accuracy": 0.1, "val/loss": 8.0, "val/knn_accuracy": 0.7})
    chosen = metrics_at_chosen_epoch(smooth(2), told)
    assert chosen == {"epoch": 3, "val/accuracy": 0.5, "val/loss": 3.0, "val/knn_accuracy": 0.7}


def test_a_further_epoch_is_looked_at() -> None:
    told = trial(0.2, 0.1)
    assert metric_at_chosen_epoch(UP, told, "val/accuracy") == 0.2
    told.reports.append(EpochMetrics(3, {"val/accuracy": 0.3}))
    assert metric_at_chosen_epoch(UP, told, "val/accuracy") == 0.3
    del told.reports[1:]
    assert metric_at_chosen_epoch(UP, told, "val/accuracy") == 0.2
    told.reports.clear()
    assert metrics_at_chosen_epoch(UP, told) == {}


def test_each_trial_is_taken_at_its_own_epoch_and_each_rule_chooses_its_own() -> None:
    trials = [trial(0.9, 0.1, gap=[0.5, 0.2]), trial(0.2, 0.7, gap=[0.1, 0.4])]
    by_accuracy, by_gap = (ranking.mean_score(goal, trials) for goal in (UP, Objective(("val/gap",), ("min",), (), 1)))
    assert by_accuracy is not None
    assert by_gap is not None
    assert (by_accuracy.values, by_gap.values) == ((0.8,), (pytest.approx(0.15),))


def test_a_study_ranks_by_the_epoch_that_it_asks_for() -> None:
    told = record(Told("search", [0.5, 0.5, 0.2]), Told("search", [0.1, 0.3, 0.4]))
    for assignments, best in (((), 1), (("search.epoch=best", "search.epoch_window=1"), 0)):
        found = Results(quickstart("search.confirm={top: 0}", *assignments), told).best
        assert found is not None
        assert found.trial.number == best


def test_beside_stand_the_last_epoch_and_the_best_on_the_test_split() -> None:
    told = trial(0.5, 0.9, 0.2)
    for place, (report, test) in enumerate(zip(told.reports, (0.6, 0.3, 0.4), strict=True)):
        told.reports[place] = EpochMetrics(place + 1, {"val/accuracy": report["val/accuracy"], "test/accuracy": test})
    best = quickstart("search.epoch=best")
    assert metrics_at_other_epochs(best, [told]) == {
        LAST_EPOCH_TEXT: {"val/accuracy": SeedStatistics(0.2, None, 1), "test/accuracy": SeedStatistics(0.4, None, 1)},
        BEST_ON_TEST_TEXT: {"test/accuracy": SeedStatistics(0.6, None, 1)},
    }
    assert metrics_at_other_epochs(quickstart(), [trial(0.5, 0.9)]) == {}
