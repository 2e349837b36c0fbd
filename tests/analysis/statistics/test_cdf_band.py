"""The bands are compared with what can be worked out by hand, and with simulated samples."""

import numpy as np
import pytest
from scipy.stats import binom

from study.analysis.statistics.tuning_curve import (
    MOST_EXACT,
    band,
    chance_to_stay,
    joint_coverage,
    limits,
    pointwise_level,
    quantile_places,
)


def test_joint_coverage_of_one_and_two_draws_is_that_by_hand() -> None:
    assert joint_coverage(np.array([0.2]), np.array([0.7])) == pytest.approx(0.5)
    lower, upper = np.array([0.1, 0.4]), np.array([0.5, 0.9])
    # ordered pairs have density 2: 0.1 to 0.5 by 0.4 to 0.9, without the triangle in which the first is the larger
    assert joint_coverage(lower, upper) == pytest.approx(2 * (0.4 * 0.5 - 0.1 * 0.1 / 2))
    assert joint_coverage(np.array([0.5, 0.6]), np.array([0.4, 0.5])) == 0.0


@pytest.mark.parametrize("draws", [10, 100])
def test_the_level_holds_for_all_draws_at_once(draws: int) -> None:
    lower, upper = limits(draws, pointwise_level(draws, 0.95))
    assert joint_coverage(lower, upper) == pytest.approx(0.95, abs=1e-4)
    samples = np.sort(np.random.default_rng(0).random((20_000, draws)), axis=1)
    assert ((lower <= samples) & (samples <= upper)).all(1).mean() == pytest.approx(0.95, abs=0.006)


def test_a_band_ascends_and_is_narrower_with_less_confidence_and_more_draws() -> None:
    for draws in (1, 24, MOST_EXACT + 1):
        low, high = band(draws, 0.95)
        assert len(low) == len(high) == draws + 1
        assert (np.diff(low) >= 0).all()
        assert (np.diff(high) >= 0).all()
        assert (low < high).all()
    wide, narrow = (np.subtract(*band(24, confidence)[::-1]).sum() for confidence in (0.99, 0.9))
    assert narrow < wide
    with pytest.raises(ValueError, match="read-only"):
        band(24, 0.95)[0][0] = 1.0


def test_one_quantile_lies_between_the_draws_that_a_binomial_count_names() -> None:
    below, above = quantile_places(24, 0.95, (0.5,))
    count = binom(24, 0.5)
    assert count.cdf(above[0] - 1) - count.cdf(below[0] - 1) >= 0.95
    assert (below[0], above[0]) == (7, 18)  # as tables of the sign test have it for the median of 24: 97.7%
    assert chance_to_stay(24, np.array([0.5]), below, above - 1) == pytest.approx(0.9773, abs=1e-4)


def test_several_quantiles_hold_at_once() -> None:
    shares = tuple(float(0.5 ** (1 / k)) for k in range(1, 31))
    below, above = quantile_places(30, 0.95, shares)
    samples = np.random.default_rng(1).random((20_000, 30, 1))
    counts = (samples <= np.array(shares)).sum(1)
    held = ((below <= counts) & (counts <= above - 1)).all(1).mean()
    assert 0.945 <= held <= 0.975
    assert below[-1] > 20
    assert above[-1] == 31  # nothing is above the best of thirty
