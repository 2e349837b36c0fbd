"""The epoch from which on an order can be trusted, on curves whose truth is known."""

import numpy as np
import pytest
from numpy.typing import NDArray

from study.analysis.statistics.early_order import early_order

Floats = NDArray[np.float64]


def crossing(
    configurations: int, seeds: int, turn: int, epochs: int, noise: float, seed: int, before: float = -1.0
) -> Floats:
    """Curves whose order is that of `before` times the end's before epoch `turn`, and the end's from there on, with a
    shift that all configurations share on a seed, and noise that differs from epoch to epoch."""
    chance = np.random.default_rng(seed)
    worth = chance.normal(size=configurations)
    signs = np.where(np.arange(1, epochs + 1) < turn, before, 1.0)
    curves: Floats = worth[None, :, None] * signs + noise * chance.normal(size=(seeds, configurations, epochs))
    return curves + 5 * chance.normal(size=(seeds, 1, 1))


@pytest.mark.parametrize("turn", [1, 2, 5, 8])
def test_without_noise_it_is_the_epoch_at_which_curves_cross(turn: int) -> None:
    found = early_order(crossing(30, 2, turn, 8, 0.0, 0))
    assert found is not None
    assert (found.epoch, found.earliest, found.latest) == (turn, turn, turn)
    assert found.correlations == pytest.approx([-1.0] * (turn - 1) + [1.0] * (9 - turn))


def test_the_direction_of_the_metric_does_not_matter() -> None:
    curves = crossing(40, 2, 4, 8, 0.4, 1)
    one, other = early_order(curves), early_order(-curves)
    assert one is not None
    assert other is not None
    assert one.correlations == pytest.approx(other.correlations)
    assert (one.epoch, one.earliest, one.latest) == (other.epoch, other.earliest, other.latest)


def test_an_epoch_that_leads_by_chance_and_loses_the_order_again_is_not_trusted() -> None:
    curves = crossing(30, 2, 1, 8, 0.0, 0)
    curves[:, :, 5] *= -1
    found = early_order(curves)
    assert found is not None
    assert found.epoch == 7


def test_correlations_are_spearmans_with_another_seed() -> None:
    from scipy.stats import spearmanr

    curves = np.round(crossing(25, 3, 3, 5, 0.7, 2), 1)  # with ties
    found = early_order(curves)
    assert found is not None
    for epoch in range(5):
        pairs = [(one, other) for one in range(3) for other in range(3) if one != other]
        expected = [spearmanr(curves[one, :, epoch], curves[other, :, -1]).statistic for one, other in pairs]
        assert found.correlations[epoch] == pytest.approx(np.mean(expected))


def test_with_one_seed_the_end_is_its_own_measure() -> None:
    found = early_order(crossing(30, 1, 3, 6, 0.3, 3))
    assert found is not None
    assert found.correlations[-1] == pytest.approx(1.0)
    assert found.seeds == 1


def test_where_the_end_says_nothing_of_another_seed_no_epoch_is_trusted() -> None:
    found = early_order(np.random.default_rng(0).normal(size=(2, 60, 6)))
    assert found is not None
    assert (found.epoch, found.earliest, found.latest) == (None, None, None)
    assert str(found).startswith("no epoch tells how configurations rank at the end on another seed: the last says")


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """The truth is that of 4,000 configurations: before the crossing the correlation is half of the end's."""
    truth = early_order(crossing(4000, 2, 5, 8, 0.6, 100, before=0.15), resamples=50)
    assert truth is not None
    assert truth.epoch == 5
    draws = [early_order(crossing(60, 2, 5, 8, 0.6, seed, before=0.15), seed=seed, resamples=300) for seed in range(60)]
    inside = np.array([(one.low <= truth.correlations) & (truth.correlations <= one.high) for one in draws if one])
    epochs = [one.earliest <= 5 <= (one.latest or np.inf) for one in draws if one and one.earliest]
    assert 0.8 < inside.mean() < 0.97
    assert np.mean(epochs) > 0.9


def test_configurations_without_an_end_are_left_out() -> None:
    curves = crossing(20, 2, 3, 6, 0.2, 4)
    gone = curves.copy()
    gone[1, 4, 2:] = np.nan
    one, other = early_order(gone), early_order(np.delete(curves, 4, axis=1))
    assert one is not None
    assert other is not None
    assert one.configurations == 19
    assert one.correlations == pytest.approx(other.correlations)


def test_epochs_in_which_all_are_equal_say_nothing() -> None:
    curves = crossing(20, 2, 1, 6, 0.0, 5)
    curves[:, :, :2] = 0.1
    found = early_order(curves)
    assert found is not None
    assert found.correlations[:2] == pytest.approx([0.0, 0.0])
    assert found.epoch == 3


def test_too_few_configurations_and_curves_that_are_none() -> None:
    assert early_order(np.zeros((2, 7, 5))) is None
    with pytest.raises(ValueError, match=r"curves of shape \(7, 5\) given"):
        early_order(np.zeros((7, 5)))
    holes = crossing(20, 1, 1, 6, 0.0, 5)
    holes[0, 3, 1] = np.nan
    with pytest.raises(ValueError, match="has a last value, but not one of each epoch"):
        early_order(holes)
