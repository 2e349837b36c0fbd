"""A data set with a share of its training samples (`train.data_share`), or with those of validation added
(`train.with_val`)."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from study.data import holdout
from study.data.dataset import Dataset, Split

SEED = 0
"""Seed of the choice: all trials of a study, whatever their own seed, train on the same samples."""


def with_share(dataset: Dataset, share: float) -> Dataset:
    """The data set with this share of its training samples, exact to one sample in each (class, bias) cell."""
    if share == 1.0:
        return dataset
    train = dataset.splits["train"]
    groups = train.target if train.bias is None else train.target * (int(train.bias.max()) + 1) + train.bias
    _, chosen = holdout.stratified(groups, share, SEED)
    splits = {**dataset.splits, "train": holdout.take(train, chosen)}
    return replace(dataset, splits=splits, stored_fingerprint=f"{dataset.fingerprint}, {share} of train")


def with_val(dataset: Dataset) -> Dataset:
    """The data set with the validation samples added behind the training samples, and no validation split."""
    train, val = dataset.splits["train"], dataset.splits["val"]
    arrays = {field.name: _joined(getattr(train, field.name), getattr(val, field.name)) for field in fields(Split)}
    splits = {**{name: split for name, split in dataset.splits.items() if name != "val"}, "train": Split(**arrays)}
    return replace(dataset, splits=splits, stored_fingerprint=f"{dataset.fingerprint}, val in train")


def _joined(first: NDArray[Any] | None, second: NDArray[Any] | None) -> Any:
    return None if first is None or second is None else np.concatenate([first, second])
