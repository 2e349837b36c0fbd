"""Other data in the numbers of a model: their classes and bias classes are found by name."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from study.data.dataset import Dataset, Facts
from study.errors import UserError
from study.text import quoted, some

Names = Sequence[str] | None


def numbered_as(dataset: Dataset, model: Facts) -> Dataset:
    """The data set with each class and bias class numbered as the model numbers the one of this name.

    Names that the data lack are fine. Where either side has no names its numbers stay as they are, and the data's bias
    stays where the model has none. Data that are numbered so already are returned as they are.

    Args:
        model: the facts of the data that the model was trained on.

    Raises:
        UserError: the data have a class or a bias class that the model does not know.
    """
    facts = dataset.facts
    target = _numbers("class", "classes", facts.class_names, model.class_names)
    bias = _numbers("bias class", "bias classes", facts.bias_names, model.bias_names)
    if target is not None:
        facts = replace(facts, classes=model.classes, class_names=model.class_names)
    if bias is not None:
        facts = replace(facts, bias_classes=model.bias_classes, bias_names=model.bias_names)
    if facts == dataset.facts:
        return dataset
    splits = {
        name: replace(
            split,
            target=split.target if target is None else target[split.target],
            bias=split.bias if bias is None or split.bias is None else bias[split.bias],
        )
        for name, split in dataset.splits.items()
    }
    return Dataset(facts, splits)


def _numbers(one: str, several: str, given: Names, known: Names) -> NDArray[np.int64] | None:
    """The model's number of each of the data's, and -1, not known, for -1; None: they stay."""
    if not given or not known:
        return None
    if foreign := [name for name in given if name not in known]:
        what = one if len(foreign) == 1 else several
        raise UserError(
            f"data: {what} {some(list(map(quoted, foreign)))} given, the model was trained on the {several} "
            f"{some(list(map(quoted, known)))}. Take out these rows, or write the model's names if they mean the same"
        )
    return np.array([*map(list(known).index, given), -1], np.int64)
