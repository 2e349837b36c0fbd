"""Kendall's tau-b and its interval."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from study.analysis.statistics.rule_picks import LEAST, Agreement, agreement

VALUES = st.lists(st.integers(0, 5).map(float), min_size=LEAST, max_size=12)


def test_by_hand() -> None:
    """One of ten pairs is discordant: two rows have a mean of 0.5, three of 1."""
    found = agreement([1, 2, 3, 4, 5], [1, 2, 3, 5, 4])
    assert found.tau == pytest.approx(0.8)
    variance = (4 * 3 * 0.075 + 2 * (1 - 0.8**2)) / 20 / (1 - 0.8**2) ** 2
    assert variance > 0.437
    reach = 3.182446 * variance**0.5  # Student's t of three degrees of freedom
    z = np.arctanh(0.8)
    assert found.interval == pytest.approx((np.tanh(z - reach), np.tanh(z + reach)), abs=1e-6)


@pytest.mark.parametrize("n", range(LEAST))
def test_of_few_there_is_none(n: int) -> None:
    assert agreement(list(range(n)), list(range(n))) == Agreement(n)


def test_where_all_tie_there_is_none() -> None:
    assert agreement([0.0] * 6, [1, 2, 3, 4, 5, 6]) == Agreement(6)


@pytest.mark.slow
@given(VALUES, st.randoms())
def test_the_interval_holds_the_tau_and_turns_with_the_order(values: list[float], random) -> None:  # type: ignore[no-untyped-def]
    other = random.sample(values, len(values))
    found, turned = agreement(values, other), agreement(values, [-value for value in other])
    if found.tau is None or found.interval is None or turned.interval is None:
        assert len(set(values)) == 1
        return
    assert found.tau == pytest.approx(kendalltau(values, other).statistic)
    assert -1 <= found.interval[0] <= found.tau <= found.interval[1] <= 1
    assert turned.tau == pytest.approx(-found.tau)
    assert turned.interval == pytest.approx((-found.interval[1], -found.interval[0]))


@pytest.mark.parametrize("n", [5, 6, 8, 12])
@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8, 0.95, 0.99])
def test_the_interval_holds_the_truth_as_often_as_it_says(n: int, correlation: float) -> None:
    """Pairs of normal numbers, whose tau is known: 2/pi times the arcsine of their correlation."""
    generator, truth, held = np.random.default_rng(n), 2 / np.pi * np.arcsin(correlation), 0
    for _ in range(200):
        first, noise = generator.normal(size=(2, n))
        interval = agreement(first, correlation * first + (1 - correlation**2) ** 0.5 * noise).interval
        assert interval
        held += interval[0] <= truth <= interval[1]
    assert held / 200 > 0.94
