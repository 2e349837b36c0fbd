"""Which configurations a user's wishes mean."""

from typing import Any

import pytest
from helpers import Told, quickstart, record
from hypothesis import given
from hypothesis import strategies as st

from study.errors import UserError
from study.home.record import EpochMetrics
from study.ranking import Results
from study.ranking.candidate_selection import CandidateSelection, select_candidates

SPEC = quickstart("search.confirm={top: 1, seeds: 2}")
ODDS = "val/equalized_odds"


def trial(accuracy: float, odds: float, stage: str = "search", **more: Any) -> Told:
    return Told(stage, [accuracy], further={ODDS: odds}, **more)


TRIALS = [
    trial(0.5, 0.30, "baseline"),
    trial(0.9, 0.20),
    trial(0.8, 0.10),
    trial(0.7, 0.10),
    trial(0.6, 0.04),
    Told("search", [0.99], "pruned", further={ODDS: 0.0}),
]


def numbers(*trials: Told, **wishes: Any) -> list[int]:
    return [one.trial.number for one in select_candidates(Results(SPEC, record(*trials)), CandidateSelection(**wishes))]


@pytest.mark.parametrize(
    ("wishes", "expected"),
    [
        ({}, [1]),
        ({"top": 3}, [1, 2, 3]),
        ({"trial": 3}, [3]),
        ({"where": [f"{ODDS}<=0.1"]}, [2]),
        ({"where": [f"{ODDS} <= 0.1"], "top": 3}, [2, 3, 4]),
        ({"where": [f"{ODDS}<=0.25", "val/accuracy<=0.85"], "top": 2}, [2, 3]),
        ({"by": ODDS}, [4]),
        ({"by": ODDS, "top": 5}, [4, 2, 3, 1, 0]),
        ({"by": ODDS, "where": ["val/accuracy>=0.7"]}, [2]),
        ({"pareto": ["val/accuracy", ODDS]}, [1, 2, 4]),
        ({"pareto": [ODDS, "val/accuracy"]}, [4, 2, 1]),
        ({"pareto": ["val/accuracy", ODDS], "top": 2}, [1, 2]),
        ({"pareto": ["val/accuracy", ODDS], "where": ["val/accuracy<=0.8"]}, [2, 4]),
    ],
)
def test_what_wishes_mean(wishes: dict[str, Any], expected: list[int]) -> None:
    assert numbers(*TRIALS, **wishes) == expected


def test_a_metric_of_which_neither_direction_is_better_cannot_choose() -> None:
    with pytest.raises(UserError, match="not known whether a higher or a lower value is better"):
        numbers(Told("search", [0.5], further={"val/shade": 0.1}), by="val/shade")


def test_what_was_confirmed_comes_first_by_its_fresh_seeds() -> None:
    """Once all that was to be confirmed was: trial 0 is the baseline, trial 1 the best of the search."""
    pairs = [(0, 0.5, 0.3), (0, 0.4, 0.3), (1, 0.6, 0.2), (1, 0.7, 0.1)]
    repeats = [trial(one, odds, "confirm", repeats=of, seed=at) for at, (of, one, odds) in enumerate(pairs, 1)]
    assert numbers(*TRIALS, *repeats, by="val/accuracy", top=4) == [1, 0, 2, 3]
    assert numbers(*TRIALS, *repeats, where=[f"{ODDS}<=0.16"], top=2) == [1, 2], "its mean over fresh seeds is 0.15"
    assert numbers(*TRIALS, *repeats, pareto=["val/accuracy", ODDS]) == [1, 2, 4], "a front compares what all have"
    assert numbers(*TRIALS, *repeats[:3], by="val/accuracy", top=2) == [1, 2], "not before"


@pytest.mark.parametrize(
    ("wishes", "told"),
    [
        (
            {"where": [f"{ODDS}<=0.01"]},
            r"none of 5 .* Trial 4 comes closest \(val/accuracy 0\.6\): it misses .* by 0\.03 \(it has",
        ),
        ({"where": ["val/equalised_odds<=0.1"]}, "Did you mean 'val/equalized_odds'"),
        ({"where": ["test/accuracy>=0.1"]}, "test metrics cannot be used to choose"),
        ({"where": ["small odds"]}, "--where: 'small odds' given, allowed is METRIC <= NUMBER"),
        ({"by": "accuracy"}, "val/accuracy"),
        ({"pareto": ["val/accuracy", "val/nothing"]}, "'val/nothing'"),
        ({"where": ["val/accuracy >= 80"]}, "--where: 'val/accuracy >= 80' given: no value keeps it: .*; 80% is 0.8"),
        ({"trial": 9}, "has 6 trials"),
        ({"trial": 5}, "is pruned"),
        ({"trial": 1, "top": 2}, "--trial, --top: give one of them"),
        ({"pareto": ["val/accuracy"], "by": "val/accuracy"}, "--pareto, --by: give one of them"),
        ({"top": 6}, r"5 complete configurations, 6 asked for \(--top\)"),
        ({"pareto": ["val/accuracy", ODDS], "top": 4}, "3 complete configurations on the front, 4 asked"),
    ],
)
def test_wishes_that_cannot_be_met(wishes: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        numbers(*TRIALS, **wishes)


LIMITED = quickstart("search.confirm={top: 0, seeds: 2}", f"search.constraints=['{ODDS} <= 0.15']")


@pytest.mark.parametrize(
    ("wishes", "expected"),
    [
        ({"pareto": ["val/accuracy", ODDS]}, [2, 4]),
        ({"pareto": ["val/accuracy", ODDS], "where": ["val/accuracy >= 0.7"]}, [2]),
        ({"by": "val/balanced_accuracy", "top": 5}, [2, 3, 4, 1, 0]),
    ],
)
def test_the_constraints_of_the_study_hold_for_a_front_and_for_another_metric(
    wishes: dict[str, Any], expected: list[int]
) -> None:
    """Trial 1 is the most accurate and misses the limit, as the baseline does."""
    for one in TRIALS:
        one.further["val/balanced_accuracy"] = one.values[0] or 0.0
    choice = CandidateSelection(**wishes)
    assert [one.trial.number for one in select_candidates(Results(LIMITED, record(*TRIALS)), choice)] == expected
    assert choice.rule_text(LIMITED).endswith(f"{ODDS} <= 0.15")


def test_the_studys_own_rule_is_told_with_its_limits() -> None:
    """They choose as much as the metric: a better one that breaks them is not taken."""
    assert CandidateSelection().rule_text(LIMITED) == f"{LIMITED.metric} where {ODDS} <= 0.15"
    assert CandidateSelection(trial=3).rule_text(LIMITED) == "its number, given by the user"


def test_where_no_configuration_keeps_the_constraints_the_front_is_of_those_that_miss_them_least() -> None:
    found = select_candidates(
        Results(LIMITED, record(*TRIALS[:2], trial(0.95, 0.2))), CandidateSelection(pareto=["val/accuracy", ODDS])
    )
    assert [one.trial.number for one in found] == [2, 1], "0.95 and 0.9 accurate, both miss it by 0.05"


def test_a_repeat_is_not_a_configuration_of_its_own() -> None:
    with pytest.raises(UserError, match="only repeats trial 1 on another seed"):
        numbers(*TRIALS, trial(0.6, 0.2, "confirm", repeats=1, seed=1), trial=6)


VALUES = st.lists(st.tuples(*[st.integers(0, 5).map(lambda one: one / 5)] * 2), min_size=1, max_size=8)


@given(VALUES, st.integers(0, 5))
def test_a_front_holds_what_nothing_dominates(values: list[tuple[float, float]], limit: int) -> None:
    trials = [trial(*one) for one in values]
    kept = [number for number, (_, odds) in enumerate(values) if odds <= limit / 5]
    wishes = {"pareto": ["val/accuracy", ODDS], "where": [f"{ODDS} <= {limit / 5}"]}
    if not kept:
        with pytest.raises(UserError, match="comes closest"):
            numbers(*trials, **wishes)
        return

    def beaten(one: int) -> bool:
        accuracy, odds = values[one]
        others = (values[other] for other in kept)
        return any(a >= accuracy and o <= odds and (a, o) != (accuracy, odds) for a, o in others)

    assert sorted(numbers(*trials, **wishes)) == [one for one in kept if not beaten(one)]


@given(VALUES)
def test_without_wishes_it_is_the_studys_own_ranking(values: list[tuple[float, float]]) -> None:
    found = record(*(trial(*one) for one in values))
    wanted = [one.trial.number for one in Results(SPEC, found).ranked_all]
    assert [
        one.trial.number for one in select_candidates(Results(SPEC, found), CandidateSelection(top=len(values)))
    ] == wanted


BEST = quickstart("search.confirm={top: 1, seeds: 2}", "search.epoch=best", "search.epoch_window=1")
RISING = [Told("search", [0.1, 0.5, 0.4]), Told("search", [0.6, 0.2, 0.3])]


def test_another_rule_takes_each_trial_at_its_own_best_epoch() -> None:
    """By its peak, where the last epoch would choose the other trial; where less is better, by its least."""
    told = record(*RISING)
    assert [
        one.trial.number for one in select_candidates(Results(BEST, told), CandidateSelection(by="val/accuracy", top=2))
    ] == [1, 0]
    assert [
        one.trial.number for one in select_candidates(Results(SPEC, told), CandidateSelection(by="val/accuracy", top=2))
    ] == [0, 1]
    odds = record(*(Told("search", values, metric=ODDS) for values in ([0.5, 0.1, 0.4], [0.3, 0.2, 0.2])))
    by_odds = quickstart("search.metric=val/equalized_odds", "search.epoch=best", "search.epoch_window=1")
    assert [
        one.trial.number for one in select_candidates(Results(by_odds, odds), CandidateSelection(by=ODDS, top=2))
    ] == [0, 1]


def test_what_is_measured_once_chooses_no_epoch() -> None:
    told = record(*RISING)
    for trial in told.trials.values():
        trial.reports[-1] = EpochMetrics(3, {**dict(trial.reports[-1]), "val/knn_accuracy": 0.5})
    assert select_candidates(Results(SPEC, told), CandidateSelection(by="val/knn_accuracy"))
    with pytest.raises(UserError, match=r"'val/knn_accuracy': is measured once a trial, and cannot choose its epoch"):
        select_candidates(Results(BEST, told), CandidateSelection(by="val/knn_accuracy"))
