"""Suggestions follow from seed, number and history alone; Optuna hears the truth."""

import math
from typing import Any

import pytest
from helpers import Told, quickstart, record
from hypothesis import given
from hypothesis import strategies as st
from optuna.trial import TrialState

from study.record import TrialRecord
from study.spec import StudySpec
from study.sweep.sampler import Sampler

SPEC = quickstart()


def value(params: dict[str, Any]) -> float:
    return math.exp(-((params["method.lambda"] - 1.0) ** 2))


def grown(spec: StudySpec, count: int) -> tuple[list[dict[str, Any]], list[TrialRecord]]:
    """Suggestions of a sampler that hears of each trial's end before it suggests the next."""
    sampler, asked, trials = Sampler(spec), [], []
    for number in range(count):
        asked.append(sampler.ask(number))
        trials.append(ended(number, asked[-1]))
        sampler.tell(trials[-1])
    return asked, trials


def ended(number: int, params: dict[str, Any]) -> TrialRecord:
    state = ("complete", "pruned", "complete", "failed")[number % 4]
    told = Told("search", [value(params) * share for share in (0.5, 1.0)], state, params=params)
    trial = record(told).trials[0]
    trial.number = number
    return trial


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_a_sampler_that_adopts_the_history_goes_on_as_the_one_that_made_it(sampler: str) -> None:
    spec = quickstart(f"search.sampler={sampler}")
    asked, trials = grown(spec, 16)
    for kept in (1, 11, 14):
        again = Sampler(spec)
        for trial in trials[:kept]:
            again.adopt(trial.number, trial.params)
        for trial in trials[:kept]:
            again.tell(trial)
        assert again.ask(kept) == asked[kept]


def test_number_and_seed_decide_where_there_is_no_history() -> None:
    first = Sampler(SPEC).ask(3)
    assert Sampler(SPEC).ask(3) == first
    assert Sampler(SPEC).ask(4) != first
    assert Sampler(quickstart("search.seed=1")).ask(3) != first
    assert Sampler(quickstart("search.sampler=random")).ask(3) == Sampler(quickstart("search.sampler=random")).ask(3)


def test_the_history_moves_tpe_towards_what_was_good() -> None:
    asked, _ = grown(quickstart("search.trials=40"), 40)
    early, late = ([abs(one["method.lambda"] - 1.0) for one in part] for part in (asked[:10], asked[25:]))
    assert sum(late) / len(late) < sum(early) / len(early)


def test_optuna_hears_how_each_trial_ended() -> None:
    sampler = Sampler(SPEC)
    trials = [
        Told("search", [0.1, 0.4], "complete"),
        Told("search", [0.2, 0.3], "pruned"),
        Told("search", [0.5], "failed"),
        Told("search", [0.7], "running"),
    ]
    for trial in record(*trials).trials.values():
        trial.params = sampler.ask(trial.number)
        if trial.state != "running":
            sampler.tell(trial)
    complete, pruned, failed, running = sampler.history()
    assert (complete.state, complete.value) == (TrialState.COMPLETE, 0.4)
    assert complete.intermediate_values == {1: 0.1, 2: 0.4}
    assert (pruned.state, pruned.intermediate_values) == (TrialState.PRUNED, {1: 0.2, 2: 0.3})
    assert (failed.state, failed.value, failed.intermediate_values) == (TrialState.FAIL, None, {1: 0.5})
    assert running.state == TrialState.RUNNING


def test_a_complete_trial_without_its_metric_is_no_value() -> None:
    sampler = Sampler(SPEC)
    trial = record(Told("search", [0.5, None])).trials[0]
    trial.params = sampler.ask(0)
    sampler.tell(trial)
    assert [one.state for one in sampler.history()] == [TrialState.FAIL]


@pytest.mark.parametrize(
    "params",
    [
        {"method.alpha": 1.0, "method.lambda": 0.0},
        {"method.alpha": 2.0, "method.lambda": 0.0, "method.epsilon": 0.0},
        {"method.alpha": 1.0, "method.lambda": 0.0, "method.epsilon": 0.3},
        {"method.alpha": 1.0, "method.lambda": 0.0, "method.epsilon": 0.0, "method.temperature": 0.1},
        {},
    ],
)
def test_what_is_outside_the_space_is_left_out(params: dict[str, Any]) -> None:
    sampler = Sampler(SPEC)
    sampler.adopt(0, params)
    sampler.tell(record(Told("search", [0.5], params=params)).trials[0])
    assert sampler.history() == []


def test_what_is_inside_the_space_is_taken_in_as_it_is() -> None:
    sampler, params = Sampler(SPEC), dict(SPEC.search.baseline or {})
    sampler.adopt(0, params)
    sampler.tell(record(Told("baseline", [0.5], params=params)).trials[0])
    (trial,) = sampler.history()
    assert (trial.params, trial.value, trial.state) == (params, 0.5, TrialState.COMPLETE)


def test_where_less_is_better_optuna_minimises() -> None:
    spec = quickstart("search.metric=val/equalized_odds")
    sampler = Sampler(spec)
    for number, odds in enumerate((0.4, 0.1)):
        trial = record(Told("search", [odds], metric=spec.metric)).trials[0]
        trial.number = number
        trial.params = sampler.ask(number)
        sampler.tell(trial)
    assert [trial.value for trial in sampler.history()] == [0.4, 0.1]
    assert sampler._study.best_trial.number == 1


DOMAINS = {
    "train.batch_size": "{low: 32, high: 128, step: 32}",
    "model.width": "{low: 4, high: 64, log: true}",
    "method.alpha": "{low: 0.001, high: 1.0, log: true}",
    "method.lambda": "{low: 0.0, high: 2.0, step: 0.5}",
    "train.optimizer": "{choices: [adam, sgd]}",
    "method.base_temperature": "{choices: [null, 0.07]}",
}
MIXED = quickstart(
    "search.space={" + ", ".join(f"{key}: {domain}" for key, domain in DOMAINS.items()) + "}", "search.baseline=null"
)


@given(st.integers(0, 10_000))
def test_every_suggestion_is_in_its_domain_and_of_its_type(number: int) -> None:
    params = Sampler(MIXED).ask(number)
    assert set(params) == set(MIXED.search.space)
    assert all(MIXED.search.space[key].contains(one) for key, one in params.items())
    assert type(params["train.batch_size"]) is type(params["model.width"]) is int
    assert type(params["method.alpha"]) is type(params["method.lambda"]) is float
    assert params["train.batch_size"] in (32, 64, 96, 128)
    assert params["method.lambda"] in (0.0, 0.5, 1.0, 1.5, 2.0)
    MIXED.trial_config(params)
    again = Sampler(MIXED)
    again.adopt(0, params)
    assert [trial.params for trial in again.history()] == [params]


def test_a_log_range_is_drawn_on_a_log_scale() -> None:
    drawn = [Sampler(MIXED).ask(number)["method.alpha"] for number in range(60)]
    below = sum(one < 0.0316 for one in drawn)
    assert 18 <= below <= 42
