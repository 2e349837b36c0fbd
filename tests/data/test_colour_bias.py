"""The colour construction of Biased-MNIST: exact shares, not coin flips."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from study.data.colour_bias import assign_colours, paint_digits_on_colour


def labels(counts: list[int]) -> np.ndarray:
    return np.random.default_rng(7).permutation(np.repeat(np.arange(10), counts))


@given(
    counts=st.lists(st.integers(0, 60), min_size=10, max_size=10), rho=st.floats(0, 1), seed=st.integers(0, 2**32 - 1)
)
def test_shares_are_exact_for_any_counts(counts: list[int], rho: float, seed: int) -> None:
    target = labels(counts)
    colours = assign_colours(target, rho, np.random.default_rng(seed))
    for own, count in enumerate(counts):
        shares = np.bincount(colours[target == own], minlength=10)
        rest = count - int(count * rho)
        chunk = -(-rest // 9)
        others = sorted(np.delete(shares, own), reverse=True)
        assert shares[own] == int(count * rho)
        assert others == [min(chunk, max(0, rest - place * chunk)) for place in range(9)]


def test_which_samples_conflict_is_drawn_by_the_generator() -> None:
    target = labels([50] * 10)
    first, again, other = (assign_colours(target, 0.5, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_the_ground_is_coloured_and_the_stroke_white() -> None:
    strokes = np.array([[[0.0, 1.0, 0.5]]], dtype=np.float32)
    painted = paint_digits_on_colour(strokes, np.array([3]))
    assert painted.dtype == np.uint8
    assert painted.shape == (1, 3, 1, 3)
    assert painted[0, :, 0, 0].tolist() == [225, 225, 0]
    assert painted[0, :, 0, 1].tolist() == [255, 255, 255]
    assert painted[0, :, 0, 2].tolist() == [240, 240, 128]
