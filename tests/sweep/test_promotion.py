"""Successive halving by promotion against examples by hand."""

import pytest

from study.spec.objective import Score
from study.spec.schema import EarlyStopping as Rule
from study.sweep.promotion import Promotion
from study.sweep.rung_peers import ByDominance, ByValue, Peers, Standing


def promotion(reduction: int = 2, full: int = 1, epochs: int = 4) -> Promotion:
    """Rungs at 1 and 2."""
    rule = Rule(name="promotion", grace=1, reduction=reduction)
    return Promotion(rule, epochs, full, lambda: ByValue(reduction))


def reach(rule: Promotion, epoch: int, values: dict[int, float]) -> list[str]:
    """The verdicts of trials that reach an epoch one after the other."""
    return [rule.judge(trial, epoch, Score((value,), (value,))) for trial, value in values.items()]


def begin(rule: Promotion, count: int) -> None:
    for trial in range(count):
        rule.decided(trial, {})


def thaws(rule: Promotion, more: bool) -> list[int]:
    """All that go on, one after the other, and pause no more."""
    found: list[int] = []
    while (trial := rule.thaw(more)) is not None:
        rule.thawed(trial)
        found.append(trial)
    return found


def test_every_trial_pauses_at_its_rung_unless_it_would_go_on_at_once() -> None:
    rule = promotion()
    begin(rule, 5)
    assert reach(rule, 1, {0: 0.5, 1: 0.4, 2: 0.3, 3: 0.6}) == ["pause", "pause", "pause", "on"]
    # of two one may go on: 0; it has not when 3 comes, which is better
    assert rule.thaw(more=True) == 0
    assert reach(rule, 1, {0: 0.9, 3: 0.1}) == ["on", "on"], "heard again"
    rule.thawed(0)
    assert rule.thaw(more=True) is None, "two of four went on"


def test_the_highest_rung_comes_first_and_its_best() -> None:
    rule = promotion()
    begin(rule, 8)
    reach(rule, 1, {trial: 0.5 - trial / 10 for trial in range(5)})
    assert thaws(rule, more=True) == [0, 1]
    reach(rule, 1, {5: 0.06, 6: 0.05})
    assert rule.thaw(more=True) == 2, "of seven three may go on"
    assert reach(rule, 2, {0: 0.1, 1: 0.2}) == ["pause", "on"]
    assert reach(rule, 2, {2: 0.05, 7: 0.01}) == ["pause", "pause"]
    assert rule.thaw(more=True) == 0, "though 3 is among the best of the lower rung, too"


@pytest.mark.parametrize(("full", "expected"), [(1, [1]), (2, [1, 0]), (9, [1, 0, 2])])
def test_when_nothing_new_may_begin_the_best_of_the_highest_rung_run_in_full(full: int, expected: list[int]) -> None:
    rule = promotion(reduction=4, full=full)
    begin(rule, 3)
    reach(rule, 1, {0: 0.5, 1: 0.6, 2: 0.4})
    assert rule.thaw(more=True) is None
    assert thaws(rule, more=False) == expected


def test_a_trial_that_failed_or_was_stopped_does_not_count_as_one_that_ran_in_full() -> None:
    rule = promotion(reduction=4)
    begin(rule, 3)
    reach(rule, 1, {0: 0.5, 1: 0.6, 2: 0.4})
    assert thaws(rule, more=False) == [1]
    rule.ended(0, "pruned")
    rule.ended(1, "failed")
    assert thaws(rule, more=False) == [2]
    rule.ended(2, "complete")
    assert rule.thaw(more=False) is None


def test_a_trial_without_a_score_at_its_rung_pauses_at_the_next_epoch_that_has_one() -> None:
    rule = Promotion(Rule(name="promotion", grace=2, reduction=3), 20, 1, lambda: ByValue(3))
    assert [epoch for epoch in range(1, 20) if epoch in rule.pauses_at(0)] == [2, 6, 18]
    begin(rule, 2)
    assert reach(rule, 3, {0: 0.5}) == ["pause"]
    assert reach(rule, 2, {1: 0.5}) == ["pause"]


@pytest.mark.parametrize("make", [lambda: ByValue(2), lambda: ByDominance(2, 1)])
def test_the_best_of_a_rung_come_in_their_order(make: "type[Peers]") -> None:
    peers = make()
    for lot, gain in enumerate((0.3, 0.9, 0.3, 0.5)):
        peers.add(Standing((gain,), 0.0, lot / 10))
    assert list(peers.best(4)) == [1, 3, 0, 2], "of equal ones the first to come"
    assert list(peers.best(2)) == [1, 3]


def test_several_metrics_and_limits_are_compared_as_asha_does() -> None:
    """Dominated ones and those that miss a limit come last; of a front its ends first."""
    peers = ByDominance(2, 2)
    for lot, (gains, violation) in enumerate(
        (((0.5, 0.5), 0.0), ((0.4, 0.4), 0.0), ((0.9, 0.1), 0.0), ((0.1, 0.9), 0.0), ((0.99, 0.99), 0.2))
    ):
        peers.add(Standing(gains, violation, lot / 10))
    best = list(peers.best(5))
    assert set(best[:2]) == {2, 3}
    assert best[2:] == [0, 1, 4]
