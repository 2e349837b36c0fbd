"""A validation split for data sets without one: cut from the training samples by a seed."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Doc

from study.data.dataset import Split
from study.knobs import Range

Share = Annotated[
    float, Range(above=0.0, high=0.5), Doc("share of the training samples that is held out for validation")
]
"""Type of the key `val_share`: share of the training samples that the validation split gets."""

Kind = Literal["stratified", "unbiased"]
"""Type of the key `val`: `stratified`: as biased as training; `unbiased`: every (class, bias) cell as often."""

Indices = NDArray[np.int64]


def stratified(groups: NDArray[np.int64], share: float, seed: int | Sequence[int]) -> tuple[Indices, Indices]:
    """Indices to keep and to hold out, both sorted: `share` of all, and of each group within one sample.

    Args:
        groups: any label per sample, (N,): a class, or a (class, bias) cell.
    """
    shuffled = np.random.default_rng(seed).permutation(len(groups))
    by_group = shuffled[np.argsort(groups[shuffled], kind="stable")]
    marks = np.floor(np.arange(len(groups) + 1) * share + 0.5)
    held = np.zeros(len(groups), bool)
    held[by_group[np.diff(marks) > 0]] = True  # at even distances through the groups
    return np.flatnonzero(~held), np.flatnonzero(held)


def balanced(groups: NDArray[np.int64], share: float, seed: int | Sequence[int]) -> tuple[Indices, Indices]:
    """Indices to keep and to hold out, both sorted: the same count of each group, if it has enough members.

    The count is `share` of all samples, divided by the number of groups. At most half of a group is held out, so that
    training keeps some of the rare ones.
    """
    names, counts = np.unique(groups, return_counts=True)
    each = max(1, round(len(groups) * share / len(names)))
    generator = np.random.default_rng(seed)
    held = np.zeros(len(groups), bool)
    for name, count in zip(names, counts, strict=True):
        held[generator.permutation(np.flatnonzero(groups == name))[: min(each, count // 2)]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def cut(split: Split, share: float, kind: Kind, seed: int) -> tuple[Split, Split]:
    """Cut a training split into training and validation, by its class and bias labels.

    Args:
        split: the whole training split; without bias labels the two kinds differ in balancing classes only.
        share, kind: see `Share` and `Kind`.
        seed: of the choice.
    """
    groups = split.target if split.bias is None else split.target * (int(split.bias.max()) + 1) + split.bias
    chosen = balanced if kind == "unbiased" else stratified
    kept, held = chosen(groups, share, seed)
    return take(split, kept), take(split, held)


def take(split: Split, members: Indices) -> Split:
    """These samples of a split."""
    bias = None if split.bias is None else split.bias[members]
    condition = None if split.condition is None else split.condition[members]
    return Split(split.inputs[members], split.target[members], bias, condition)
