"""Confidence intervals of a metric."""

import pytest

from study.metrics.intervals import wilson_interval


@pytest.mark.parametrize(
    ("share", "count", "low", "high"),
    [(0.5, 100, 0.4038, 0.5962), (1.0, 10, 0.7225, 1.0), (0.0, 10, 0.0, 0.2775), (0.9, 1000, 0.8798, 0.9171)],
)
def test_wilsons_interval(share: float, count: int, low: float, high: float) -> None:
    """Against the published calculator's values (as in Newcombe 1998)."""
    assert wilson_interval(share, count) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


@pytest.mark.parametrize("share", [0.0, 1e-12, 0.3, 1 - 1e-12, 1.0])
@pytest.mark.parametrize("count", [0, 1, 7, 10**6])
def test_it_stays_within_what_a_share_can_be(share: float, count: int) -> None:
    low, high = wilson_interval(share, count)
    assert 0.0 <= low <= share <= high + 1e-12
    assert high <= 1.0
