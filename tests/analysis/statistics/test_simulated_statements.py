"""A few hundred of the simulations whose full table `tests/benchmarks/statements.py` prints."""

from itertools import chain

import pytest
from benchmarks.simulations import differences, samples, verdicts
from benchmarks.simulations.differences import APART, CHOSEN, DEVIATION, Truth


@pytest.mark.parametrize("truth", [CHOSEN[3], CHOSEN[7], CHOSEN[9]], ids=str)
def test_the_best_of_equals_is_seldom_called_better(truth: Truth) -> None:
    intervals = [differences._gain(truth, seed) for seed in range(400)]
    assert sum(low > 0 for low, _ in intervals) <= 19  # 10 are expected at most, and three standard errors


def test_a_true_gain_of_three_deviations_is_found_on_five_seeds() -> None:
    truth = Truth(2, 5, gains={0: 3.0, 1: 3.0})
    intervals = [differences._gain(truth, seed) for seed in range(200)]
    assert sum(low > 0 for low, _ in intervals) > 160
    assert sum(low <= 3 * DEVIATION <= high for low, high in intervals) >= 185


@pytest.mark.slow
def test_the_truly_best_is_among_those_that_cannot_be_told_from_the_best() -> None:
    for row in chain.from_iterable(differences._sure(truth, 60) for truth in APART[1:3]):
        assert row.holds, row


@pytest.mark.parametrize("kind", verdicts.KINDS)
def test_verdicts_are_seldom_wrong(kind: str) -> None:
    for row in verdicts._verdicts(3, kind, 300):
        assert row.holds, row


@pytest.mark.parametrize("case", verdicts.CASES, ids=lambda case: case.name)
def test_claims_at_the_edge_are_seldom_judged_wrongly(case: verdicts.Case) -> None:
    for row in verdicts._claims(5, case, 300):
        assert row.found <= 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5, row


@pytest.mark.slow
def test_the_bests_of_two_equal_studies_are_seldom_told_apart() -> None:
    for row in differences._between(10):
        assert row.holds, row


@pytest.mark.slow
def test_what_is_said_of_samples_and_choices_holds() -> None:
    assert [row for row in samples.rows(200) if not row.holds] == []
