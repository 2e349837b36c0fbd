"""The contract of every sampler: suggestions follow from seed, number and history alone; Optuna hears the truth."""

import json
import math
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from textwrap import dedent
from typing import Any, cast

import pytest
from helpers import ROOT, quickstart
from optuna.trial import TrialState as OptunaTrialState

from study.home.events import TrialState
from study.spec import StudySpec
from study.spec.sampler_capabilities import SAMPLER_CAPABILITIES, SamplerCapabilities
from study.sweep import samplers
from study.sweep.optuna_history import ConfigurationOutcome
from study.sweep.samplers import SearchStrategy
from study.sweep.search_stage import UntriedSuggestions

RANGES = {
    "method.alpha": "{low: 0.001, high: 1.0, log: true}",
    "method.lambda": "{low: 0.0, high: 2.0, step: 0.5}",
    "model.width": "{low: 4, high: 64, log: true}",
    "train.batch_size": "{low: 32, high: 128, step: 32}",
    "train.weight_decay": "{choices: [0.0]}",
}
MIXED = RANGES | {"train.optimizer": "{choices: [adam, sgd]}", "method.base_temperature": "{choices: [null, 0.07]}"}
CONDITIONAL = {
    "train.momentum": "{low: 0.5, high: 0.95, when: {train.optimizer: [sgd]}}",
    "train.optimizer": "{choices: [adam, sgd]}",
    "method.lambda": "{low: 0.0, high: 2.0}",
    "method.epsilon": "{low: 0.0, high: 0.5, when: {train.optimizer: [adam]}}",
}
CELLS = {
    "train.momentum": "{choices: [0.5, 0.9], when: {train.optimizer: [sgd]}}",
    "train.optimizer": "{choices: [adam, sgd]}",
    "method.lambda": "{low: 0.0, high: 2.0, step: 0.25}",
    "train.batch_size": "{choices: [64, 32]}",
}
SMOOTH = {"method.lambda": "{low: 0.0, high: 2.0}", "train.optimizer": "{choices: [adam, sgd]}"}
SEVERAL = "search.metric=[val/accuracy, val/equalized_odds]"
LIMITED = "search.constraints=[val/equalized_odds <= 0.3, val/accuracy >= 0.8]"


def spec_of(sampler: str, space: dict[str, str], *assignments: str) -> StudySpec:
    given = ", ".join(f"{key}: {domain}" for key, domain in space.items())
    return quickstart(f"search.sampler={sampler}", f"search.space={{{given}}}", "search.baseline=null", *assignments)


@dataclass(eq=False)
class Case:
    """A sampler on one kind of space; `trials` are as many as it takes to be past its random beginning."""

    sampler: str
    space: dict[str, str]
    given: tuple[str, ...] = ()
    trials: int = 26

    @cached_property
    def spec(self) -> StudySpec:
        return spec_of(self.sampler, self.space, *self.given)

    @cached_property
    def history(self) -> list["Event"]:
        return grown(self.spec, self.trials)


LENGTHS = {"gp": 24}
"""Trials until a sampler is past its random beginning, where these are not 26."""


def cases(name: str, can: SamplerCapabilities) -> Iterator[tuple[str, Case]]:
    """A sampler on the spaces and aims that it says it can search."""
    plain = CELLS if can.tries_every_cell else SMOOTH if can.needs_every_key else MIXED
    conditions = CELLS if can.tries_every_cell else plain if can.needs_every_key else CONDITIONAL
    aims = (LIMITED,) if can.needs_every_key else (SEVERAL, LIMITED)
    trials = LENGTHS.get(name, 26)
    yield name, Case(name, plain, trials=trials)
    yield f"{name}, conditions, constraints", Case(name, conditions, aims, trials)


CASES = dict(case for name, can in SAMPLER_CAPABILITIES.items() for case in cases(name, can))
CASE = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def told(spec: StudySpec, number: int, params: dict[str, Any], state: TrialState) -> ConfigurationOutcome:
    """Smooth metrics: accuracy is best in the middle of each range, the gap grows with lambda."""
    away = sum((one / 2 - 0.5) ** 2 for key, one in params.items() if key in ("method.lambda", "train.momentum"))
    accuracy, gap = math.exp(-away) + number % 7 / 1000, params.get("method.lambda", 0.0) / 4
    last = {"complete": 4, "pruned": 2, "failed": 1}[state]
    reports = [{"val/accuracy": accuracy * share / 4, "val/equalized_odds": gap} for share in range(1, last + 1)]
    scores = [(epoch, score) for epoch, one in enumerate(reports, 1) if (score := spec.objective.score_of_report(one))]
    return ConfigurationOutcome(number, state, scores, scores[-1][1] if state == "complete" else None)


Event = tuple[int, dict[str, Any]] | ConfigurationOutcome


def grown(spec: StudySpec, trials: int, at_once: int = 3) -> list[Event]:
    """What happened, in order, in a study of so many trials, of which up to `at_once` run, and end in any order."""
    sampler, order, story, running = UntriedSuggestions(spec), random.Random(0), list[Event](), list[int]()
    asked: dict[int, dict[str, Any]] = {}
    while len(asked) < trials:
        if len(running) < at_once:
            params = sampler.suggest_untried_params(len(asked))
            assert params is not None
            running.append(len(asked))
            asked[len(asked)] = params
            story.append((running[-1], params))
        else:
            number = running.pop(order.randrange(at_once))
            state: TrialState = ("complete", "pruned", "complete", "complete", "failed")[number % 5]
            end = told(spec, number, asked[number], state)
            sampler.history.add_outcome(end)
            story.append(end)
    return story


def asked(story: list[Event]) -> list[dict[str, Any]]:
    return [event[1] for event in story if not isinstance(event, ConfigurationOutcome)]


def replayed(spec: StudySpec, story: list[Event]) -> UntriedSuggestions:
    """A new sampler to which all that happened is told, its parameters as the ledger keeps them."""
    sampler = UntriedSuggestions(spec)
    for event in story:
        if isinstance(event, ConfigurationOutcome):
            sampler.history.add_outcome(event)
        else:
            sampler.add_decided_params(event[0], json.loads(json.dumps(event[1])))
    return sampler


class TestEverySampler:
    @CASE
    def test_replayed_to_any_moment_it_goes_on_as_the_uninterrupted_one(self, case: Case) -> None:
        spec, story = case.spec, case.history
        for count, event in enumerate(story):
            if not isinstance(event, ConfigurationOutcome) and (event[0] % 4 == 0 or event[0] > case.trials - 3):
                assert replayed(spec, story[:count]).suggest_untried_params(event[0]) == event[1]

    @CASE
    def test_every_suggestion_is_in_the_space_and_of_its_type(self, case: Case) -> None:
        spec = case.spec
        for params in asked(case.history):
            assert spec.space.contains(params)
            for key, one in params.items():
                number = int if key in spec.space.integer_keys else float
                assert type(one) in {type(choice) for choice in spec.search.space[key].choices or [number()]}
            assert json.loads(json.dumps(params)) == params

    @CASE
    def test_no_two_trials_that_run_at_once_are_the_same(self, case: Case) -> None:
        sampler = UntriedSuggestions(case.spec)
        found = [repr(sampler.suggest_untried_params(number)) for number in range(6)]
        assert len(set(found)) == 6

    @CASE
    def test_each_end_is_told_as_what_it_was(self, case: Case) -> None:
        spec, ends = (
            case.spec,
            {event.number: event for event in case.history if isinstance(event, ConfigurationOutcome)},
        )
        trials = list(replayed(spec, case.history).history.trials.values())
        assert [trial.number for trial in trials] == list(range(case.trials))
        for trial in trials:
            end = ends.get(trial.number)
            names = {
                "complete": OptunaTrialState.COMPLETE,
                "pruned": OptunaTrialState.PRUNED,
                "failed": OptunaTrialState.FAIL,
            }
            assert trial.state == (names[end.state] if end else OptunaTrialState.RUNNING)
            assert trial.values == (list(end.final_score.values) if end and end.final_score else None)
            told_of = end.score_by_epoch if end and len(spec.objective.metrics) == 1 else ()
            assert trial.intermediate_values == {epoch: score.values[0] for epoch, score in told_of}
            if spec.objective.constraints and end and end.final_score:
                assert trial.constraints == dict(
                    zip(spec.search.constraints, end.final_score.constraint_violations, strict=True)
                )

    @CASE
    def test_its_own_choice_differs_by_seed_and_number(self, case: Case) -> None:
        if case.sampler != "grid":
            other = replace(case.spec, search=case.spec.search.model_copy(update={"seed": 1}))
            assert (
                UntriedSuggestions(case.spec).suggest_untried_params(3)
                == UntriedSuggestions(case.spec).suggest_untried_params(3)
                != UntriedSuggestions(other).suggest_untried_params(3)
            )

    @CASE
    def test_what_was_given_first_is_history_like_the_rest(self, case: Case) -> None:
        spec, first = case.spec, asked(case.history)[4]
        sampler = UntriedSuggestions(spec)
        sampler.add_decided_params(0, first)
        sampler.history.add_outcome(told(spec, 0, first, "complete"))
        params = sampler.suggest_untried_params(1)
        assert params is not None
        assert spec.space.contains(params)
        assert params != first
        assert [trial.params for trial in sampler.history.trials.values()] == [first, params]


def test_the_example_of_the_base_class_is_a_sampler(monkeypatch: pytest.MonkeyPatch) -> None:
    there = dict(vars(samplers))
    exec(dedent((SearchStrategy.__doc__ or "").partition("needs:\n")[2]), there)
    monkeypatch.setitem(cast("dict[str, type[SearchStrategy]]", samplers.STRATEGIES), "halves", there["Halves"])
    spec = spec_of("random", SMOOTH)
    spec = replace(spec, search=spec.search.model_copy(update={"sampler": "halves"}))
    story = grown(spec, 8)
    assert [params["method.lambda"] < 1 for params in asked(story)[:1] + asked(story)[-1:]] == [True, False]
    for at, event in enumerate(story):
        if not isinstance(event, ConfigurationOutcome):
            assert replayed(spec, story[:at]).suggest_untried_params(event[0]) == event[1]


PROCESS = """
import json, sys
sys.path[:0] = ["tests/support", "tests/sweep"]
from test_sampler_contract import CASES, asked, grown
names = ["tpe, conditions, constraints", "gp"]
print(json.dumps([asked(CASES[name].history) for name in names]))
"""


def another(script: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """What another process does, with these variables alone."""
    variables = {"PYTHONPATH": ":".join([str(ROOT), *sys.path]), **environment}
    command = [sys.executable, "-W", "ignore", "-c", script]
    return subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.slow
def test_another_process_suggests_the_same() -> None:
    """Python orders sets of strings anew in each process."""
    found = set()
    for seed in ("1", "2", "3"):
        done = another(PROCESS, PYTHONHASHSEED=seed)
        assert done.returncode == 0, done.stderr
        found.add(done.stdout.splitlines()[-1])
    assert len(found) == 1


@pytest.mark.slow
@pytest.mark.parametrize("given", [(LIMITED,), (SEVERAL,), (SEVERAL, LIMITED)])
def test_the_gaussian_process_goes_on_as_before(given: tuple[str, ...]) -> None:
    spec = spec_of("gp", SMOOTH, *given)
    story = grown(spec, 20)
    last = next(at for at, event in enumerate(story) if not isinstance(event, ConfigurationOutcome) and event[0] == 19)
    assert replayed(spec, story[:last]).suggest_untried_params(19) == asked(story)[19]


@pytest.mark.parametrize(
    "params",
    [
        {"train.optimizer": "adam", "method.lambda": 1.0},
        {"train.optimizer": "adam", "method.lambda": 3.0, "method.epsilon": 0.1},
        {"train.optimizer": "adam", "method.lambda": 1.0, "train.momentum": 0.9},
        {"train.optimizer": "adam", "method.lambda": 1.0, "method.epsilon": 0.1, "method.alpha": 1.0},
        {},
    ],
)
def test_what_is_outside_the_space_is_left_out(params: dict[str, Any]) -> None:
    sampler = UntriedSuggestions(spec_of("tpe", CONDITIONAL))
    sampler.add_decided_params(0, params)
    sampler.history.add_outcome(ConfigurationOutcome(0, "failed"))
    assert sampler.history.trials == {}


def test_a_complete_trial_without_its_metric_is_no_value() -> None:
    sampler = UntriedSuggestions(spec_of("tpe", MIXED))
    sampler.suggest_untried_params(0)
    sampler.history.add_outcome(ConfigurationOutcome(0, "complete"))
    assert [one.state for one in sampler.history.trials.values()] == [OptunaTrialState.FAIL]


def test_the_end_of_a_trial_is_heard_once() -> None:
    spec = spec_of("tpe", MIXED)
    sampler = UntriedSuggestions(spec)
    params = sampler.suggest_untried_params(0)
    assert params is not None
    sampler.history.add_outcome(told(spec, 0, params, "pruned"))
    sampler.history.add_outcome(told(spec, 0, params, "complete"))
    assert [one.state for one in sampler.history.trials.values()] == [OptunaTrialState.PRUNED]


GP = """
from study.spec import load_study
from study.sweep.search_stage import UntriedSuggestions

UntriedSuggestions(load_study("fairkl_digits", ["search.sampler=gp"]))
import optuna._gp.batched_lbfgsb  # says so where greenlet is missing
"""


@pytest.mark.slow
def test_a_library_warns_nobody_of_what_it_lacks() -> None:
    done = another(GP)
    assert (done.returncode, done.stderr) == (0, "")
