"""Random splits with given counts per class and bias class, for biased training and balanced evaluation."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from study.data.listings import Listing
from study.errors import UserError

Cell = tuple[int, int]
"""A class and a bias class."""


def draw(listing: Listing, counts: Mapping[str, Mapping[Cell, int]], seed: int, name: str) -> dict[str, Listing]:
    """Disjoint splits with exactly these counts of each (class, bias class), in the listing's order.

    Args:
        counts: per split, how many of each cell.
        name: of the data set, for the message.

    Raises:
        UserError: a cell has fewer images than the splits together need.
    """
    assert listing.bias is not None
    generator = np.random.default_rng(seed)
    members: dict[str, list[NDArray[np.int64]]] = {split: [] for split in counts}
    for cell in sorted({cell for of_split in counts.values() for cell in of_split}):
        indices = generator.permutation(np.flatnonzero((listing.target == cell[0]) & (listing.bias == cell[1])))
        needed = {split: of_split.get(cell, 0) for split, of_split in counts.items()}
        if len(indices) < sum(needed.values()):
            counts_text = ", ".join(f"{count} for {split}" for split, count in needed.items())
            raise UserError(
                f"{name}: {len(indices)} images of class {cell[0]} and bias class {cell[1]}, {sum(needed.values())} "
                f"are needed ({counts_text}). Get the missing files, or lower data.train_samples, data.eval_samples"
            )
        for split, part in zip(counts, np.split(indices, np.cumsum(list(needed.values()))), strict=False):
            members[split].append(part)
    return {split: listing.take(np.sort(np.concatenate(parts))) for split, parts in members.items()}


def splits(listing: Listing, options: Any, ratio: float, common: frozenset[Cell], name: str) -> dict[str, Listing]:
    """Biased training, balanced test, and validation like test or, with `val: biased`, like training.

    A biased validation split is drawn from the samples that training and test leave, which are the same either way.

    Args:
        options: with the keys `train_samples`, `eval_samples`, `val` and `split_seed`.
        ratio, common: of training, see `biased`.
        name: of the data set, for messages.
    """
    even = biased(options.eval_samples, 1, frozenset())
    train = biased(options.train_samples, ratio, common)
    drawn = draw(listing, {"train": train, "val": even, "test": even}, options.split_seed, name)
    if options.val == "unbiased":
        return drawn
    taken = {file for split in ("train", "test") for file in drawn[split].files}
    left = listing.take(np.array([file not in taken for file in listing.files]))
    return {**drawn, **draw(left, {"val": biased(options.eval_samples, ratio, common)}, options.split_seed, name)}


def biased(samples: int, ratio: float, common: frozenset[Cell]) -> dict[Cell, int]:
    """Counts of a two by two split: in each bias class the common cell has `ratio` times as many samples as the other.

    The common cell is rounded up, as in the FSCL paper: 3,334 and 1,666 of 5,000 for a ratio of 2.
    """
    half = samples // 2
    many = int(np.ceil(half * ratio / (ratio + 1) - 1e-9))
    cells = [(target, bias) for target in (0, 1) for bias in (0, 1)]
    return {cell: many if cell in common else half - many for cell in cells}
