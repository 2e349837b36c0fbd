"""Early stopping against examples by hand, and against Ray Tune's own schedulers."""

import random
import sys
from dataclasses import dataclass, replace
from functools import partial
from inspect import cleandoc
from textwrap import dedent
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from benchmarks.pareto_stopping import compared, curves
from helpers import quickstart
from hypothesis import given, settings
from hypothesis import strategies as st
from ray.tune.schedulers import ASHAScheduler, MedianStoppingRule, TrialScheduler

from study.spec import StudySpec
from study.spec.objective import Score
from study.spec.rungs import SCHEDULES, AshaSchedule, bracket_of, schedule
from study.spec.schema import EarlyStopping as Rule
from study.sweep.early_stopping import ByDominance, ByValue, EarlyStopping, early_stopping

RULES = {name: Rule(name=name, grace=1) for name in SCHEDULES if name != "none"}
RULES |= {"median": Rule(name="median", grace=2), "brackets": Rule(name="asha", grace=2, reduction=2, brackets=2)}
OBJECTIVES: dict[str, dict[str, Any]] = {
    "one": {"metric": "val/accuracy"},
    "pair": {"metric": ["val/accuracy", "val/equalized_odds"]},
    "limit": {"metric": "val/accuracy", "constraints": ["val/equalized_odds <= 0.1"]},
}
QUICKSTART = quickstart()
Report = tuple[int, int, tuple[float, float]]
"""Trial, epoch, accuracy and gap."""


@dataclass(frozen=True)
class NamedTrial:
    """What Ray's schedulers look at."""

    trial_id: str


def spec_of(rule: Rule, epochs: int = 9, **search: Any) -> StudySpec:
    sections = {**QUICKSTART.base, "train": {**QUICKSTART.base["train"], "epochs": epochs}}
    searched = QUICKSTART.search.model_copy(update={"early_stopping": rule, **search})
    return replace(QUICKSTART, base=sections, search=searched)


def asha(epochs: int = 9, grace: int = 1, reduction: int = 3, metric: str = "val/accuracy") -> EarlyStopping:
    return early_stopping(spec_of(Rule(name="asha", grace=grace, reduction=reduction), epochs, metric=metric))


def of(value: float, less_is_better: bool = False) -> Score:
    """The score of one metric."""
    return Score((value,), (-value if less_is_better else value,))


def heard(rule: EarlyStopping, epoch: int, values: list[float], less_is_better: bool = False) -> list[bool]:
    """Which of the trials 0, 1 ... stop, that reach an epoch one after the other."""
    return [rule.should_prune(trial, epoch, of(value, less_is_better)) for trial, value in enumerate(values)]


def reports(seed: int, trials: int, epochs: int) -> list[Report]:
    """What trials that improve report, four at once in any order, all but their last epoch."""
    draw = random.Random(seed)
    left = {
        trial: [(draw.random() + epoch / epochs, draw.random()) for epoch in range(1, epochs)]
        for trial in range(trials)
    }
    found: list[Report] = []
    while left:
        trial = draw.choice(sorted(left)[:4])
        epoch = epochs - len(left[trial])
        found.append((trial, epoch, left[trial].pop(0)))
        if not left[trial]:
            del left[trial]
    return found


def prunes(spec: StudySpec, rule: EarlyStopping, report: Report) -> bool:
    trial, epoch, (accuracy, gap) = report
    score = spec.objective.score({"val/accuracy": accuracy, "val/equalized_odds": gap})
    assert score is not None
    return rule.should_prune(trial, epoch, score)


VALUES = [0.5, 0.6, 0.4, 0.55, 0.45, 0.7, 0.65]
STOPS = [False, False, True, False, True, False, False]
"""By hand, reduction 2: a value stops below the median of those before it.

before 0.6: 0.5; before 0.4: 0.55; before 0.55: 0.5; before 0.45: 0.525; before 0.7: 0.5; before 0.65: 0.525
"""


def test_the_example_by_hand() -> None:
    assert heard(asha(reduction=2), 1, VALUES) == STOPS


def test_where_less_is_better_it_is_the_mirror_image() -> None:
    rule = asha(reduction=2, metric="val/equalized_odds")
    assert heard(rule, 1, [1 - value for value in VALUES], less_is_better=True) == STOPS


def test_a_third_goes_on_where_reduction_is_three() -> None:
    """The cut is two thirds of the way up the values before, interpolated."""
    rule = asha(reduction=3)
    assert heard(rule, 1, [0.1, 0.2, 0.3, 0.4]) == [False] * 4
    # before: 0.1 0.2 0.3 0.4; two thirds of the way from 0.1 to 0.4 is 0.3
    assert rule.should_prune(4, 1, of(0.299))
    # before: 0.1 0.2 0.299 0.3 0.4; place 4 * 2/3 = 2.667 is 0.299667
    assert not rule.should_prune(5, 1, of(0.2997))


@pytest.mark.parametrize(("epochs", "grace", "rungs"), [(9, 1, [1, 3]), (20, 4, [4, 12]), (9, 9, []), (10, 2, [2, 6])])
def test_trials_stop_at_rungs_alone(epochs: int, grace: int, rungs: list[int]) -> None:
    rule = asha(epochs, grace, 3)
    assert not any(
        rule.should_prune(trial, epoch, of(high)) for trial, high in enumerate((0.5, 0.6)) for epoch in range(1, epochs)
    )
    assert [epoch for epoch in range(1, epochs) if rule.should_prune(2, epoch, of(0.1))] == rungs


def test_without_a_rule_every_trial_runs_in_full() -> None:
    rule = early_stopping(quickstart("search.early_stopping={}"))
    assert rule.name == "none"
    assert not any(rule.should_prune(trial, epoch, of(0.0)) for trial in range(5) for epoch in range(1, 20))


values = st.one_of(st.sampled_from([0.1, 0.2, 0.3, 0.7, 1 / 3]), st.floats(-1e3, 1e3))


@pytest.mark.slow
@settings(max_examples=150)
@given(
    grace=st.integers(1, 6),
    reduction=st.integers(2, 7),
    less_is_better=st.booleans(),
    told=st.lists(st.tuples(st.integers(0, 25), st.integers(1, 19), values), max_size=120),
)
def test_one_metrics_decisions_are_those_of_ray(
    grace: int, reduction: int, less_is_better: bool, told: list[tuple[int, int, float]]
) -> None:
    """Trials that report in any order, some epochs never, some twice; equal values; either direction."""
    metric, mode = ("val/equalized_odds", "min") if less_is_better else ("val/accuracy", "max")
    rule = asha(20, grace, reduction, metric)
    ray: Any = ASHAScheduler("epoch", "value", mode, 20, grace, reduction, stop_last_trials=False)
    for trial in range(26):
        ray.on_trial_add(None, NamedTrial(str(trial)))
    for trial, epoch, value in told:
        decision = ray.on_trial_result(None, NamedTrial(str(trial)), {"epoch": epoch, "value": value})
        assert rule.should_prune(trial, epoch, of(value, less_is_better)) == (decision == TrialScheduler.STOP)


@pytest.mark.slow
@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), grace=st.integers(1, 6), trials=st.integers(1, 25))
def test_the_median_rules_decisions_are_those_of_ray(seed: int, grace: int, trials: int) -> None:
    """Values whose means are whole numbers, as the two round differently; a stopped trial reports no more."""
    rule = early_stopping(spec_of(Rule(name="median", grace=grace)))
    ray: Any = MedianStoppingRule("epoch", "value", "max", grace, 3, hard_stop=True)
    named = [NamedTrial(str(trial)) for trial in range(trials)]
    nothing_waits = SimpleNamespace(get_live_trials=list)
    stopped: set[int] = set()
    for trial, epoch, (accuracy, _) in reports(seed, trials, epochs=9):
        if trial not in stopped:
            value = 840.0 * 2 * int(10 * accuracy)
            mine = rule.should_prune(trial, epoch, of(value))
            decision = ray.on_trial_result(nothing_waits, named[trial], {"epoch": epoch, "value": value})
            assert mine == (decision == TrialScheduler.STOP)
            stopped |= {trial} if mine else set()


def test_the_median_rule_by_hand() -> None:
    rule = early_stopping(spec_of(RULES["median"]))
    assert not any(heard(rule, 1, [0.1, 0.9, 0.9, 0.5, 0.9])), "before grace"
    # at epoch 2 three others have to be there; then 0.6 against the median of 0.1, 0.8, 0.8
    assert heard(rule, 2, [0.1, 0.8, 0.8, 0.6]) == [False, False, False, True]
    assert not rule.should_prune(4, 2, of(0.0)), "its best so far is 0.9"
    # the means of the others over epochs 2 and 3 are 0.2, 0.85 and 0.8
    assert not any(rule.should_prune(trial, 3, of(value)) for trial, value in enumerate((0.3, 0.9, 0.8)))
    assert rule.should_prune(3, 3, of(0.79))


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("rule", RULES)
def test_a_rule_that_hears_the_ledger_again_goes_on_as_one_that_was_never_cut(rule: str, objective: str) -> None:
    """Cut after every 40th report; the ledger is heard again, and then trials that run again from their first epoch."""
    spec = spec_of(RULES[rule], **OBJECTIVES[objective])
    told = reports(0, 30, spec.epochs)
    whole = early_stopping(spec)
    expected = [prunes(spec, whole, report) for report in told]
    assert sum(expected) >= 8
    for cut in range(0, len(told), 40):
        again = early_stopping(spec)
        assert [prunes(spec, again, report) for report in told[:cut]] == expected[:cut]
        assert not any(prunes(spec, again, report) for report in told[:cut]), "heard twice"
        assert [prunes(spec, again, report) for report in told[cut:]] == expected[cut:]


def test_the_example_of_the_base_class_is_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("study.sweep.early_stopping.floor")
    example = cleandoc(EarlyStopping.__doc__ or "").partition("`early_stopping: floor`:\n")[2].partition("Args:")[0]
    exec(dedent(example), vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(SCHEDULES, "floor", AshaSchedule)
    rule = early_stopping(spec_of(Rule.model_construct(name="floor", grace=1)))
    assert heard(rule, 1, [0.5, -0.5]) == [False, True]
    assert schedule(rule.rule, 9).words == "floor, rungs at epochs 1 and 3, one in 3 goes on"


def test_brackets_do_not_hear_each_other() -> None:
    spec = spec_of(Rule(name="asha", grace=1, reduction=3, brackets=2))
    among = schedule(spec.search.early_stopping, spec.epochs).brackets
    of_first, of_second = ([n for n in range(40) if bracket_of(n, among) == index] for index in (0, 1))
    rule = early_stopping(spec)
    assert not any(rule.should_prune(number, 1, of(1.0 - number)) for number in of_second), "their first rung is at 3"
    assert not rule.should_prune(of_first[0], 3, of(0.0))
    assert not rule.should_prune(of_second[0], 3, of(-1.0)), "the first of its bracket at this rung"
    assert rule.should_prune(of_second[1], 3, of(-2.0))


def test_a_trial_without_a_score_at_its_rung_is_judged_at_the_next_epoch_that_has_one() -> None:
    rule = asha(9, 2, 3)
    heard(rule, 2, [0.5, 0.6])
    assert rule.should_prune(2, 3, of(0.1))


@pytest.mark.parametrize("kind", ["rising", "falling", "collapsed"])
def test_of_two_metrics_a_third_of_the_epochs_find_nearly_the_whole_front(kind: str) -> None:
    """Seeded simulations, the benchmark's; ASHA on the first metric alone runs as many epochs and loses more of it."""
    given = [curves(kind, seed, trials=100) for seed in range(5)]
    epochs, kept = np.mean([compared(partial(ByDominance, 3, 2), one, 3, limit=None) for one in given], axis=0)
    _, of_first = np.mean([compared(partial(ByValue, 3), one, 3, limit=None) for one in given], axis=0)
    assert epochs < 0.36
    assert kept > 0.95
    assert of_first < kept - 0.02


@pytest.mark.parametrize("kind", ["rising", "falling", "collapsed"])
def test_under_a_limit_a_third_of_the_epochs_find_nearly_the_best(kind: str) -> None:
    """Whether gaps rise above the limit with time, or fall below it."""
    given = [curves(kind, seed, trials=100) for seed in range(5)]
    epochs, lost = np.mean([compared(partial(ByDominance, 3, 1), one, 3, limit=0.1) for one in given], axis=0)
    assert epochs < 0.36
    assert lost < 0.03
