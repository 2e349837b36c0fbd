"""The lead of a report: each sentence where its numbers carry it, and the next step by its rule."""

import pytest
from helpers import Told, quickstart, record

from study.analysis.report import result_sentences
from study.analysis.report.front_section import front_note, printed_front
from study.analysis.report.sections import groups
from study.analysis.statistics.next_step import next_steps
from study.home.record import StudyRecord
from study.metrics import selection_rules
from study.ranking import Results
from study.ranking.documents import plain
from study.spec import StudySpec

PLAIN = quickstart("train.epochs=1", "search.early_stopping={name: none}", "search.confirm={top: 2, seeds: 3}")
WON = {"method.alpha": 0.02, "method.lambda": 1.5}
TRIALS = [Told("baseline", [0.5]), Told("search", [0.7], params=WON), *(Told("search", [0.6]) for _ in range(9))]


def over(*trials: Told) -> StudyRecord:
    """A study that is complete."""
    found = record(*trials)
    found.state = "complete"
    return found


def confirmed(*values: list[float]) -> list[Told]:
    """Fresh seeds of the baseline, trial 1 and trial 2."""
    return [
        Told("confirm", [value], seed=seed, repeats=of)
        for of, each in enumerate(values)
        for seed, value in enumerate(each, 1)
    ]


def said(spec: StudySpec, found: StudyRecord) -> dict[str, str]:
    return {part.title: part.text for part in result_sentences.lead(Results(spec, found))}


def first_step(spec: StudySpec, found: StudyRecord) -> tuple[str, str | None]:
    step = next_steps(Results(spec, found))[0]
    return step.kind, step.command


def test_what_won_how_sure_what_it_cost_and_what_next() -> None:
    found = over(*TRIALS, *confirmed([0.50, 0.52, 0.54], [0.70, 0.72, 0.75], [0.59, 0.62, 0.64]))
    parts = said(PLAIN, found)
    assert list(parts) == ["Result", "How sure", "Search", "Cost", "Next"]
    assert parts["Result"].endswith("Trial 1 has method.alpha 0.02, method.lambda 1.5.")
    assert parts["How sure"].startswith("Trial 1 is the best of the 2 configurations that ran on 3 seeds (95% conf")
    assert "The difference to the runner-up, trial 2, is +10.7 points (95% interval +" in parts["How sure"]
    assert parts["Search"] == "The best of the search came as the 1st of 10."
    assert parts["Cost"].startswith("11 configurations and 9 further trials on other seeds, 20 epochs: ")
    assert parts["Cost"].endswith("no GPU. The test split was read 0 times.")
    assert parts["Next"] == ("Nothing that was measured asks for a wider range, more trials or more seeds.")
    assert plain(result_sentences.document(Results(PLAIN, found)))["runner_up"]["trial"] == 2
    printed = result_sentences.lines(result_sentences.document(Results(PLAIN, found)), but=("Result",))
    assert printed[0].startswith("how sure  Trial 1 is the best")
    assert all(len(line) <= result_sentences.WIDTH for line in printed)


def test_more_seeds_where_the_runner_up_cannot_be_told_from_the_best() -> None:
    found = over(*TRIALS, *confirmed([0.30, 0.32, 0.34], [0.70, 0.72, 0.75], [0.665, 0.665, 0.675]))
    assert said(PLAIN, found)["How sure"].startswith("Of the 2 configurations that ran on 3 seeds, trial 1 cannot be")
    kind, command = first_step(PLAIN, found)
    assert kind == "seeds"
    assert command is not None
    assert command.startswith("study confirm quickstart --top 2 --seeds ")
    assert 3 < int(command.split()[-1]) <= 10
    number = command.split()[-1]
    assert (
        f" and more than 20 seeds in all (90% confidence); {number} is a good next step." in said(PLAIN, found)["Next"]
    )


def test_how_many_seeds_each_ran_on_is_said_of_all() -> None:
    found = over(*TRIALS, *confirmed([0.30, 0.32, 0.34], [0.70, 0.72, 0.75, 0.74, 0.73], [0.665, 0.665, 0.675]))
    assert "Of the 2 configurations that ran on 3 to 5 seeds, trial 1 " in said(PLAIN, found)["How sure"]
    found = over(*TRIALS, *confirmed([0.30, 0.32, 0.34], [0.70, 0.72, 0.75], [0.665]))
    sure = said(PLAIN, found)["How sure"]
    assert "Of the 2 configurations that ran on 1 to 3 seeds, trial 1 cannot be told from trial 2." in sure


def test_with_limits_the_others_are_those_that_keep_them() -> None:
    spec = quickstart("train.epochs=1", "search.early_stopping={name: none}", "search.trials=11",
                      "search.confirm={top: 0}", "search.constraints=['val/unbiased_accuracy >= 0.5']")  # fmt: skip
    told = [Told("search", [0.9 - at / 10], further={"val/unbiased_accuracy": at / 4}) for at in range(4)]
    assert "tells trial 2 from the other complete configuration that keep" in said(spec, over(*told))["How sure"]


def test_two_seeds_that_do_not_tell_are_not_said_to_be_within_a_spread() -> None:
    spec = quickstart("train.epochs=1", "search.early_stopping={name: none}", "search.trials=11",
                      "search.confirm={top: 1, seeds: 2}")  # fmt: skip
    result = said(spec, over(*TRIALS, *confirmed([0.5, 0.6], [0.8, 0.7])))["Result"]
    assert "has +20.0 points, which two seeds cannot tell from luck." in result
    assert "within" not in result


def test_one_seed_asks_for_more() -> None:
    diverged = [Told("confirm", [], "failed", seed=seed, repeats=of) for of in (0, 1, 2) for seed in (2, 3)]
    found = over(*TRIALS, *confirmed([0.30], [0.70], [0.66]), *diverged)
    assert first_step(PLAIN, found) == ("seeds", "study confirm quickstart --top 1 --seeds 5")
    assert "ran on 1 seed in common, which cannot tell them apart" in said(PLAIN, found)["Next"]


def test_what_is_alike_on_every_seed_asks_for_no_more() -> None:
    found = over(*TRIALS, *confirmed([0.3] * 3, [0.3 + 1e-17] * 3, [0.2] * 3))
    assert first_step(PLAIN, found)[0] == "enough"
    found = over(*TRIALS, *confirmed([0.3] * 3, [0.7, 0.7 + 1e-16, 0.7], [0.7] * 3))
    assert first_step(PLAIN, found)[0] == "enough"
    sure = said(PLAIN, found)["How sure"]
    assert sure.endswith("The difference to the runner-up, trial 2, is +0.0 points on every seed alike.")


def test_what_the_best_was_worth_as_a_rules_pick_is_no_matter_of_luck() -> None:
    """A search of a suite confirms nothing, but tests what its rules pick on fresh seeds."""
    spec = quickstart("train.epochs=1", "search.early_stopping={name: none}", "search.baseline=null",
                      "search.trials=10", "search.confirm={top: 0, seeds: 2, rules: [accuracy]}")  # fmt: skip
    trials = [Told("search", [0.5 + 0.01 * (number == 4)]) for number in range(10)]
    fresh = [Told("rule", [0.4 + 0.1 * seed], seed=seed, repeats=4, tested={"test/accuracy": 0.3}) for seed in (1, 2)]
    parts = said(spec, over(*trials, *fresh))
    values = "val/accuracy 55.0 ± 7.1% on 2 seeds (1, 2), and test/accuracy 30.0 ± 0.0%."
    assert f"As a rule's pick it ran on fresh seeds, too: {values}" in parts["Result"]
    assert parts["Next"].endswith("Nothing that was measured asks for a wider range or more trials.")
    assert "luck" not in parts["Next"]


def test_a_rules_pick_without_a_baseline_on_its_seeds_is_to_be_confirmed() -> None:
    spec = quickstart("train.epochs=1", "search.early_stopping={name: none}", "search.trials=11",
                      "search.confirm={top: 0, seeds: 2, rules: [accuracy]}")  # fmt: skip
    trials = [Told("baseline", [0.5]), *(Told("search", [0.5 + 0.01 * (number == 4)]) for number in range(10))]
    fresh = [Told("rule", [0.4 + 0.1 * seed], seed=seed, repeats=5, tested={"test/accuracy": 0.3}) for seed in (1, 2)]
    found = over(*trials, *fresh)
    assert first_step(spec, found)[0] == "confirm"
    assert "The baseline ran on the search's own seeds alone" in said(spec, found)["Next"]


def test_the_command_to_type_ends_the_lead_and_is_not_broken_at_a_hyphen() -> None:
    for length in range(1, 40, 3):
        spec = quickstart(f"name={'a-' * length}b", "train.epochs=1", "search.early_stopping={name: none}",
                          "search.confirm={top: 0}")  # fmt: skip
        found = result_sentences.document(Results(spec, over(*TRIALS)))
        command = found.next[0].command
        assert found.parts["Next"][-1] == f"The command: {command}"
        assert spec.name in " ".join(result_sentences.lines(found)).split(), "the name is one word, as it is typed"


def test_the_place_of_the_best_is_not_taken_for_its_number() -> None:
    """With replicates the second configuration of the search is not trial 2."""
    spec = quickstart("train.epochs=1", "search.early_stopping={name: none}", "search.confirm={top: 0}",
                      "search.replicates=2")  # fmt: skip
    told = [Told("baseline", [0.5]), Told("replicate", [0.5], seed=1, repeats=0)]
    for place, value in enumerate((0.6, 0.7)):
        told += [Told("search", [value]), Told("replicate", [value + 0.01], seed=1, repeats=2 + 2 * place)]
    parts = said(spec, over(*told))
    assert "(trial 4)" in parts["Result"]
    assert parts["Search"] == "The best of the search came as the 2nd of 2."


def test_the_splits_error_is_said_of_the_side_that_it_is_of() -> None:
    errors = {"val/worst_group_accuracy": 0.4, "val/worst_group_accuracy_standard_error": 0.03}
    told = [Told("baseline", [0.5], further=errors), Told("search", [0.6], further=errors)]
    for trials, side in ((told[:1], "the baseline"), (told, "trial 1"), ([Told("final", [0.5], further=errors)], "")):
        text = list(groups(Results(PLAIN, record(*trials))))[-1]
        assert f"standard error of the value of {side or 'the final training'}, because" in text


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
    assert "The best method.lambda, 2, lies at the high end of its range" in step.why
    falling = [Told("search", [0.5 - at / 100], params={"method.lambda": at / 10}) for at in range(21)]
    assert next_steps(Results(spec, over(*falling)))[0].kind != "widen", "lambda cannot be below 0"


def test_the_lead_speaks_of_all_metrics_and_of_limits_that_are_broken() -> None:
    spec = quickstart("train.epochs=1", "search.metric=[val/accuracy, val/equalized_odds]",
                      "search.constraints=['val/equalized_odds <= 0.1']",
        "search.early_stopping={name: none}", "search.confirm={top: 0}")  # fmt: skip
    values = [("baseline", 0.5, 0.3), ("search", 0.7, 0.05), ("search", 0.6, 0.02), ("search", 0.9, 0.4)]
    found = over(*(Told(stage, [value], further={"val/equalized_odds": gap}) for stage, value, gap in values))
    result = said(spec, found)["Result"]
    assert "val/equalized_odds 0.050 against 0.300, -0.250, which one seed cannot tell" in result
    assert (
        "Of the front trial 1 is chosen, which best.yaml holds: the best val/accuracy (search.choose: first)." in result
    )
    assert "The limit val/equalized_odds <= 0.1: the baseline breaks it (0.300), trial 1 keeps it (0.050)." in result
    assert "of the search, on seed 0, the front is trial 1 (val/accuracy 70.0%, val/equalized_odds 0.050) and" in result
    assert "How sure" not in said(spec, found), "a front has no single best"
    assert said(spec, found)["Search"] == "The front of the search last grew with the 2nd of 3."
    front = printed_front(Results(spec, found))
    assert list(front["trial"]) == ["1, chosen", "2"]
    assert set(front["on the front on test"]) == {"not read"}
    note = front_note(Results(spec, found))
    assert note.startswith("No other configuration beats one of these in every metric on the validation split")
    assert "Test was read for none of them, so the front on test is not known." in note


def test_the_front_on_test_is_of_those_whose_test_was_read() -> None:
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
    front = printed_front(Results(spec, over(*told)))
    assert list(front["trial"]) == ["1, chosen", "2"]
    assert list(front["test/accuracy on fresh seeds"]) == ["70.0 ± 0.0%", "75.0 ± 0.0%"]
    assert list(front["on the front on test"]) == ["no", "yes"]


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
    assert list(printed_front(Results(spec, found))["test/accuracy"]) == ["70.0%"]


def test_a_baseline_that_beats_the_search_is_the_best_of_the_study() -> None:
    found = over(*TRIALS, *confirmed([0.83, 0.85, 0.84], [0.70, 0.72, 0.75], [0.59, 0.62, 0.64]))
    parts = said(PLAIN, found)
    assert parts["Result"].startswith("The search found nothing better than the baseline: val/accuracy is 84.0")
    assert "The best of the study, which best.yaml holds, is the baseline." in parts["Result"]
    assert "How sure" not in parts
    assert "method.alpha" not in parts["Result"], "whose values they are would be in doubt"


AGAINST = quickstart(
    "train.epochs=1",
    "search.metric=val/conflicting_accuracy",
    "search.early_stopping={name: none}",
    "search.confirm={top: 1, seeds: 3}",
)


def measured(stage: str, conflicting: float, aligned: float, accuracy: float, seed: int = 0, **given: int) -> Told:
    """A trial with its accuracy against the bias, with it and over all, on validation and, by a little less, on
    test."""
    values = {"aligned_accuracy": aligned, "accuracy": accuracy}
    tested = {f"test/{name}": value - 0.01 for name, value in {**values, "conflicting_accuracy": conflicting}.items()}
    further = {f"val/{name}": value for name, value in values.items()}
    params = {"method.alpha": conflicting} if stage == "search" else {}
    metric = "val/conflicting_accuracy"
    return Told(stage, [conflicting], seed=seed, metric=metric, further=further, tested=tested, params=params, **given)


def test_the_trade_off_says_what_rose_what_fell_and_which_configuration_is_milder() -> None:
    found = over(
        measured("baseline", 0.38, 0.98, 0.92),
        measured("search", 0.54, 0.64, 0.63),
        measured("search", 0.45, 0.95, 0.90),
        measured("search", 0.40, 0.97, 0.91),
        *(measured("confirm", 0.38 + off, 0.98, 0.92 + off, seed, repeats=0) for seed, off in enumerate(SPREAD, 1)),
        *(measured("confirm", 0.54 - off, 0.64, 0.63, seed, repeats=1) for seed, off in enumerate(SPREAD, 1)),
    )
    told = said(AGAINST, found)["Trade-off"]
    assert "that agree with the bias it fell from 97.0 ± 0.0% to 63.0 ± 0.0%: -34.0 points on every seed alike" in told
    assert "overall it fell from 91.0 ± 1.0% to 62.0 ± 0.0%: -29.0 points (95% interval" in told
    assert "conflict" not in told.partition("Trial 2")[0]  # the study's own metric, which the result tells
    assert "Trial 2 is milder: in the search it had val/conflicting_accuracy 45.0% with val/accuracy 90.0%" in told
    assert told.endswith('study export quickstart --where "val/accuracy>=0.87"')


SPREAD = (-0.01, 0.0, 0.01)


@pytest.mark.parametrize(("smallest", "is_shown"), [(9, False), (10, True)])
def test_a_summary_begins_with_the_studys_metric_and_leaves_out_groups_of_a_few_samples(
    smallest: int, is_shown: bool
) -> None:
    known = [f"{split}/{name}" for split in ("val", "test") for name in ("accuracy", "worst_group_accuracy", "auc")]
    cells = {"test": [[40, smallest], [0, 40]]}
    shown = selection_rules.leading(["val/auc"], known, cells)
    assert shown[:3] == ["test/auc", "val/auc", "test/accuracy"]
    assert ("test/worst_group_accuracy" in shown) == is_shown
