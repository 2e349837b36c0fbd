"""Rungs by hand, and what early stopping should save."""

import pytest
from helpers import quickstart

from study.errors import UserError
from study.spec.rungs import RungSchedule
from study.spec.schema import EarlyStoppingOptions


def asha(epochs: int, grace: int | None, reduction: int) -> RungSchedule:
    return RungSchedule(EarlyStoppingOptions(name="asha", grace=grace, reduction=reduction), epochs)


@pytest.mark.parametrize(
    ("rule", "rungs", "expected_epochs", "expected_complete"),
    [
        (RungSchedule(EarlyStoppingOptions(), 20), [], 20, 1),
        (asha(20, 4, 3), [4, 12], 4 + 8 / 3 + 8 / 9, 1 / 9),
        (asha(9, 1, 3), [1, 3], 1 + 2 / 3 + 6 / 9, 1 / 9),
        (asha(20, None, 3), [10], 10 + 10 / 3, 1 / 3),
        (asha(9, 9, 3), [], 9, 1),
    ],
)
def test_rungs_by_hand(rule: RungSchedule, rungs: list[int], expected_epochs: float, expected_complete: float) -> None:
    assert list(rule.rung_epochs) == rungs
    assert rule.expected_epochs == pytest.approx(expected_epochs)
    assert rule.expected_complete_share == pytest.approx(expected_complete)


@pytest.mark.parametrize(
    ("assignments", "said"),
    [
        (["search.early_stopping={name: asha, grace: 21}"], "grace: 21 given, allowed is at most train.epochs = 20"),
        (["search.early_stopping={name: median}"], "name: 'median' given. Allowed: asha, none"),
        (
            ["search.early_stopping={name: asha, brackets: 2}"],
            "brackets: unknown key. Did you mean .grace.. Allowed here: name",
        ),
    ],
)
def test_a_rule_that_cannot_be_is_refused(assignments: list[str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        quickstart(*assignments)


def test_no_trial_of_several_metrics_ends_early() -> None:
    spec = quickstart("search.early_stopping=asha", "search.metric=[val/accuracy, val/equalized_odds]")
    assert spec.search.early_stopping.name == "none"
