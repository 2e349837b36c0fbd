"""The lead of a report: each sentence where its numbers carry it, and the next step by its rule."""

import re
from dataclasses import replace
from typing import Any

import pytest
from helpers import Told, quickstart, record
from kept import reading
from told_studies import (
    AGAINST,
    FAIR_LOSS,
    LIMITED,
    WHOLE,
    ahead_without_search,
    broken_anew,
    equal_on_validation,
    fresh,
    level,
    measured,
    of_own_function,
    only,
    over,
    said,
    traded,
)

from study.analysis.report import report_lead
from study.analysis.report.certainty_sentences import BestAmongRivals, DifferenceToRunnerUp
from study.analysis.report.conclusions import (
    DebiasingNotNeeded,
    GainOverBaseline,
    MetricDifferenceToBaseline,
    RulePickValues,
    SampleErrorUnknown,
)
from study.analysis.report.groups_section import group_blocks_below_summary
from study.analysis.report.pareto_front_section import (
    ChosenFromFront,
    ConfigurationsOnFront,
    FrontGainsOverBaseline,
    front_table,
    front_table_note,
)
from study.analysis.report.report_lead import (
    CountOfTestReadings,
    PositionOfBest,
    ResultParameters,
    StudyCost,
    SuggestedCommand,
    report_lead_statements,
)
from study.analysis.report.trade_off_sentences import (
    AccuracyTradeOff,
    ConstraintBrokenOnFreshSeeds,
    ConstraintCheck,
    ReferenceMoreAccurate,
    SmallerAccuracyLoss,
    smaller_accuracy_loss_statements,
)
from study.analysis.statistics import formatting
from study.analysis.statistics.next_step import (
    BestAtRangeEdge,
    MoreSeedsNotNeeded,
    NextStepReason,
    NoStepLeft,
    PositionInSearch,
    UndecidedBySeeds,
    next_steps,
)
from study.home.events import GroupSampleCounts
from study.home.record import StudyRecord
from study.metrics.summary_metrics import list_summary_metrics
from study.ranking import FittedReference, Results
from study.ranking.arms import NO_TRIAL_NUMBER, arm_of_candidate
from study.ranking.difference import Difference
from study.ranking.json_documents import to_plain_value
from study.spec import StudySpec

PLAIN = quickstart("train.epochs=1", "search.early_stopping={name: none}", "search.confirm={top: 2, seeds: 3}")
WON = {"method.alpha": 0.02, "method.lambda": 1.5}
TRIALS = [Told("baseline", [0.5]), Told("search", [0.7], params=WON), *(Told("search", [0.6]) for _ in range(9))]


def confirmed(*values: list[float]) -> list[Told]:
    """Fresh seeds of the baseline, trial 1 and trial 2."""
    return fresh(*map(tuple, values))


def first_step(spec: StudySpec, found: StudyRecord) -> tuple[str, str | None]:
    step = next_steps(Results(spec, found))[0]
    return step.kind, step.command


def test_what_won_how_sure_what_it_cost_and_what_next() -> None:
    results = Results(PLAIN, over(*TRIALS, *confirmed([0.50, 0.52, 0.54], [0.70, 0.72, 0.75], [0.59, 0.62, 0.64])))
    assert list(report_lead_statements(results)) == ["Result", "How sure", "Search", "Cost", "Next"]
    assert only(ResultParameters, results).values == WON
    among, gap = only(BestAmongRivals, results), only(DifferenceToRunnerUp, results).comparison
    assert (among.verdict, gap.best.trial_number, gap.runner_up.trial_number) == ("best", 1, 2)
    assert (gap.n_compared, gap.seed_counts, gap.undecided_trials) == (2, (3, 3), ())
    assert gap.difference_to_runner_up.value == pytest.approx(0.32 / 3)
    assert gap.difference_to_runner_up.interval[0] > 0
    assert said(PositionOfBest, results) == [PositionOfBest(PositionInSearch(1, 10), False)]
    cost = only(StudyCost, results)
    assert (cost.configurations, cost.pruned, cost.further, cost.epochs, cost.gpu_hours) == (11, 0, 9, 20, 0.0)
    assert only(CountOfTestReadings, results).times == 0
    assert only(NoStepLeft, results) == NoStepLeft(10, False, True, "")
    document = report_lead.build_report_lead(results)
    assert to_plain_value(document)["runner_up"]["trial"] == 2
    printed = report_lead.report_lead_lines(document, without=("Result",))
    assert printed[0].startswith("how sure  ")
    assert all(len(line) <= report_lead.TERMINAL_WIDTH for line in printed)


def test_more_seeds_where_the_runner_up_cannot_be_told_from_the_best() -> None:
    results = Results(PLAIN, over(*TRIALS, *confirmed([0.30, 0.32, 0.34], [0.70, 0.72, 0.75], [0.665, 0.665, 0.675])))
    assert (
        only(BestAmongRivals, results).verdict,
        only(DifferenceToRunnerUp, results).comparison.undecided_trials,
    ) == (
        "undecided",
        (2,),
    )
    kind, command = first_step(PLAIN, results.record)
    assert kind == "seeds"
    assert command is not None
    assert command.startswith("study confirm quickstart --top 2 --seeds ")
    needed = only(UndecidedBySeeds, results).needed
    assert needed is not None
    assert (needed.most, needed.next_batch) == (None, int(command.split()[-1]))
    assert 3 < needed.next_batch <= 10


def test_how_many_seeds_each_ran_on_is_said_of_all() -> None:
    for best, other, seeds in (([0.70, 0.72, 0.75, 0.74, 0.73], [0.665, 0.665, 0.675], (3, 5)),
                               ([0.70, 0.72, 0.75], [0.665], (1, 3))):  # fmt: skip
        among = only(BestAmongRivals, Results(PLAIN, over(*TRIALS, *confirmed([0.30, 0.32, 0.34], best, other))))
        assert (among.verdict, among.rivals.n_compared, among.rivals.seed_counts) == ("undecided", 2, seeds)


def test_with_limits_the_others_are_those_that_keep_them() -> None:
    spec = quickstart("train.epochs=1", "search.early_stopping={name: none}", "search.trials=11",
                      "search.confirm={top: 0}", "search.constraints=['val/unbiased_accuracy >= 0.5']")  # fmt: skip
    told = [Told("search", [0.9 - at / 10], further={"val/unbiased_accuracy": at / 4}) for at in range(4)]
    among = only(BestAmongRivals, Results(spec, over(*told)))
    assert (among.rivals.best.trial_number, among.rivals.n_compared, among.limits) == (2, 2, "that keep the limits")


def test_two_seeds_that_do_not_tell_are_not_said_to_be_within_a_spread() -> None:
    spec = quickstart("train.epochs=1", "search.early_stopping={name: none}", "search.trials=11",
                      "search.confirm={top: 1, seeds: 2}")  # fmt: skip
    results = Results(spec, over(*TRIALS, *confirmed([0.5, 0.6], [0.8, 0.7])))
    change = only(MetricDifferenceToBaseline, results).difference
    assert (change.value, change.is_unclear_for_few_seeds) == (pytest.approx(0.2), True)
    assert only(GainOverBaseline, results).verdict == "open"


def test_one_seed_asks_for_more() -> None:
    diverged = [Told("confirm", [], "failed", seed=seed, repeats=of) for of in (0, 1, 2) for seed in (2, 3)]
    found = over(*TRIALS, *confirmed([0.30], [0.70], [0.66]), *diverged)
    assert first_step(PLAIN, found) == ("seeds", "study confirm quickstart --top 1 --seeds 5")
    pair = only(UndecidedBySeeds, Results(PLAIN, found))
    assert (pair.seeds, pair.needed) == (1, None)


def test_what_is_alike_on_every_seed_asks_for_no_more() -> None:
    found = over(*TRIALS, *confirmed([0.3] * 3, [0.3 + 1e-17] * 3, [0.2] * 3))
    assert first_step(PLAIN, found)[0] == "enough"
    found = over(*TRIALS, *confirmed([0.3] * 3, [0.7, 0.7 + 1e-16, 0.7], [0.7] * 3))
    assert first_step(PLAIN, found)[0] == "enough"
    rivals = only(DifferenceToRunnerUp, Results(PLAIN, found)).comparison
    assert (
        rivals.runner_up.trial_number,
        rivals.difference_to_runner_up.value,
        rivals.difference_to_runner_up.has_zero_width,
    ) == (2, 0.0, True)


def test_what_the_best_was_worth_as_a_rules_pick_is_no_matter_of_luck() -> None:
    """A search of a suite confirms nothing, but tests what its rules pick on fresh seeds."""
    spec = quickstart("train.epochs=1", "search.early_stopping={name: none}", "search.baseline=null",
                      "search.trials=10", "search.confirm={top: 0, seeds: 2, rules: [accuracy]}")  # fmt: skip
    trials = [Told("search", [0.5 + 0.01 * (number == 4)]) for number in range(10)]
    again = [Told("rule", [0.4 + 0.1 * seed], seed=seed, repeats=4, tested={"test/accuracy": 0.3}) for seed in (1, 2)]
    results = Results(spec, over(*trials, *again))
    arm = only(RulePickValues, results).arm
    assert (arm.trial_number, arm.metric_seeds("val/accuracy")) == (4, [1, 2])
    assert [spread.mean for name in ("val/accuracy", "test/accuracy") if (spread := arm.metric_statistics(name))] == [
        pytest.approx(0.55),
        pytest.approx(0.3),
    ]
    assert [step.why for step in next_steps(results)] == [NoStepLeft(10, False, False, "")]


def test_a_rules_pick_without_a_baseline_on_its_seeds_is_to_be_confirmed() -> None:
    spec = quickstart("train.epochs=1", "search.early_stopping={name: none}", "search.trials=11",
                      "search.confirm={top: 0, seeds: 2, rules: [accuracy]}")  # fmt: skip
    trials = [Told("baseline", [0.5]), *(Told("search", [0.5 + 0.01 * (number == 4)]) for number in range(10))]
    again = [Told("rule", [0.4 + 0.1 * seed], seed=seed, repeats=5, tested={"test/accuracy": 0.3}) for seed in (1, 2)]
    step = next_steps(Results(spec, over(*trials, *again)))[0]
    assert (step.kind, step.why) == ("confirm", NextStepReason("baseline on own seeds alone"))


def test_the_commands_to_type_end_the_lead_and_are_not_broken_at_a_hyphen() -> None:
    for length in range(1, 40, 3):
        spec = quickstart(f"name={'a-' * length}b", "train.epochs=1", "search.early_stopping={name: none}",
                          "search.confirm={top: 0}")  # fmt: skip
        found = report_lead.build_report_lead(Results(spec, over(*TRIALS)))
        command = found.next[0].command
        or_train = SuggestedCommand(f"study train {spec.name}", "Or, to train the result on new seeds")
        assert list(found.parts["Next"][-2:]) == [SuggestedCommand(command or ""), or_train], "as the run's end says"
        assert spec.name in " ".join(report_lead.report_lead_lines(found)).split(), (
            "the name is one word, as it is typed"
        )


def test_the_place_of_the_best_is_not_taken_for_its_number() -> None:
    """With replicates the second configuration of the search is not trial 2."""
    spec = quickstart("train.epochs=1", "search.early_stopping={name: none}", "search.confirm={top: 0}",
                      "search.replicates=2")  # fmt: skip
    told = [Told("baseline", [0.5]), Told("replicate", [0.5], seed=1, repeats=0)]
    for place, value in enumerate((0.6, 0.7)):
        told += [Told("search", [value]), Told("replicate", [value + 0.01], seed=1, repeats=2 + 2 * place)]
    results = Results(spec, over(*told))
    assert only(GainOverBaseline, results).best.trial_number == 4
    assert only(PositionOfBest, results).came == PositionInSearch(2, 2)


def test_the_splits_error_is_said_of_the_side_that_it_is_of() -> None:
    errors = {"val/worst_group_accuracy": 0.4, "val/worst_group_accuracy_standard_error": 0.03}
    told = [Told("baseline", [0.5], further=errors), Told("search", [0.6], further=errors)]
    for trials, arm in ((told[:1], "the baseline"), (told, "trial 1"), ([Told("final", [0.5], further=errors)], "")):
        text = str(list(group_blocks_below_summary(Results(PLAIN, record(*trials))))[-1])
        assert f"standard error of the value of {arm or 'the final training'}, because" in text


VALUES = [place / 20 for place in range(9)]
CHOICES = ", ".join(map(str, VALUES))


def test_a_space_that_is_used_up_is_not_to_be_searched_further() -> None:
    spec = quickstart("train.epochs=1", "search.early_stopping={name: none}", "search.confirm={top: 0}",
                      "search.baseline=null", f"search.space={{method.epsilon: {{choices: [{CHOICES}]}}}}")  # fmt: skip
    late = [Told("search", [value], params={"method.epsilon": value}) for value in VALUES]
    assert first_step(spec, over(*late[1:])) == ("search", "study resume quickstart --trials +4")
    assert [step.kind for step in next_steps(Results(spec, over(*late)))] == ["confirm"]


def test_a_study_that_is_not_over_is_gone_on_with() -> None:
    found = record(*TRIALS)
    found.state = "interrupted"
    assert first_step(PLAIN, found) == ("resume", "study resume quickstart")
    found.state = "running"
    assert next_steps(Results(PLAIN, found)) == []


def test_a_best_at_the_end_of_its_range_asks_for_a_wider_one() -> None:
    spec = quickstart("train.epochs=1", "search.space={method.lambda: {low: 0.0, high: 2.0}}", "search.baseline=null",
                      "search.early_stopping={name: none}", "search.confirm={top: 0}")  # fmt: skip
    rising = [Told("search", [0.5 + at / 100], params={"method.lambda": at / 10}) for at in range(20, -1, -1)]
    step = next_steps(Results(spec, over(*rising)))[0]
    assert (step.kind, step.command) == ("widen", None)
    assert isinstance(step.why, BestAtRangeEdge)
    assert (step.why.edge.key, step.why.edge.value, step.why.edge.end) == ("method.lambda", 2.0, "high")
    falling = [Told("search", [0.5 - at / 100], params={"method.lambda": at / 10}) for at in range(21)]
    assert next_steps(Results(spec, over(*falling)))[0].kind != "widen", "lambda cannot be below 0"


def test_the_lead_speaks_of_all_metrics_and_of_limits_that_are_broken() -> None:
    spec = quickstart("train.epochs=1", "search.metric=[val/accuracy, val/equalized_odds]",
                      "search.constraints=['val/equalized_odds <= 0.1']",
        "search.early_stopping={name: none}", "search.confirm={top: 0}")  # fmt: skip
    values = [("baseline", 0.5, 0.3), ("search", 0.7, 0.05), ("search", 0.6, 0.02), ("search", 0.9, 0.4)]
    found = over(*(Told(stage, [value], further={"val/equalized_odds": gap}) for stage, value, gap in values))
    results = Results(spec, found)
    gains = only(FrontGainsOverBaseline, results).gains
    assert gains["val/equalized_odds"].value == pytest.approx(-0.25)
    assert gains["val/equalized_odds"].is_clear is None, "one seed"
    chosen, front = only(ChosenFromFront, results), only(ConfigurationsOnFront, results)
    assert (chosen.chosen[0].trial.number, chosen.is_result) == (1, True)
    assert [candidate.trial.number for candidate, _ in front.front] == [1, 2]
    limit = only(ConstraintCheck, results)
    assert [(arm.label, spread.mean) for arm, spread in limit.breaking] == [("baseline", 0.3)]
    assert [(arm.label, spread.mean) for arm, spread in limit.keeping] == [("trial 1", 0.05)]
    assert not said(BestAmongRivals, results), "a front has no single best"
    assert said(PositionOfBest, results) == [PositionOfBest(PositionInSearch(2, 3), True)]
    front = front_table(Results(spec, found))
    assert list(front["trial"]) == ["1, chosen", "2"]
    note = front_table_note(Results(spec, found))
    assert note.startswith("No other configuration beats one of these in every metric on the validation split")
    assert "for none of these 2." in note


def test_a_front_has_its_test_values_beside_it() -> None:
    """On validation 1 and 2 are a front; on test 1 is worse than 2 in both."""
    spec = quickstart(
        "train.epochs=1",
        "search.metric=[val/accuracy, val/equalized_odds]",
        "search.early_stopping={name: none}",
        "search.confirm={top: 2, seeds: 2}",
    )
    gap, values = "val/equalized_odds", {1: (0.9, 0.2, 0.7, 0.2), 2: (0.8, 0.1, 0.75, 0.1)}
    told = [Told("baseline", [0.5], further={gap: 0.4})]
    told += [Told("search", [accuracy], further={gap: odds}) for accuracy, odds, *_ in values.values()]
    for of, (accuracy, odds, *test) in values.items():
        tested = dict(zip(("test/accuracy", "test/equalized_odds"), test, strict=True))
        told += [
            Told("confirm", [accuracy], further={gap: odds}, seed=seed, repeats=of, tested=tested) for seed in (1, 2)
        ]
    front = front_table(Results(spec, over(*told)))
    assert list(front["trial"]) == ["1, chosen", "2"]
    assert list(front["test/accuracy on fresh seeds"]) == ["70.0 ± 0.0%", "75.0 ± 0.0%"]
    assert list(front["test/equalized_odds on fresh seeds"]) == ["0.200 ± 0.000", "0.100 ± 0.000"]


def test_test_values_of_the_searchs_own_seed_are_not_told_as_of_fresh_ones() -> None:
    spec = quickstart(
        "train.epochs=1",
        "train.report_test=true",
        "search.metric=[val/accuracy, val/equalized_odds]",
        "search.early_stopping={name: none}",
        "search.confirm={top: 0}",
    )
    tested = {"test/accuracy": 0.7, "test/equalized_odds": 0.2}
    found = over(Told("search", [0.9], further={"val/equalized_odds": 0.2, **tested}))
    assert list(front_table(Results(spec, found))["test/accuracy"]) == ["70.0%"]


def test_a_baseline_that_beats_the_search_is_the_best_of_the_study() -> None:
    found = over(*TRIALS, *confirmed([0.83, 0.85, 0.84], [0.70, 0.72, 0.75], [0.59, 0.62, 0.64]))
    results = Results(PLAIN, found)
    gain = only(GainOverBaseline, results)
    assert (gain.verdict, gain.won) == ("negative", 0)
    assert not said(BestAmongRivals, results)
    assert not said(ResultParameters, results), "whose values they are would be in doubt"


def test_the_trade_off_says_what_rose_what_fell_and_which_configuration_is_milder() -> None:
    results = Results(AGAINST, traded())
    trade_off = only(AccuracyTradeOff, results)
    assert list(trade_off.changes) == ["test/aligned_accuracy", "test/accuracy"], "the result tells the study's own"
    aligned, overall = trade_off.changes.values()
    assert (aligned.value, aligned.has_zero_width) == (pytest.approx(-0.34), True)
    assert (overall.value, overall.is_clear, overall.has_zero_width) == (pytest.approx(-0.29), True, False)
    milder = only(SmallerAccuracyLoss, results)
    assert (milder.trial, milder.value, milder.accuracy, milder.least) == (2, 0.45, 0.90, 0.87)
    assert (milder.where, milder.best_accuracy, milder.best_where) == ("in the search", 0.63, "on fresh seeds")


def test_the_trade_off_says_what_rose_with_each_group_alike_and_what_has_more_without_a_search() -> None:
    """Of data whose bias classes have no class of their own nothing agrees or conflicts with the bias."""
    results = Results(FAIR_LOSS, ahead_without_search())
    fair, overall = only(AccuracyTradeOff, results).changes.items()
    assert (fair[0], fair[1].value) == ("test/shrunk_unbiased_accuracy", pytest.approx(0.08))
    assert (overall[0], overall[1].value) == ("test/accuracy", pytest.approx(-0.22))
    more = only(ReferenceMoreAccurate, results)
    assert (more.reference.name, more.metrics) == ("logistic_regression_class_balanced", [fair[0], overall[0]])
    assert str(more) == (
        "Class-balanced logistic regression, which needs no search, has more than trial 1 "
        "(test/shrunk_unbiased_accuracy 64.0% and test/accuracy 84.0%), but on validation "
        "val/shrunk_unbiased_log_loss 1.400 against 0.900 ± 0.010."
    )


def test_of_several_metrics_too_the_split_that_chose_comes_first() -> None:
    """On validation both have the same accuracy; two samples of a small test split make all the difference."""
    results = Results(of_own_function(), equal_on_validation())
    gain = only(FrontGainsOverBaseline, results)
    assert list(gain.gains) == ["val/accuracy", "val/used", "test/accuracy", "test/used"]
    decided, tested = str(gain).split(" On the test split, which was not used to choose: ")
    assert "val/accuracy 92.1 ± 0.0% against 92.1 ± 0.0%, the same on every seed; val/used" in decided
    assert tested.startswith(
        "test/accuracy 98.1 ± 0.0% against 94.4 ± 0.0%, +3.7 points on every seed alike, better on these"
    )
    assert report_lead_statements(results)["How sure"][-1] == SampleErrorUnknown("val/accuracy")


def test_of_a_metric_that_is_the_functions_own_it_is_said_that_other_samples_may_differ() -> None:
    """One row of 143 more on each seed: no seed says what other rows would."""
    spec = replace(
        of_own_function(),
        search=of_own_function().search.model_copy(update={"metric": "val/right", "direction": "max"}),
    )

    def told(stage: str, right: int, seed: int = 0, **repeats: int) -> Told:
        params = {"method.rate": right / 1000}
        return Told(stage, [0.9], seed=seed, further={"val/right": right / 143}, params=params, **repeats)

    again = (told("confirm", right, seed, repeats=of) for of, right in enumerate((100, 101)) for seed in (1, 2, 3))
    results = Results(spec, over(told("baseline", 100), told("search", 101), *again))
    assert str(only(MetricDifferenceToBaseline, results)).endswith(
        "val/right: +0.007 on every seed alike, better on these samples."
    )
    said_of_it = "How much val/right would differ on other samples is not known: ± and intervals are over seeds alone."
    assert str(report_lead_statements(results)["How sure"][-1]) == said_of_it


def test_what_breaks_a_limit_is_not_offered_as_the_milder_one() -> None:
    """Trial 2, which loses least accuracy, has 45% right against the bias; the limit asks for half of them."""
    limited = quickstart(
        *WHOLE,
        "search.metric=val/conflicting_accuracy",
        "search.confirm={top: 1, seeds: 3}",
        "search.constraints=['val/conflicting_accuracy >= 0.5']",
    )
    assert said(AccuracyTradeOff, Results(limited, traded()))
    assert not said(SmallerAccuracyLoss, Results(limited, traded()))


def test_a_milder_configuration_that_ran_on_fresh_seeds_is_told_by_these() -> None:
    milder = only(SmallerAccuracyLoss, Results(AGAINST, traded(milder=0.43)))
    assert (milder.trial, milder.where, milder.value, milder.accuracy) == (2, "on fresh seeds", 0.43, 0.89)
    assert (milder.best_accuracy, milder.best_where) == (0.63, "")
    assert milder.command == f"study export {AGAINST.name} --trial 2"


def test_a_reference_that_a_milder_configuration_is_set_beside_ran_on_no_fresh_seeds() -> None:
    results = Results(AGAINST, traded())
    before, _ = results.baseline_and_best_arms
    assert before is not None
    reference = FittedReference("logistic_regression", {"val/accuracy": 0.7}, None, {})
    best = arm_of_candidate(quickstart("train.seed=9"), reference)  # fitted on another seed than the search's
    (milder,) = smaller_accuracy_loss_statements(results, before, best)
    assert (milder.where, milder.best_accuracy, milder.best_where) == ("in the search", 0.7, "")


@pytest.mark.parametrize(
    ("lacking", "ran"), [(1, "some of the folds (2 to 3 seeds)"), (0, "all folds (3 seeds in all)")]
)
def test_what_has_not_run_on_all_folds_is_not_said_to_have(lacking: int, ran: str) -> None:
    """Of two configurations the milder one lacks a fold, and is no alternative yet."""
    spec = quickstart(
        *("data.val=biased", "data.folds=3", "search.confirm={top: 2, folds: all}"),
        *("search.metric=val/conflicting_accuracy", "search.trials=3"),
    )
    values = [(0.38, 0.98, 0.92), (0.54, 0.64, 0.63), (0.45, 0.95, 0.89)]
    told = [measured("search" if at else "baseline", *one, fold=0) for at, one in enumerate(values)]
    for at, one in enumerate(values):
        told += [measured("confirm", *one, fold + 1, repeats=at, fold=fold) for fold in range(3 - lacking * (at == 2))]
    results = Results(spec, over(*told))
    assert f"that ran on {ran}" in str(only(BestAmongRivals, results))
    assert bool(said(SmallerAccuracyLoss, results)) is not bool(lacking)


def test_a_change_without_an_interval_is_told_with_its_direction_and_why() -> None:
    searched = Results(AGAINST, traded())
    before, best = searched.baseline_and_best_arms
    assert before is not None
    assert best is not None
    fitted = replace(best, label="logistic regression", trial_number=NO_TRIAL_NUMBER)
    for arm, why in ((best, "it takes two seeds or more"), (fitted, "logistic regression has no seeds")):
        told = str(AccuracyTradeOff("test", before, arm, {"test/accuracy": Difference(-0.161, None)}))
        assert " accuracy on the test split fell overall, from " in told
        assert told.endswith(f": -16.1 points. There is no interval: {why}.")


def test_overall_accuracy_is_told_with_the_share_of_samples_that_agree_with_the_bias() -> None:
    """Of 84 samples of the split 70 agree: a fall overall is mostly theirs."""
    found = traded()
    found.group_sample_counts = GroupSampleCounts.from_sizes({"test": [[40, 8], [6, 30]], "aligned": [0, 1]})
    told = str(only(AccuracyTradeOff, Results(AGAINST, found)))
    assert told.endswith("Of the test split's samples 83% agree with the bias: overall accuracy is mostly theirs.")
    found.group_sample_counts = GroupSampleCounts.from_sizes({"test": [[8, 40], [30, 6]], "aligned": [0, 1]})
    assert "agree with the bias: overall" not in str(only(AccuracyTradeOff, Results(AGAINST, found)))


@pytest.mark.parametrize("interval", [(-0.112, -0.088), None])
@pytest.mark.parametrize(("error", "is_change"), [(0.02, True), (0.054, False)])
def test_a_change_within_the_splits_error_is_no_fall(
    error: float, is_change: bool, interval: tuple[float, float] | None
) -> None:
    """The same samples judged on other seeds, or on one, say nothing of other samples."""
    before, best = Results(AGAINST, traded()).baseline_and_best_arms
    assert before is not None
    assert best is not None
    change = Difference(-0.1, interval, True, 1)
    told = str(AccuracyTradeOff("test", before, best, {"test/accuracy": change}, {"test/accuracy": error}))
    assert ("fell overall" in told) == is_change
    assert ("the split's error is 5.4 points" in told) != is_change
    assert ("95% interval" in told) == (interval is not None)


@pytest.mark.parametrize(("plain", "is_told"), [((0.39, 0.49), True), ((0.49, 0.39), False)])
def test_where_the_plain_accuracy_of_groups_goes_the_other_way_it_is_told(
    plain: tuple[float, float], is_told: bool
) -> None:
    """The shrunk one falls, as small groups are taken for their class's mean."""

    def told(stage: str, shrunk: float, unbiased: float) -> Told:
        further = {"val/shrunk_unbiased_accuracy": shrunk, "val/unbiased_accuracy": unbiased, "val/accuracy": 0.9}
        params = {"method.alpha": 0.5} if stage == "search" else {}
        loss = 1.5 if stage == "baseline" else 0.9
        return Told(stage, [loss], metric="val/shrunk_unbiased_log_loss", further=further, params=params)

    found = over(told("baseline", 0.71, plain[0]), told("search", 0.68, plain[1]))
    changes = only(AccuracyTradeOff, Results(FAIR_LOSS, found)).changes
    assert ("val/unbiased_accuracy" in changes) is is_told
    assert changes["val/shrunk_unbiased_accuracy"].value == pytest.approx(-0.03)


def test_the_result_is_not_offered_as_the_milder_one_for_its_luck_in_the_search() -> None:
    assert only(SmallerAccuracyLoss, Results(AGAINST, traded(searched=0.91))).trial == 2


@pytest.mark.parametrize(("smallest", "is_shown"), [(9, False), (10, True)])
def test_a_summary_begins_with_the_studys_metric_and_leaves_out_groups_of_a_few_samples(
    smallest: int, is_shown: bool
) -> None:
    known = [f"{split}/{name}" for split in ("val", "test") for name in ("accuracy", "worst_group_accuracy", "auc")]
    cells = {"test": [[40, smallest], [0, 40]]}
    shown = list_summary_metrics(["val/auc"], known, cells)
    assert shown[:3] == ["test/auc", "val/auc", "test/accuracy"]
    assert ("test/worst_group_accuracy" in shown) == is_shown


@pytest.mark.parametrize(
    ("cells", "is_shown"),
    [([[400, 0], [0, 400], [40, 50]], True), ([[400, 0], [0, 400], [200, 60]], False), ([], False)],
)
def test_a_summary_has_the_worst_class_where_one_is_rare(cells: list[list[int]], is_shown: bool) -> None:
    known = [f"{split}/{name}" for split in ("val", "test") for name in ("accuracy", "worst_class_accuracy")]
    shown = list_summary_metrics(["val/accuracy"], known, {"test": cells} if cells else {})
    assert ("test/worst_class_accuracy" in shown) == is_shown


def test_what_led_the_search_and_breaks_a_limit_on_fresh_seeds_is_told() -> None:
    broken = only(ConstraintBrokenOnFreshSeeds, Results(LIMITED, broken_anew(0.2)))
    assert (broken.arm.trial_number, broken.constraint.metric) == (1, "val/equalized_odds")
    assert broken.statistics.mean == pytest.approx(0.2)
    assert said(ConstraintBrokenOnFreshSeeds, Results(LIMITED, broken_anew(0.08))) == []


@pytest.mark.parametrize(
    ("conflicting", "error", "is_told"), [(0.9, 0.008, True), (0.86, 0.008, False), (0.9, 0.03, False)]
)
def test_where_the_baseline_follows_no_bias_debiasing_is_not_needed(
    conflicting: float, error: float, is_told: bool
) -> None:
    found = said(DebiasingNotNeeded, Results(AGAINST, level(conflicting, error)))
    assert [one.split for one in found] == ["test"] * is_told
    assert said(DebiasingNotNeeded, Results(AGAINST, traded())) == []


def test_where_it_is_not_known_whether_the_best_is_better_nobody_is_told_that_debiasing_is_not_needed() -> None:
    off = (-0.003, 0.0, 0.003)
    found = over(
        measured("baseline", 0.9, 0.91, 0.9, error=0.008),
        measured("search", 0.99, 0.99, 0.99, error=0.003),
        *(measured("confirm", 0.9 + by, 0.91, 0.9, seed, 0.008, repeats=0) for seed, by in enumerate(off, 1)),
        measured("confirm", 0.99, 0.99, 0.99, 1, 0.003, repeats=1),
    )
    assert said(DebiasingNotNeeded, Results(AGAINST, found)) == []


def test_with_two_metrics_too_a_guess_has_no_gain_to_its_credit() -> None:
    shares = {"val/unbiased_accuracy": 0.52, "val/unbiased_accuracy_standard_error": 0.04}
    spec = quickstart("search.metric=[val/accuracy, val/equalized_odds]", "search.confirm={top: 1, seeds: 3}")
    off = (-0.003, 0.0, 0.003)

    def told(stage: str, value: float, odds: float, seed: int = 0, **given: Any) -> Told:
        return Told(stage, [value], seed=seed, further={**shares, "val/equalized_odds": odds}, **given)

    found = over(
        told("baseline", 0.6, 0.3),
        told("search", 0.8, 0.2, params={"method.alpha": 0.5}),
        *(told("confirm", 0.6 + by, 0.3 + by, seed, repeats=0) for seed, by in enumerate(off, 1)),
        *(told("confirm", 0.8 - by, 0.2 + by, seed, repeats=1) for seed, by in enumerate(off, 1)),
    )
    found.group_sample_counts = GroupSampleCounts.from_sizes({"val": [[40, 8], [6, 30]], "aligned": [0, 1]})
    gain = only(FrontGainsOverBaseline, Results(spec, found))
    assert gain.is_guess
    assert any(one.is_clear for one in gain.gains.values())
    assert "beyond the spread" not in str(gain)
    assert "beyond the spread" in str(replace(gain, is_guess=False))
    worse = {"val/accuracy": Difference(-0.2, (-0.3, -0.1), True)}
    assert "beyond the spread" in str(replace(gain, gains=worse)), "a loss is told of a guess, too"


def test_a_count_and_its_interval_are_whole_numbers() -> None:
    gap = Difference(1848.0, (1840.6, 1855.4), n_candidates=1, standard_error=3.0, degrees_of_freedom=2.0)
    assert formatting.format_difference_interval("val/params", gap) == "+1841 to +1855"


def test_no_more_seeds_where_the_difference_to_the_runner_up_is_nothing_beside_the_gain() -> None:
    """The interval of 0.001 reaches to 0.004; the gain is 0.3, then 0.02."""
    alike = over(*TRIALS, *confirmed([0.4, 0.4, 0.41], [0.70, 0.702, 0.704], [0.70, 0.70, 0.703]))
    reason = only(MoreSeedsNotNeeded, Results(PLAIN, alike))
    assert (reason.best.trial_number, reason.other.trial_number) == (1, 2)
    assert reason.reach < 0.1 * reason.gain == pytest.approx(0.1 * 0.2987, rel=0.01)
    assert "val/accuracy" in str(reason)
    assert first_step(PLAIN, alike) == ("enough", None)
    small = over(*TRIALS, *confirmed([0.68, 0.68, 0.69], [0.70, 0.702, 0.704], [0.70, 0.70, 0.703]))
    assert only(UndecidedBySeeds, Results(PLAIN, small)).other.trial_number == 2


def test_no_more_seeds_where_both_have_every_sample_right() -> None:
    spec = quickstart("search.metric=val/log_loss", *WHOLE, "search.confirm={top: 2, seeds: 3}", "search.baseline=null")

    def right(stage: str, loss: float, **given: Any) -> Told:
        return Told(stage, [loss], metric="val/log_loss", further={"val/accuracy": 1.0}, **given)

    trials = [right("search", 0.02, params={"method.alpha": alpha}) for alpha in (0.1, 0.2)]
    losses = {0: (0.02, 0.021, 0.025), 1: (0.021, 0.024, 0.023)}
    again = [
        right("confirm", loss, seed=seed, repeats=of, params={"method.alpha": 0.1 * (of + 1)})
        for of, each in losses.items()
        for seed, loss in enumerate(each, 1)
    ]
    results = Results(spec, over(*trials, *again))
    assert only(MoreSeedsNotNeeded, results).reach is None
    assert [step.kind for step in next_steps(results)] == ["enough"]


NUMBER = re.compile(r"\d\.\d|\d%|\d points")
METRIC = re.compile(r"(?:val|test|train)/\w+|[Aa]ccuracy|right|log loss|standard error|trial time|confidence")


@pytest.mark.parametrize("title", ["Result", "Trade-off", "How sure"])
def test_each_sentence_with_a_number_names_its_metric(title: str) -> None:
    sentences = [
        str(one) for results in reading.told().values() for one in report_lead_statements(results).get(title, ())
    ]
    numbered = [text for text in sentences if NUMBER.search(text.partition(" has ")[0])]
    assert len(numbered) > 4
    assert [text for text in numbered if not METRIC.search(text)] == []
