"""The table of selection rules is whole: its metrics are there, larger is better, each rule has its own name."""

import pytest

from study.data.dataset import Facts
from study.metrics import METRICS
from study.metrics.selection_rules import SELECTION_RULES, SelectionRule
from study.spec.constraints import MetricConstraint


@pytest.mark.parametrize("rule", SELECTION_RULES, ids=lambda rule: rule.name)
def test_a_rule_chooses_by_a_metric_of_which_more_is_better(rule: SelectionRule) -> None:
    assert METRICS[rule.metric].better == "max"
    assert METRICS[rule.metric].source == "predictions"


def test_limits_are_constraints_of_other_metrics() -> None:
    for rule in SELECTION_RULES:
        if rule.limit:
            assert MetricConstraint.from_text(rule.limit).metric in METRICS.keys() - {rule.metric}


def test_names_differ() -> None:
    assert len({rule.name for rule in SELECTION_RULES}) == len(SELECTION_RULES)


def test_without_bias_labels_the_rules_that_need_them_are_impossible() -> None:
    facts = Facts(classes=3, bias_classes=None, shape=(3, 8, 8))
    assert {rule.required_labels for rule in SELECTION_RULES if rule.is_available(facts)} == {"nothing", "classes"}
    with_groups = {rule.required_labels for rule in SELECTION_RULES if rule.is_available(facts, inferred=True)}
    assert with_groups == {"nothing", "classes", "inferred groups"}
