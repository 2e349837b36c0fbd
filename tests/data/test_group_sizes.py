"""The sizes of the groups that a study keeps."""

import numpy as np

from study.data.cells import group_sizes
from study.data.dataset import Dataset, Facts, Split
from study.data.folds import divide_into_folds


def split(target: list[int], bias: list[int] | None) -> Split:
    inputs = np.zeros((len(target), 1, 1, 1), dtype=np.uint8)
    return Split(inputs, np.array(target), None if bias is None else np.array(bias))


def dataset(bias: list[int] | None = None, classes: int = 2, **facts: object) -> Dataset:
    known = Facts(classes, None if bias is None else 2, (1, 1, 1), **facts)  # type: ignore[arg-type]
    one = split([0, 0, 0, 1], bias)
    return Dataset(known, {"train": one, "val": one, "test": split([1, 1, 1, 1], bias)})


def test_each_split_that_is_judged_by_is_counted_by_class_and_bias_class() -> None:
    found = group_sizes({"": dataset([0, 0, 1, 1], class_names=("cat", "dog"))})
    assert found == {"val": [[2, 1], [0, 1]], "test": [[0, 0], [2, 2]], "classes": ["cat", "dog"], "aligned": None}
    assert (group_sizes({"": dataset([0, 0, 1, 1], aligned=(1, 0))}) or {}).get("aligned") == [1, 0]
    assert (group_sizes({"": dataset([0, 0, 1, 1], aligned=((0, 1), -1))}) or {}).get("aligned") == [[0, 1], -1]


def test_nothing_is_kept_without_bias_labels_of_many_groups_and_of_several_data_sets() -> None:
    assert group_sizes({"": dataset()}) is None
    assert group_sizes({"": dataset([0, 0, 1, 1], classes=201)}) is None
    assert group_sizes({"a": dataset([0, 0, 1, 1]), "b": dataset([0, 0, 1, 1])}) is None


def test_each_fold_is_counted_too() -> None:
    facts = Facts(2, 2, (1, 1, 1))
    whole = Dataset(facts, {"train": split([0] * 6 + [1], [0, 0, 0, 0, 1, 1, 0]), "val": split([0, 1], [0, 0])})
    found = group_sizes({"": divide_into_folds(whole, 2, 0)}) or {}
    first, second = found["val_by_fold"]
    assert first == found["val"]
    assert np.add(first, second).tolist() == [[5, 2], [2, 0]]
