"""How many seeds a difference needs, by the power of its t test."""

import numpy as np
import pytest
from benchmarks.simulations import leads
from hypothesis import given
from hypothesis import strategies as st

from study.analysis.statistics.seeds_needed import MAX_SEEDS_NEEDED, detection_power, estimate_seeds_needed
from study.ranking.difference import Difference, selection_adjusted_t


def test_the_range_of_seeds_holds_the_true_number_wherever_it_is_said() -> None:
    rng = np.random.default_rng(5)
    rows = list(leads.seeds(80, rng, [(3, 1.5, 1), (5, 1.0, 1), (3, 1.5, 5)]))
    assert [row for row in rows if not row.holds] == []
    assert all(row.draws > 20 for row in rows)


def open_gap(measured: float, freedom: float, among: int = 1) -> Difference:
    """A difference of so many standard errors whose interval holds zero."""
    return Difference(measured, (-1.0, 1.0 + measured), True, among, 1.0, freedom)


def test_the_power_is_that_of_the_noncentral_t() -> None:
    """Of 1 standard deviation 10 pairs have a power of 80.3%, 9 one of 75% (tables of Cohen 1988)."""
    assert detection_power(1.0, 10) == pytest.approx(0.803, abs=0.002)
    assert detection_power(1.0, 9) < 0.8 <= detection_power(1.0, 10)
    assert detection_power(1.0, 10, among=5) < detection_power(1.0, 10)
    assert detection_power(50.0, 20) == pytest.approx(1.0), "SciPy's has no number for it"


@given(st.integers(2, 20), st.floats(0, 1), st.integers(1, 6))
def test_a_range_of_seeds_is_in_order_and_its_step_within_reach(seeds: int, share: float, among: int) -> None:
    limit = selection_adjusted_t(0.975, seeds - 1, among)
    found = estimate_seeds_needed(open_gap(share * limit * 0.999, seeds - 1, among), seeds)
    ends = [end or MAX_SEEDS_NEEDED + 1 for end in (found.fewest, found.middle, found.most)]
    assert seeds < ends[0] <= ends[1] <= ends[2]
    if found.fewest:
        assert max(seeds + 1, found.fewest) <= found.next_batch <= MAX_SEEDS_NEEDED


def test_the_smaller_the_difference_the_more_seeds_it_takes() -> None:
    found = [estimate_seeds_needed(open_gap(size, 4), 5) for size in (0.1, 1.0, 2.0, 2.7)]
    middles = [each.middle or MAX_SEEDS_NEEDED + 1 for each in found]
    assert middles == sorted(middles, reverse=True)
    assert len(set(middles)) > 2
    assert estimate_seeds_needed(open_gap(0.1, 19), 20).fewest is None, f"more than {MAX_SEEDS_NEEDED}"
