"""A data set with a part of its training split, for a study of a smaller budget."""

from dataclasses import replace

from study.data import holdout
from study.data.dataset import Dataset

SEED = 0
"""Of the choice: all trials of a study, whatever their seed, train on the same samples."""


def with_share(dataset: Dataset, share: float) -> Dataset:
    """The data set with this share of its training samples, of each (class, bias) cell as near to it as one sample."""
    if share == 1.0:
        return dataset
    train = dataset.splits["train"]
    groups = train.target if train.bias is None else train.target * (int(train.bias.max()) + 1) + train.bias
    _, chosen = holdout.stratified(groups, share, SEED)
    splits = {**dataset.splits, "train": holdout.take(train, chosen)}
    return replace(dataset, splits=splits, stored_fingerprint=f"{dataset.fingerprint}, {share} of train")
