"""Cut validation splits and folds from training samples by a seed, as biased as these are or balanced."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Doc

from study.data.dataset import HasLabels
from study.knobs import Range

ValShareKey = Annotated[
    float,
    Range(above=0.0, high=0.5),
    Doc("share of the training samples that is held out for validation, where the data set's own is not taken"),
]
"""Type of the key `val_share`: share of the training samples that the validation split gets."""

SplitSeedKey = Annotated[int, Range(low=0), Doc("seed that chooses the samples of the splits that are not given")]
"""Type of the key `split_seed`."""

FoldsKey = Annotated[
    Annotated[int, Range(low=2, high=100)] | None,
    Doc(
        "number of folds, each as biased as the others, of the samples outside the test split: every trial validates "
        "on one of them and trains on the rest; null: one validation split for all trials"
    ),
]
"""Type of the key `folds`, of a data set whose validation split can be cut as biased as training."""

ValKind = Literal["biased", "unbiased", "given"]
"""Choice of the validation samples, see `VAL_KEY_DOC`."""

VAL_KEY_DOC = (
    "validation split: `biased`, as training is, or `unbiased`, each pair of class and bias equally often as far as "
    "there are samples, both held out of training; `given`: the data set's own"
)
"""Meaning of the key `val`, for every data set that has it."""

ValKey = Annotated[ValKind, Doc(VAL_KEY_DOC)]
"""Type of the key `val`."""

BiasedOrUnbiasedValKey = Annotated[Literal["biased", "unbiased"], Doc(VAL_KEY_DOC.partition(";")[0])]
"""Type of the key `val` for a data set without a validation split of its own."""

Indices = NDArray[np.int64]

SplitLike = TypeVar("SplitLike", bound=Any)
"""A dataclass whose fields hold a value for each sample, or None."""


def stratified_split(strata: NDArray[np.int64], share: float, seed: int | Sequence[int]) -> tuple[Indices, Indices]:
    """Return indices to keep and to hold out, both sorted: `share` of all, and of each group to within one sample.

    Args:
        strata: any label per sample, (N,): a class, or a (class, bias) cell.
    """
    shuffled = np.random.default_rng(seed).permutation(len(strata))
    by_group = shuffled[np.argsort(strata[shuffled], kind="stable")]
    marks = np.floor(np.arange(len(strata) + 1) * share + 0.5)
    held = np.zeros(len(strata), bool)
    held[by_group[np.diff(marks) > 0]] = True  # at even distances through the groups
    return np.flatnonzero(~held), np.flatnonzero(held)


def balanced_split(strata: NDArray[np.int64], share: float, seed: int | Sequence[int]) -> tuple[Indices, Indices]:
    """Return indices to keep and to hold out, both sorted: as many held out of each group, if it has enough members.

    The number is `share` of all samples, divided by the number of groups. At most half of a group is held out, so that
    training keeps some of the rare ones.
    """
    names, counts = np.unique(strata, return_counts=True)
    each = max(1, round(len(strata) * share / len(names)))
    generator = np.random.default_rng(seed)
    held = np.zeros(len(strata), bool)
    for name, count in zip(names, counts, strict=True):
        held[generator.permutation(np.flatnonzero(strata == name))[: min(each, count // 2)]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def cell_of_sample(labels: HasLabels) -> NDArray[np.int64]:
    """Label each sample by its cell, (class, bias class), or by its class where there are no bias labels, (N,).

    The samples of a class whose bias is unknown, -1, are a cell of their own.
    """
    if labels.bias is None or not len(labels.bias):
        return labels.target
    return labels.target * (int(labels.bias.max()) + 2) + labels.bias + 1


def split_by_val_kind(
    strata: NDArray[np.int64],
    share: float,
    kind: ValKind,
    seed: int | Sequence[int],
    groups: NDArray[np.int64] | None = None,
) -> tuple[Indices, Indices]:
    """Return indices to keep and to hold out, both sorted: by `balanced_split` for `unbiased`, else `stratified_split`.

    Args:
        groups: label (N,) of what must not be divided (one person's samples, copies of one picture); None: nothing.
            An unbiased split then leaves out what it has too many of, so that some indices are in neither.
    """
    if groups is None:
        return (balanced_split if kind == "unbiased" else stratified_split)(strata, share, seed)
    generator = np.random.default_rng(seed)
    shuffled = generator.permutation(len(groups))
    cells, counts = np.unique(strata, return_inverse=True)[1], np.unique(strata, return_counts=True)[1]
    starts = np.unique(groups[shuffled], return_index=True)[1]  # where each one comes first, in random order
    first = shuffled[starts]
    order = np.lexsort((starts, cells[first])) if kind != "unbiased" else np.argsort(starts)
    members = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.unique(groups, return_counts=True)[1])[:-1])
    gone, debt, held = np.zeros(len(counts), int), 0.0, list[int]()
    kept = np.ones(len(strata), bool)
    wanted = np.minimum(max(1, round(len(strata) * share / max(1, len(counts)))), counts // 2)
    for number in order:
        here = members[number]
        found = np.bincount(cells[here], minlength=len(counts))
        if kind != "unbiased":
            debt += share * len(here)
            if debt >= len(here) / 2:  # as `stratified_split`, where each sample is alone
                debt -= len(here)
                held += here.tolist()
        elif (gone + found <= counts // 2).all() and (gone < wanted)[cells[here]].any():
            taken = gone.copy()
            gone += found
            for sample in here:
                taken[cells[sample]] += 1
                held += [int(sample)] if taken[cells[sample]] <= wanted[cells[sample]] else []
            kept[here] = False
    kept[held] = False
    return np.flatnonzero(kept), np.array(sorted(held), np.int64)


def assign_folds(
    strata: NDArray[np.int64], count: int, seed: int | Sequence[int], groups: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Assign a fold to each sample, (N,), from 0; each group, and the whole, is divided as evenly as possible.

    Args:
        strata: any label per sample, (N,): a class, or a (class, bias) cell.
        groups: label (N,) of what must not be divided; None: nothing.
    """
    numbers, generator = np.empty(len(strata), np.int64), np.random.default_rng(seed)
    if groups is None:
        shuffled = generator.permutation(len(strata))
        numbers[shuffled[np.argsort(strata[shuffled], kind="stable")]] = np.arange(len(strata)) % count
        return numbers
    _, cells, totals = np.unique(strata, return_inverse=True, return_counts=True)
    _, unit, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    members = np.split(np.argsort(unit, kind="stable"), np.cumsum(sizes)[:-1])
    drawn = generator.permutation(len(members))
    first = cells[[of_unit[0] for of_unit in members]]
    order = drawn[np.lexsort((first[drawn], -sizes[drawn]))]  # the largest first: what follows fills the gaps
    filled, load = np.zeros((count, len(totals))), np.zeros(count)
    for number in order:
        here = members[number]
        found = np.bincount(cells[here], minlength=len(totals))
        cost = filled @ (found / totals) + load * (len(here) / len(strata))
        fold = int(np.lexsort((load, cost.round(9)))[0])
        filled[fold] += found
        load[fold] += len(here)
        numbers[here] = fold
    return numbers


def merge_group_labels(*parts: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
    """Merge labels (N,): samples that share one, directly or by way of others, get one; None: no labels."""
    labels = [np.unique(part, return_inverse=True)[1] for part in parts if part is not None]
    if len(labels) < 2:
        return labels[0] if labels else None
    from scipy.sparse import coo_matrix  # slow to import
    from scipy.sparse.csgraph import connected_components

    rows = np.arange(len(labels[0]))
    offsets = len(rows) + np.cumsum([0, *(part.max(initial=-1) + 1 for part in labels)])
    ends = np.concatenate([part + offset for part, offset in zip(labels, offsets, strict=False)])
    edges = (np.ones(len(ends)), (np.tile(rows, len(labels)), ends))
    whole = connected_components(coo_matrix(edges, shape=(offsets[-1], offsets[-1])), directed=False)[1]
    return whole[: len(rows)].astype(np.int64)


def select_samples(part: SplitLike, members: Indices | NDArray[np.bool_]) -> SplitLike:
    """Select samples, by index or mask, from labels, a split or a list of files."""
    places = np.arange(len(part.target))[members]
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    chosen = {
        name: value[places] if isinstance(value, np.ndarray) else [value[place] for place in places]
        for name, value in values.items()
        if value is not None and not (name == "inputs" and values.get("rows") is not None)
    }
    return replace(part, **chosen)


def concatenate_samples(first: SplitLike, second: SplitLike) -> SplitLike:
    """Concatenate the samples of two splits, or of two lists of labels."""
    arrays = {}
    for name in (field.name for field in fields(first)):
        pair = [getattr(part, "sample_inputs" if name == "inputs" else name) for part in (first, second)]
        arrays[name] = None if name == "rows" or any(array is None for array in pair) else np.concatenate(pair)
    return replace(first, **arrays)


def hold_out(part: SplitLike, share: float, seed: int, kind: ValKind = "biased") -> tuple[SplitLike, SplitLike]:
    """Divide samples into those to keep and to hold out, by class and bias class, see `split_by_val_kind`."""
    kept, held = split_by_val_kind(cell_of_sample(part), share, kind, seed)
    return select_samples(part, kept), select_samples(part, held)


def add_held_out_val(
    whole: Mapping[str, SplitLike], share: float, seed: int, kind: ValKind = "biased"
) -> dict[str, SplitLike]:
    """Add a validation split that is cut from training; it replaces one that is there."""
    train, val = hold_out(whole["train"], share, seed, kind)
    return {"train": train, "val": val, **{name: part for name, part in whole.items() if name not in ("train", "val")}}
