"""What a study would run."""

import json

import pytest
from helpers import quickstart

from study.commands.plan import plan_study, plan_text
from study.metrics.selection_rules import SELECTION_RULES
from study.ranking.json_documents import to_plain_value

LABELLED = sum(rule.required_labels != "inferred groups" for rule in SELECTION_RULES)
"""Rules that data with bias labels allow, where no groups are inferred."""


def test_the_quickstart_by_hand() -> None:
    document = plan_study(quickstart())
    assert document.budget.trials == {
        "baseline": 1,
        "search": 23,
        "replicate": 0,
        "confirm": 9,
        "rule": (LABELLED - 1) * 3,
    }
    assert document.epochs_per_trial == 20
    assert document.budget.epochs["most"] == (24 + 9 + (LABELLED - 1) * 3) * 20
    # rungs after epochs 4 and 12 of 20: 4 epochs for all, 8 more for a third, 8 more for a ninth
    # so that three of 23 are complete, one more than is confirmed
    assert document.budget.epochs["expected"] == round((1 + 9 + 3) * 20 + 23 * (4 + 8 / 3 + 8 / 9))
    rules = f"and at most {(LABELLED - 1) * 3} (expected: 3) for what other rules pick"
    assert f"then 9 to confirm {rules}" in plan_text(document)
    assert document.metric == "val/accuracy (max)"
    assert document.space["method.alpha"] == {"low": 0.001, "high": 1.0, "log": True}
    assert json.loads(json.dumps(to_plain_value(document), allow_nan=False)) == to_plain_value(document)


def test_values_of_the_baseline_that_the_search_cannot_give_are_told_with_what_follows() -> None:
    given = '{"method.name": "eps_sup_info_nce", "method.alpha": 9.0, "method.lambda": 0.0, "method.epsilon": 0.0}'
    told = plan_text(plan_study(quickstart(f"search.baseline={given}")))
    assert "  the baseline's method.alpha 9.0 lies outside this space, so the search tries no such value\n" in told


def test_what_has_to_be_beaten_runs_whole() -> None:
    given = [{"method.lambda": 0.5, "method.alpha": 0.1}, {"method.lambda": 1.0, "method.alpha": 0.1}]
    document = plan_study(
        quickstart(f"search.enqueue={json.dumps(given)}", "search.margin=0.5", "search.confirm={top: 0}")
    )
    assert document.budget.epochs["expected"] == round(3 * 20 + 21 * (4 + 8 / 3 + 8 / 9))


@pytest.mark.parametrize(
    ("assignments", "trials"),
    [
        (["search.confirm={top: 0}"], {"baseline": 1, "search": 23, "replicate": 0, "confirm": 0, "rule": 0}),
        (["search.baseline=null"], {"baseline": 0, "search": 24, "replicate": 0, "confirm": 6, "rule": 0}),
        (["search.trials=2"], {"baseline": 1, "search": 1, "replicate": 0, "confirm": 6, "rule": 0}),
        (["search.trials=1"], {"baseline": 1, "search": 0, "replicate": 0, "confirm": 3, "rule": 0}),
        (["search.replicates=3"], {"baseline": 1, "search": 23, "replicate": 48, "confirm": 9, "rule": 0}),
        (
            ["search.baseline=null", "search.trials=1", "search.space={}"],
            {"baseline": 0, "search": 1, "replicate": 0, "confirm": 3, "rule": 0},
        ),
    ],
)
def test_trials_by_stage(assignments: list[str], trials: dict[str, int]) -> None:
    document = plan_study(quickstart("search.confirm.rules=false", *assignments))
    assert document.budget.trials == trials
    assert document.budget.epochs["most"] == sum(trials.values()) * 20


WITHOUT_LABELS = [
    "data={name: stl10}",
    "method={name: cross_entropy}",
    "search.space={train.learning_rate: {low: 0.001, high: 0.1}}",
    "search.baseline=null",
]


@pytest.mark.parametrize(
    ("assignments", "rule"),
    [
        (["search.confirm={top: 2, seeds: 3}"], 0),
        (["search.confirm={top: 0, seeds: 2, rules: true}"], LABELLED * 2),
        (["search.confirm={top: 3, seeds: 2, rules: true}", "search.trials=6"], 2 * 2),
        (["search.metric=val/equalized_odds"], LABELLED * 3),  # no rule of the table: one more than its own
        (WITHOUT_LABELS, 2 * 3),  # worst class and balanced accuracy
        (["search.trials=3"], 0),
    ],
)
def test_other_rules_pick_no_more_than_there_is(assignments: list[str], rule: int) -> None:
    assert plan_study(quickstart(*assignments)).budget.trials["rule"] == rule


@pytest.mark.parametrize("stopping", ["search.early_stopping={}", "search.early_stopping.grace=20"])
def test_where_no_trial_can_be_stopped_early_all_epochs_are_expected(stopping: str) -> None:
    document = plan_study(quickstart(stopping))
    assert document.budget.epochs["expected"] == document.budget.epochs["most"]


def test_a_baseline_that_the_search_would_not_try_is_told() -> None:
    document = plan_study(quickstart("search.baseline={method.alpha: 5.0}"))
    assert document.baseline_outside == ["method.alpha 5.0"]
    assert "method.alpha 5.0" in plan_text(document)
    assert not plan_study(quickstart()).baseline_outside
