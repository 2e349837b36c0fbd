"""What the rules' picks are worth on fresh seeds. The expected numbers are worked out by hand."""

import pytest

from study.analysis import picks_frame
from study.analysis.statistics.rule_pick_results import judge_rule_picks
from study.home.events import TrialTested
from study.home.record import StudyRecord
from study.ranking import Results
from study.spec import load_study

SPEC = load_study("fairkl_digits", ["train.epochs=1", "search.early_stopping={}", "search.trials=4"])
FRESH = {0: (0.40, 0.42, 0.44), 1: (0.50, 0.52, 0.54), 2: (0.60, 0.62, 0.64), 3: (0.56, 0.58, 0.60)}


def write(study, fresh=FRESH, tested=True):
    """Trial 1 is best by accuracy, 2 by unbiased accuracy, 3 by balanced accuracy; the worst class ties at 0."""
    values = [(0.3, 0.3, 0.3), (0.9, 0.6, 0.5), (0.8, 0.7, 0.8), (0.7, 0.8, 0.6)]
    for number, (accuracy, balanced, unbiased) in enumerate(values):
        also = {"val/balanced_accuracy": balanced, "val/unbiased_accuracy": unbiased, "val/worst_class_accuracy": 0.0}
        study.trial("search" if number else "baseline", [accuracy], also=also)
    for number, tests in fresh.items():
        stage = "confirm" if number < 2 else "rule"
        for seed, test in enumerate(tests, 1):
            also = {"val/balanced_accuracy": 0.1 * seed, "val/unbiased_accuracy": test}
            value = test if tested else None
            study.trial(stage, [0.8], seed=seed, repeats=number, also=also, test=value)
    return study.record()


@pytest.fixture(scope="module")
def record(writer):
    return write(writer())


def test_each_rules_pick_with_its_fresh_seeds(record):
    frame = picks_frame(Results(SPEC, record))
    assert list(frame.index) == ["accuracy", "worst_class_accuracy", "balanced_accuracy", "unbiased_accuracy"]
    assert list(frame["trial"]) == [1, 0, 3, 2]
    assert list(frame["own"]) == [True, False, False, False]
    assert list(frame["ties"]) == [1, 4, 1, 1]
    assert list(frame["test mean"]) == pytest.approx([0.52, 0.42, 0.58, 0.62])
    assert list(frame["test sd"]) == pytest.approx([0.02] * 4)
    assert list(frame["regret"]) == pytest.approx([0.10, 0.20, 0.04, 0.0])
    assert list(frame["val mean"].fillna(-1)) == pytest.approx([0.8, -1, 0.2, 0.62])
    assert set(frame["judge"]) == {"test/accuracy"}


def test_where_nothing_is_complete_there_is_no_pick():
    frame = picks_frame(Results(SPEC, StudyRecord()))
    assert frame.empty
    assert frame.index.name == "rule"


def test_where_less_is_better_regret_and_range_are_turned(writer):
    spec = load_study("fairkl_digits", ["search.early_stopping={}", "search.metric=val/equalized_odds"])
    study = writer()
    for odds, accuracy in ((0.1, 0.5), (0.2, 0.9)):
        study.trial("search", [odds], metric="val/equalized_odds", also={"val/accuracy": accuracy})
    for number, odds in ((0, 0.3), (0, 0.34), (1, 0.2), (1, 0.24)):
        repeat = study.trial("rule", [odds], metric="val/equalized_odds", repeats=number, seed=int(100 * odds))
        study.append(TrialTested(trial=repeat, metrics={"test/equalized_odds": odds, "test/accuracy": 0.5}))
    table = judge_rule_picks(Results(spec, study.record()))
    assert table.judging_metric == "test/equalized_odds"
    regrets = {result.pick.trial_number: result.regret_on_test for result in table.results}
    assert regrets == pytest.approx({0: 0.1, 1: 0.0})


def test_regret_is_against_the_studys_choice_too_where_no_rule_picks_that(writer):
    """On fresh seeds another one than the luckiest of the search leads."""
    study = writer()
    for number, value in enumerate((0.5, 0.9, 0.85)):
        study.trial("search" if number else "baseline", [value])
    for number, value, test in ((0, 0.4, 0.4), (1, 0.6, 0.5), (2, 0.8, 0.7)):
        for seed in (1, 2, 3):
            study.trial("confirm", [value], seed=seed, repeats=number, test=test)
    table = judge_rule_picks(Results(SPEC, study.record()))
    assert table.chosen_trial == 2
    assert {one.pick.trial_number: one.regret_on_test for one in table.results} == {1: pytest.approx(0.2)}
