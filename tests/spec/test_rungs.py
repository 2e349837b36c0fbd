"""Rungs and brackets by hand, and how trials are shared among brackets."""

from collections import Counter
from functools import partial
from typing import Any

import pytest
from helpers import quickstart

from study.errors import UserError
from study.spec.rungs import bracket_of, schedule
from study.spec.schema import EarlyStopping


def asha(grace: int, reduction: int, count: int = 1) -> EarlyStopping:
    return EarlyStopping(name="asha", grace=grace, reduction=reduction, brackets=count)


def asked(what: str, rule: EarlyStopping, epochs: int) -> Any:
    return getattr(schedule(rule, epochs), what)


brackets, most_brackets, words = (partial(asked, what) for what in ("brackets", "most_brackets", "words"))
expected_epochs, expected_complete = (partial(asked, what) for what in ("expected_epochs", "expected_complete"))


def ladders(rule: EarlyStopping, epochs: int) -> list[tuple[int, ...]]:
    return [tuple(bracket.rungs) for bracket in brackets(rule, epochs)]


@pytest.mark.parametrize(
    ("rule", "epochs", "expected"),
    [
        (EarlyStopping(), 20, [()]),
        (asha(4, 3), 20, [(4, 12)]),
        (asha(1, 3), 9, [(1, 3)]),
        (asha(1, 3, 3), 9, [(1, 3), (3,), ()]),
        (EarlyStopping(name="hyperband", grace=4), 20, [(4, 12), (12,)]),
        (EarlyStopping(name="hyperband", reduction=3), 81, [(1, 3, 9, 27), (3, 9, 27), (9, 27), (27,), ()]),
        (EarlyStopping(name="median", grace=3), 6, [(3, 4, 5)]),
    ],
)
def test_rungs_by_hand(rule: EarlyStopping, epochs: int, expected: list[tuple[int, ...]]) -> None:
    assert ladders(rule, epochs) == expected


@pytest.mark.parametrize("reduction", [2, 3, 4])
@pytest.mark.parametrize("epochs", [1, 8, 9, 64, 100, 242])
def test_hyperband_has_the_brackets_of_optunas(reduction: int, epochs: int) -> None:
    from optuna import create_study
    from optuna.pruners import HyperbandPruner

    pruner = HyperbandPruner(1, epochs, reduction)
    pruner._try_initialization(create_study())
    assert most_brackets(EarlyStopping(name="hyperband", reduction=reduction), epochs) == pruner._n_brackets


def test_hyperbands_brackets_get_the_same_budget() -> None:
    rule = EarlyStopping(name="hyperband", grace=1, reduction=3)
    first, second, third = brackets(rule, 9)
    # epochs of a trial: 1 + 2/3 + 6/9 with rungs 1 and 3; 3 + 6/3 with rung 3; 9
    budgets = [first.share * (1 + 2 / 3 + 6 / 9), second.share * (3 + 6 / 3), third.share * 9]
    assert budgets == pytest.approx([budgets[0]] * 3)
    assert first.share + second.share + third.share == pytest.approx(1)
    assert expected_epochs(rule, 9) == pytest.approx(sum(budgets))


def test_expected_epochs_by_hand() -> None:
    assert expected_epochs(asha(4, 3), 20) == pytest.approx(4 + 8 / 3 + 8 / 9)
    assert expected_epochs(asha(4, 3, 2), 20) == pytest.approx((4 + 8 / 3 + 8 / 9 + 12 + 8 / 3) / 2)
    assert expected_epochs(EarlyStopping(name="median", grace=4), 20) == 12
    assert expected_epochs(EarlyStopping(name="median", grace=20), 20) == 20
    assert expected_epochs(EarlyStopping(), 20) == 20


def test_expected_complete_by_hand() -> None:
    assert expected_complete(asha(4, 3), 20) == pytest.approx(1 / 9)
    assert expected_complete(asha(4, 3, 2), 20) == pytest.approx((1 / 9 + 1 / 3) / 2)
    assert expected_complete(EarlyStopping(name="median", grace=4), 20) == 0.5
    assert expected_complete(EarlyStopping(name="median", grace=20), 20) == 1
    assert expected_complete(EarlyStopping(), 20) == 1


@pytest.mark.parametrize("stride", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("rule", [asha(1, 3, 3), EarlyStopping(name="hyperband")])
def test_any_run_of_trials_is_shared_among_the_brackets(rule: EarlyStopping, stride: int) -> None:
    """Also every third or fifth alone, as where each configuration has several seeds and the first is heard."""
    among = brackets(rule, 27)
    for first in (0, 1, 50, 9_000):
        got = Counter(bracket_of(number, among) for number in range(first, first + 60 * stride, stride))
        for index, bracket in enumerate(among):
            assert got[index] == pytest.approx(60 * bracket.share, abs=6)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("{name: asha, grace: 4, brackets: 3}", "brackets: 3 given, allowed is at most 2"),
        ("{name: hyperband, brackets: 2}", "brackets: 2 given, allowed is 1 with hyperband"),
        ("{name: median, grace: 21}", "grace: 21 given, allowed is at most train.epochs = 20"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(rule: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        quickstart(f"search.early_stopping={rule}")
