"""ASHA against an example by hand."""

import pytest
from helpers import quickstart

from study.spec import StudySpec
from study.sweep.early_stopping import EarlyStopping, early_stopping


def spec_of(epochs: int = 9, grace: int = 1, reduction: int = 3, metric: str = "val/accuracy") -> StudySpec:
    rule = f"search.early_stopping={{name: asha, grace: {grace}, reduction: {reduction}}}"
    return quickstart(f"train.epochs={epochs}", f"search.metric={metric}", rule)


def heard(rule: EarlyStopping, epoch: int, values: list[float]) -> list[bool]:
    """Which of the trials 0, 1 ... stop, that reach an epoch one after the other."""
    return [rule.stops(trial, epoch, value) for trial, value in enumerate(values)]


VALUES = [0.5, 0.6, 0.4, 0.55, 0.45, 0.7, 0.65]
STOPS = [False, False, True, False, True, False, False]
"""By hand, reduction 2: a value stops below the median of those before it.

before 0.6: 0.5; before 0.4: 0.55; before 0.55: 0.5; before 0.45: 0.525; before 0.7: 0.5; before 0.65: 0.525
"""


def test_the_example_by_hand() -> None:
    assert heard(early_stopping(spec_of(reduction=2)), 1, VALUES) == STOPS


def test_where_less_is_better_it_is_the_mirror_image() -> None:
    rule = early_stopping(spec_of(reduction=2, metric="val/equalized_odds"))
    assert heard(rule, 1, [1 - value for value in VALUES]) == STOPS


def test_a_third_goes_on_where_reduction_is_three() -> None:
    """The cut is two thirds of the way up the values before, interpolated."""
    rule = early_stopping(spec_of(reduction=3))
    assert heard(rule, 1, [0.1, 0.2, 0.3, 0.4]) == [False] * 4
    # before: 0.1 0.2 0.3 0.4; two thirds of the way from 0.1 to 0.4 is 0.3
    assert rule.stops(4, 1, 0.299)
    # before: 0.1 0.2 0.299 0.3 0.4; place 4 * 2/3 = 2.667 is 0.299667
    assert not rule.stops(5, 1, 0.2997)


@pytest.mark.parametrize(("epochs", "grace", "rungs"), [(9, 1, [1, 3]), (20, 4, [4, 12]), (8, 9, []), (10, 2, [2, 6])])
def test_trials_stop_at_rungs_alone(epochs: int, grace: int, rungs: list[int]) -> None:
    rule = early_stopping(spec_of(epochs, min(grace, epochs), 3))
    good = [rule.stops(0, epoch, 0.9) for epoch in range(1, epochs)]
    assert not any(good)
    bad = {epoch for epoch in range(1, epochs) if rule.stops(epoch, epoch, 0.1)}
    assert min(bad, default=None) == min(rungs, default=None)
    rule = early_stopping(spec_of(epochs, min(grace, epochs), 3))
    for trial, high in enumerate((0.5, 0.6)):
        for epoch in range(1, epochs):
            rule.stops(trial, epoch, high)
    assert [epoch for epoch in range(1, epochs) if rule.stops(2, epoch, 0.1)] == rungs


def test_rungs_are_compared_each_for_itself() -> None:
    rule = early_stopping(spec_of(reduction=3))
    assert heard(rule, 1, [0.5, 0.6]) == [False, False]
    assert not rule.stops(0, 3, 0.55)
    assert not rule.stops(1, 3, 0.56)
    assert rule.stops(2, 1, 0.55)


def test_hearing_a_rung_twice_changes_nothing() -> None:
    once, twice = early_stopping(spec_of(reduction=2)), early_stopping(spec_of(reduction=2))
    for trial, value in enumerate(VALUES):
        assert once.stops(trial, 1, value) == twice.stops(trial, 1, value) == STOPS[trial]
        assert not twice.stops(trial, 1, 0.0), "the second hearing neither stops"
    assert once.stops(9, 1, 0.53) == twice.stops(9, 1, 0.53)
    assert once.stops(10, 1, 0.56) == twice.stops(10, 1, 0.56)


def test_the_order_in_which_ended_trials_are_told_does_not_change_the_next_cut() -> None:
    forth, back = early_stopping(spec_of(reduction=2)), early_stopping(spec_of(reduction=2))
    heard(forth, 1, VALUES)
    for trial in reversed(range(len(VALUES))):
        back.stops(trial, 1, VALUES[trial])
    for place, value in enumerate((0.54, 0.56, 0.549, 0.551)):
        assert forth.stops(20 + place, 1, value) == back.stops(20 + place, 1, value)


def test_without_a_rule_every_trial_runs_in_full() -> None:
    rule = early_stopping(quickstart("search.early_stopping={}"))
    assert rule.name == "none"
    assert not any(rule.stops(trial, epoch, 0.0) for trial in range(5) for epoch in range(1, 20))
