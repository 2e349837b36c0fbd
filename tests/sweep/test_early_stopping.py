"""Early stopping against examples by hand, and against Ray Tune's own schedulers."""

import random
from dataclasses import dataclass, replace
from typing import Any

import pytest
from helpers import quickstart
from hypothesis import given, settings
from hypothesis import strategies as st
from ray.tune.schedulers import ASHAScheduler, TrialScheduler

from study.spec import StudySpec
from study.spec.objective import TrialScore
from study.spec.schema import EarlyStoppingOptions as Rule
from study.sweep.early_stopping import EarlyStopping

RULES = {"asha": Rule(name="asha", grace=1), "halves": Rule(name="asha", grace=2, reduction=2)}
OBJECTIVES: dict[str, dict[str, Any]] = {
    "one": {"metric": "val/accuracy"},
    "limit": {"metric": "val/accuracy", "constraints": ["val/equalized_odds <= 0.1"]},
}
QUICKSTART = quickstart()
QUICKSTART_LIMITED = replace(QUICKSTART, search=QUICKSTART.search.model_copy(update=OBJECTIVES["limit"]))
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
    return EarlyStopping(spec_of(Rule(name="asha", grace=grace, reduction=reduction), epochs, metric=metric))


def of(value: float, less_is_better: bool = False) -> TrialScore:
    """The score of one metric."""
    return TrialScore((value,), (-value if less_is_better else value,))


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
    score = spec.objective.score_of_report({"val/accuracy": accuracy, "val/equalized_odds": gap})
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
    rule = EarlyStopping(quickstart("search.early_stopping={}"))
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


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("rule", RULES)
def test_a_rule_that_hears_the_ledger_again_goes_on_as_one_that_was_never_cut(rule: str, objective: str) -> None:
    """Cut after every 40th report; the ledger is heard again, and then trials that run again from their first epoch."""
    spec = spec_of(RULES[rule], **OBJECTIVES[objective])
    told = reports(0, 30, spec.epochs)
    whole = EarlyStopping(spec)
    expected = [prunes(spec, whole, report) for report in told]
    assert sum(expected) >= 8
    for cut in range(0, len(told), 40):
        again = EarlyStopping(spec)
        assert [prunes(spec, again, report) for report in told[:cut]] == expected[:cut]
        assert not any(prunes(spec, again, report) for report in told[:cut]), "heard twice"
        assert [prunes(spec, again, report) for report in told[cut:]] == expected[cut:]


def test_a_trial_without_a_score_at_its_rung_is_judged_at_the_next_epoch_that_has_one() -> None:
    rule = asha(9, 2, 3)
    heard(rule, 2, [0.5, 0.6])
    assert rule.should_prune(2, 3, of(0.1))


def test_under_a_limit_what_keeps_it_comes_first_and_then_the_value() -> None:
    """Of those that miss it what misses it by less: 0.1 and 0.3 over the limit, then two that keep it."""
    rule = EarlyStopping(spec_of(Rule(name="asha", grace=1, reduction=2), **OBJECTIVES["limit"]))
    told = [(0.9, 0.2), (0.95, 0.4), (0.5, 0.1), (0.4, 0.05), (0.99, 0.11), (0.45, 0.1)]
    stops = [prunes(QUICKSTART_LIMITED, rule, (trial, 1, one)) for trial, one in enumerate(told)]
    # cuts: none, 0.1 over the limit, 0.1 over (of two that miss by other amounts the better), 0.1 over, 0.4, 0.01 over
    assert stops == [False, True, False, False, True, False]
