"""Folds: the samples outside test divided into parts, each of which validates once while the others train.

The samples are kept once, as they were read; a fold is a view of them. What is fitted to training rows (the mean and
deviation of a table's numbers, what fills a gap, which words have an input) is fitted to those of the fold.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from study.data import holdout
from study.data.dataset import Dataset, FoldAssignment, RawTable, Split, derived_fingerprint, fingerprint_without_fold
from study.data.table_columns import mean_and_deviation
from study.errors import UserError


def divide_into_folds(
    dataset: Dataset, count: int, seed: int, same: NDArray[np.int64] | None = None, raw: RawTable | None = None
) -> Dataset:
    """Divide the samples outside test into folds, and return the data set as its first fold has it.

    Args:
        dataset: with a validation split that was cut from the training samples and is as biased as they are.
        count: number of folds.
        seed: chooses the samples of each.
        same: group label of samples that must stay in one fold, (N,): the training samples, then the validation
            samples; None: there are no groups.
        raw: the table before fitting, where the data are one.

    Raises:
        UserError: there are fewer samples, or groups that stay together, than folds.
    """
    splits = dataset.splits if raw is None else raw.splits
    learn = holdout.concatenate_samples(splits["train"], splits["val"])
    units = len(learn) if same is None else len(np.unique(same))
    if units < count:
        what = "samples" if same is None else "groups that stay together"
        raise UserError(f"data.folds: {count} given, but outside test are {units} {what}. Allowed is at most that many")
    numbers = holdout.assign_folds(holdout.cell_of_sample(learn), count, seed, same)
    named = derived_fingerprint(dataset.fingerprint, f"{count} folds of seed {seed}")
    whole = replace(dataset, stored_fingerprint=named)
    return select_fold(replace(whole, folds=FoldAssignment(count, numbers, learn, raw, same)), 0)


def select_fold(dataset: Dataset, fold: int | None) -> Dataset:
    """Return the data set of one fold: validated on this fold, trained on the others.

    Args:
        fold: its number; None: train on all folds, without a validation split. A data set without folds is returned
            as it is.

    Raises:
        UserError: there is no such fold.
    """
    folds = dataset.folds
    if fold is not None:
        check_fold_exists(fold, None if folds is None else folds.fold_count)
    if folds is None:
        return dataset
    if fold is None:
        parts = {"train": folds.non_test_samples}
    else:
        held = folds.fold_of_sample == fold
        parts = {
            "train": view_of_split(folds.non_test_samples, ~held),
            "val": view_of_split(folds.non_test_samples, held),
        }
    whole = dataset.splits if folds.raw_table is None else folds.raw_table.splits
    splits = parts | {name: split for name, split in whole.items() if name not in ("train", "val")}
    if folds.raw_table is not None:
        splits = encode_raw_splits(splits, folds.raw_table, every_word=fold is None)
    facts = replace(dataset.facts, splits=tuple(splits))
    if facts.is_table:
        facts = replace(facts, shape=splits["train"].inputs.shape[1:])
    named = f"{fingerprint_without_fold(dataset.fingerprint)}: fold {'none' if fold is None else fold}"
    return replace(dataset, facts=facts, splits=splits, stored_fingerprint=named)


def split_into_folds(folds: FoldAssignment) -> list[Split]:
    """Return the samples of each fold, as they were read."""
    return [view_of_split(folds.non_test_samples, folds.fold_of_sample == fold) for fold in range(folds.fold_count)]


def check_fold_exists(fold: int, count: int | None) -> None:
    """Raise a UserError if there is no such fold.

    Args:
        count: number of folds; None: the data have none.
    """
    if count is None:
        raise UserError(f"fold {fold} given, but the data have no folds: data.folds says how many")
    if not 0 <= fold < count:
        raise UserError(f"fold {fold} given, allowed is 0 to {count - 1} (data.folds: {count})")


def view_of_split(split: Split, members: NDArray[np.bool_]) -> Split:
    """Return these samples of a split as a view: it shares the inputs and copies the labels alone."""
    return replace(holdout.select_samples(replace(split, rows=np.arange(len(split))), members), inputs=split.inputs)


def encode_raw_splits(parts: Mapping[str, Split], raw: RawTable, every_word: bool) -> dict[str, Split]:
    """Encode splits of raw rows as inputs float32 (N, F), fitted to the split `train`.

    Args:
        every_word: give each word of the table an input, not those of the training rows alone.
    """
    rows = {name: split.sample_inputs for name, split in parts.items()}
    columns: dict[str, list[NDArray[np.float64]]] = {name: [] for name in rows}
    for place, kind in enumerate(raw.column_kinds):
        values = {name: np.asarray(of_split[:, place], np.float64) for name, of_split in rows.items()}
        train = values["train"]
        if kind == "number":
            mean, deviation = mean_and_deviation(train)
            for name, numbers in values.items():
                columns[name].append((np.where(np.isnan(numbers), mean, numbers) - mean)[:, None] / deviation)
        elif kind == "word":
            known = np.concatenate([split.inputs[:, place] for split in raw.splits.values()]) if every_word else train
            words = np.unique(known)
            for name, numbers in values.items():
                columns[name].append((numbers[:, None] == words).astype(np.float64))
        else:
            for name, numbers in values.items():
                columns[name].append(numbers[:, None])
    return {
        name: replace(parts[name], inputs=np.concatenate(found, 1).astype(np.float32), rows=None)
        for name, found in columns.items()
    }
