"""The colour construction of Biased-MNIST: exact shares, not coin flips."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.data.colour_bias import assign, paint

TRAIN = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
TEST = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
"""Samples per class of MNIST."""


def labels(counts: list[int]) -> np.ndarray:
    return np.random.default_rng(7).permutation(np.repeat(np.arange(10), counts))


@pytest.mark.parametrize(("rho", "conflicting"), [(0.999, 63), (0.997, 184), (0.995, 305), (0.99, 606)])
def test_mnist_has_the_published_counts_of_conflicting_samples(rho: float, conflicting: int) -> None:
    target = labels(TRAIN)
    assert int((assign(target, rho, np.random.default_rng(0)) != target).sum()) == conflicting


def test_the_unbiased_test_split_of_mnist_has_the_published_count() -> None:
    target = labels(TEST)
    assert int((assign(target, 0.1, np.random.default_rng(0)) != target).sum()) == 9004


def test_at_rho_0_999_a_class_meets_only_six_or_seven_other_colours_once_each() -> None:
    target = labels(TRAIN)
    colours = assign(target, 0.999, np.random.default_rng(3))
    for own in range(10):
        others = colours[(target == own) & (colours != own)]
        assert len(others) in (6, 7)
        assert len(set(others.tolist())) == len(others)


@given(
    counts=st.lists(st.integers(0, 60), min_size=10, max_size=10),
    rho=st.floats(0, 1),
    seed=st.integers(0, 2**32 - 1),
)
def test_shares_are_exact_for_any_counts(counts: list[int], rho: float, seed: int) -> None:
    target = labels(counts)
    colours = assign(target, rho, np.random.default_rng(seed))
    for own, count in enumerate(counts):
        shares = np.bincount(colours[target == own], minlength=10)
        rest = count - int(count * rho)
        chunk = -(-rest // 9)
        others = sorted(np.delete(shares, own), reverse=True)
        assert shares[own] == int(count * rho)
        assert others == [min(chunk, max(0, rest - place * chunk)) for place in range(9)]


def test_which_samples_conflict_is_drawn_by_the_generator() -> None:
    target = labels([50] * 10)
    first, again, other = (assign(target, 0.5, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_the_ground_is_coloured_and_the_stroke_white() -> None:
    strokes = np.array([[[0.0, 1.0, 0.5]]], dtype=np.float32)
    painted = paint(strokes, np.array([3]))
    assert painted.dtype == np.uint8
    assert painted.shape == (1, 3, 1, 3)
    assert painted[0, :, 0, 0].tolist() == [225, 225, 0]
    assert painted[0, :, 0, 1].tolist() == [255, 255, 255]
    assert painted[0, :, 0, 2].tolist() == [240, 240, 128]
