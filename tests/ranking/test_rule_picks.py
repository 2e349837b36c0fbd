"""What each selection rule would have picked."""

from typing import Any

import pytest
from helpers import Told, quickstart, record
from hypothesis import given
from hypothesis import strategies as st

from study.home.record import StudyRecord
from study.ranking import Results
from study.ranking.rule_picks import RulePick, fresh_seed_trials, max_extra_picked_configurations, objective_rules
from study.spec import StudySpec

SPEC = quickstart("search.confirm={top: 1, seeds: 2, rules: true}")
NAMED = quickstart("search.confirm={top: 1, seeds: 2, rules: [unbiased_accuracy, balanced_accuracy]}")
METRICS = ("balanced_accuracy", "worst_class_accuracy", "unbiased_accuracy", "equalized_odds")


def searched(accuracy: float, *further: float, stage: str = "search", **given: Any) -> Told:
    """A trial with its accuracy, and as many of `METRICS` as are given."""
    return Told(stage, [accuracy], further=_named(further), **given)


def _named(values: tuple[float, ...]) -> dict[str, float]:
    return {f"val/{name}": value for name, value in zip(METRICS, values, strict=False)}


def by_name(trials: StudyRecord, spec: StudySpec = SPEC) -> dict[str, RulePick]:
    return {pick.rule.name: pick for pick in Results(spec, trials).rule_picks}


TRIALS = (
    searched(0.5, 0.5, 0.0, 0.4, 0.05, stage="baseline"),
    searched(0.9, 0.6, 0.0, 0.5, 0.30),
    searched(0.8, 0.7, 0.0, 0.8, 0.20),
    searched(0.7, 0.8, 0.0, 0.8, 0.10),
)


def test_each_rule_picks_the_best_by_its_own_metric() -> None:
    found = by_name(record(*TRIALS))
    assert {name: pick.trial_number for name, pick in found.items()} == {
        "accuracy": 1,
        "worst_class_accuracy": 0,  # all tie: the earliest
        "balanced_accuracy": 3,
        "unbiased_accuracy": 2,  # two tie
        "accuracy where equalized_odds <= 0.1": 3,
    }
    assert {name: pick.n_tied for name, pick in found.items() if pick.n_tied > 1} == {
        "worst_class_accuracy": 4,
        "unbiased_accuracy": 2,
    }
    assert [found[name].rank for name in ("accuracy", "balanced_accuracy", "worst_class_accuracy")] == [1, 3, 4]
    assert found["accuracy where equalized_odds <= 0.1"].score.total_violation == 0
    assert {name for name, pick in found.items() if pick.rule.is_study_objective} == {"accuracy"}
    assert {pick.n_candidates for pick in found.values()} == {4}


def test_only_the_rules_that_are_named_have_their_picks_run_again() -> None:
    found = record(*TRIALS)
    assert [trial.number for trial in Results(NAMED, found).rule_picked_trials] == [3, 2]
    found.apply_entry({"event": "confirming", "top": 1, "seeds": 3, "rules": False, "time": 99.0})
    assert (Results(NAMED, found).confirmation.settings.seeds, len(Results(NAMED, found).rule_picked_trials)) == (3, 2)
    found.apply_entry({"event": "confirming", "top": 1, "seeds": 3, "rules": True, "time": 99.0})
    assert [trial.number for trial in Results(NAMED, found).rule_picked_trials] == [1, 0, 3, 2]


def test_what_the_trials_do_not_report_is_no_rule_of_theirs() -> None:
    assert set(by_name(record(searched(0.5), searched(0.6)))) == {"accuracy"}
    assert Results(SPEC, record(Told("search", [0.5], "pruned"))).rule_picks == []


def test_where_no_configuration_keeps_a_limit_the_one_that_misses_it_by_least_is_picked() -> None:
    trials = record(searched(0.9, 0, 0, 0, 0.4), searched(0.5, 0, 0, 0, 0.2))
    pick = by_name(trials)["accuracy where equalized_odds <= 0.1"]
    assert (pick.trial_number, pick.score.total_violation) == (1, pytest.approx(0.1))


def test_the_studys_own_rule_is_there_whatever_it_is() -> None:
    spec = quickstart("search.metric=val/equalized_odds", "search.constraints=['val/accuracy >= 0.75']")
    pick = by_name(record(*TRIALS), spec)["val/equalized_odds where val/accuracy >= 0.75"]
    assert (pick.trial_number, pick.rule.required_labels, pick.rule.is_study_objective, pick.rank) == (2, None, True, 1)
    assert [rule.is_study_objective for rule in objective_rules(spec)].count(True) == 1


def test_own_and_other_rules_take_the_mean_over_replicates() -> None:
    spec = quickstart("search.replicates=2")
    trials = record(
        searched(0.9, 0.1),
        searched(0.5, 0.1, stage="replicate", seed=1, repeats=0),
        searched(0.8, 0.0),
        searched(0.8, 0.4, stage="replicate", seed=1, repeats=2),
        searched(0.99, 0.99),  # its second seed has not run
    )
    found = by_name(trials, spec)
    assert (found["accuracy"].trial_number, found["balanced_accuracy"].trial_number) == (2, 2)
    assert found["balanced_accuracy"].score.values == (pytest.approx(0.2),)
    assert found["accuracy"].n_candidates == 2


def fresh(stage: str, of: int, *values: float, tested: bool = True, state: str = "complete") -> list[Told]:
    """Trials on the seeds 1, 2 ..., tested with their validation value."""
    return [
        Told(stage, [value], state, seed=seed, repeats=of, tested={"test/accuracy": value} if tested else {})
        for seed, value in enumerate(values, 1)
    ]


CONFIRMED = (*fresh("confirm", 0, 0.4, 0.4), *fresh("confirm", 1, 0.6, 0.6))
RULES = (*fresh("rule", 3, 0.99, 0.99), *fresh("rule", 2, 0.98, 0.98))


def test_the_trials_of_other_rules_picks_choose_nothing() -> None:
    """However good they are: best, order, front and what is to confirm are those of the study without them."""
    without, having = record(*TRIALS, *CONFIRMED), record(*TRIALS, *CONFIRMED, *RULES)
    one, other = Results(SPEC, having), Results(SPEC, without)
    for of in ("ranked_all", "ranked_search", "ranked_by_search_value", "front"):
        assert getattr(one, of) == getattr(other, of)
    assert one.confirmation.trials_to_confirm() == other.confirmation.trials_to_confirm()
    assert [pick.trial_number for pick in Results(SPEC, having).rule_picks] == [
        pick.trial_number for pick in Results(SPEC, without).rule_picks
    ]


def test_fresh_seeds_count_once_whatever_they_ran_for() -> None:
    twice = record(*TRIALS, *fresh("rule", 3, 0.6, 0.7, 0.8), *fresh("confirm", 3, 0.6), *fresh("confirm", 1, 0.5))
    assert [(trial.seed, trial.stage) for trial in fresh_seed_trials(twice, 3)] == [
        (1, "confirm"),
        (2, "rule"),
        (3, "rule"),
    ]
    assert fresh_seed_trials(record(*TRIALS, *fresh("rule", 3, 0.5, state="failed")), 3) == []


@pytest.mark.parametrize(
    ("further", "done"),
    [
        ((), False),
        (RULES[:3], False),
        (RULES, True),
        ((*RULES[:3], *fresh("rule", 2, 0.9, 0.9, state="failed")[1:]), True),
        ((*RULES[:2], *fresh("rule", 2, 0.9, 0.9, tested=False)), False),
    ],
)
def test_picks_are_confirmed_once_all_have_run_and_test_was_read(further: tuple[Told, ...], done: bool) -> None:
    assert Results(SPEC, record(*TRIALS, *CONFIRMED, *further)).are_rule_picks_confirmed is done


def test_test_that_could_not_be_read_is_not_waited_for() -> None:
    found = record(*TRIALS, *CONFIRMED, *RULES[:3], *fresh("rule", 2, 0.9, 0.9, tested=False)[1:])
    found.apply_entry({"event": "untested", "trial": max(found.trials), "reason": "broken", "time": 99.0})
    assert Results(SPEC, found).are_rule_picks_confirmed


@given(
    st.lists(st.tuples(*[st.sampled_from([0.0, 0.1, 0.5, 1.0])] * 5), min_size=1, max_size=12),
    st.integers(0, 3),
    st.sampled_from([SPEC, quickstart("search.baseline=null"), NAMED]),
)
def test_no_more_are_picked_than_was_said(values: list[tuple[float, ...]], top: int, spec: StudySpec) -> None:
    has_baseline, plan = spec.search.baseline is not None, spec.search.confirm.model_copy(update={"top": top})
    trials = [
        searched(*each, stage="search" if place or not has_baseline else "baseline")
        for place, each in enumerate(values)
    ]
    found = record(*trials)
    best = [candidate.trial for candidate in Results(spec, found).ranked_by_search_value[:top]]
    reference = [trial for trial in found.trials_of_stages("baseline") if top]
    confirmed = {trial.number for trial in best + reference}
    reported = ["val/accuracy", *(f"val/{name}" for name in METRICS)]
    assert len(
        {trial.number for trial in Results(spec, found).rule_picked_trials} - confirmed
    ) <= max_extra_picked_configurations(spec, plan, len(trials), reported)
