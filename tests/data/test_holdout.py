"""Validation cut from training: disjoint, seeded, and as biased or unbiased as asked."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from study.data import holdout
from study.data.dataset import Split, SplitLabels

GROUPS = st.lists(st.integers(0, 5), min_size=1, max_size=200).map(np.array)
SHARES = st.floats(0.01, 0.5)


@given(groups=GROUPS, share=SHARES, seed=st.integers(0, 99))
def test_stratified_takes_the_same_share_of_each_group(groups: np.ndarray, share: float, seed: int) -> None:
    _, held = holdout.stratified_split(groups, share, seed)
    counts, taken = (np.bincount(one, minlength=6) for one in (groups, groups[held]))
    assert (np.abs(taken - share * counts) <= 1 + 1e-9).all()
    assert abs(len(held) - share * len(groups)) <= 0.5 + 1e-9


@given(groups=GROUPS, share=SHARES, seed=st.integers(0, 99))
def test_balanced_takes_as_many_of_each_group_as_far_as_there_are_members(
    groups: np.ndarray, share: float, seed: int
) -> None:
    _, held = holdout.balanced_split(groups, share, seed)
    counts, taken = (np.bincount(one, minlength=6) for one in (groups, groups[held]))
    most = taken.max()
    assert (taken < counts).all() or (counts == 0).any()  # every group stays in training, too
    assert all(have == min(most, count // 2) for have, count in zip(taken, counts, strict=True))
    assert most <= max(1, round(share * len(groups) / (counts > 0).sum()))


COUNTS = st.lists(st.sampled_from([0, 0, 1, 2, 3, 10, 57]) | st.integers(0, 200), min_size=6, max_size=6)
"""Samples of each cell of three classes and two bias classes, many of them empty or tiny."""


@given(counts=COUNTS.filter(any), share=SHARES, seed=st.integers(0, 99), kind=st.sampled_from(["biased", "unbiased"]))
def test_every_kind_cuts_the_cells_of_a_split(
    counts: list[int], share: float, seed: int, kind: holdout.ValKind
) -> None:
    codes = np.random.default_rng(seed).permutation(np.repeat(np.arange(6), counts))
    condition = np.arange(len(codes), dtype=np.float32)[:, None]
    whole = Split(np.arange(len(codes))[:, None, None, None], codes // 2, codes % 2, condition)
    train, val = (
        holdout.select_samples(whole, part)
        for part in holdout.split_by_val_kind(holdout.cell_of_sample(whole), share, kind, seed)
    )
    labels = holdout.add_held_out_val({"train": SplitLabels(whole.target, whole.bias)}, share, seed)
    for name, part in {"train": train, "val": val}.items():
        assert kind == "unbiased" or np.array_equal(labels[name].target, part.target)
        assert kind == "unbiased" or np.array_equal(labels[name].bias, part.bias)
        rows = part.inputs[:, 0, 0, 0]
        assert np.array_equal(2 * part.target + part.bias, codes[rows])
        assert np.array_equal(part.condition[:, 0], rows)
    kept, held = (np.bincount(2 * part.target + part.bias, minlength=6) for part in (train, val))
    assert (kept + held).tolist() == counts
    if kind == "biased":
        assert (np.abs(held - share * np.array(counts)) <= 1 + 1e-9).all()
    else:
        each = max(1, round(share * len(codes) / np.count_nonzero(counts)))
        assert held.tolist() == [min(each, count // 2) for count in counts]


def test_cells_of_labels_without_a_bias_are_their_classes() -> None:
    target = np.array([0, 2, 1])
    assert holdout.cell_of_sample(SplitLabels(target)).tolist() == [0, 2, 1]
    assert holdout.cell_of_sample(SplitLabels(target[:0], target[:0])).tolist() == []


@given(classes=st.integers(1, 4), biases=st.integers(1, 4), lowest=st.sampled_from([-1, 0]))
def test_each_pair_of_class_and_bias_is_a_cell_of_its_own_and_unknown_bias_too(
    classes: int, biases: int, lowest: int
) -> None:
    pairs = [(target, bias) for target in range(classes) for bias in range(lowest, biases)]
    found = holdout.cell_of_sample(SplitLabels(*np.array(pairs).T))
    assert len({*found.tolist()}) == len(pairs)


def test_without_bias_labels_the_classes_are_balanced() -> None:
    whole = Split(np.zeros((100, 1, 1, 1), np.uint8), np.repeat([0, 1], [80, 20]))
    val = holdout.select_samples(whole, holdout.split_by_val_kind(holdout.cell_of_sample(whole), 0.2, "unbiased", 0)[1])
    assert np.bincount(val.target).tolist() == [10, 10]
