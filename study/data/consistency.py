"""Checks that the arrays of a data set fit its facts."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from study.data.dataset import Facts, Split
from study.errors import UserError


def check(name: str, facts: Facts, splits: Mapping[str, Split], made_from: str = "") -> None:
    """Refuse splits that do not fit the facts: names, counts, shapes, types, ranges of the labels.

    Args:
        name: of the data set, for the message.
        made_from: the files that it was made from, for the message.

    Raises:
        UserError: says which split, what it has and what it should have.
    """
    where = f"{name} (made from {made_from})" if made_from else name
    if set(splits) != set(facts.splits):
        raise UserError(f"{where}: has the splits {', '.join(splits)}, {', '.join(facts.splits)} are needed")
    for split_name, split in splits.items():
        problem = next((text for text in _problems(facts, split_name, split) if text), None)
        if problem:
            raise UserError(f"{where}: split {split_name}: {problem}")


def _problems(facts: Facts, name: str, split: Split) -> list[str]:
    count = len(split)
    if count == 0:
        return ["is empty; the files are not complete, or the options leave nothing for it"]
    expected = np.dtype(np.float32 if facts.is_table else np.uint8)
    lowest = -1 if facts.unlabelled and name == "train" else 0
    return [
        _shape("inputs", split.inputs, (count, *facts.shape)),
        "" if split.inputs.dtype == expected else f"inputs are {split.inputs.dtype}, {expected} is needed",
        _labels("target", split.target, count, facts.classes, lowest),
        _optional("bias", split.bias, facts.on(name).bias_classes),
        "" if split.bias is None else _labels("bias", split.bias, count, facts.bias_classes or 0, -facts.some_bias),
        _optional("condition", split.condition, facts.condition),
        "" if split.condition is None else _shape("condition", split.condition, (count, facts.condition or 0)),
        "" if split.condition is None or np.isfinite(split.condition).all() else "condition is not finite everywhere",
        "" if not facts.is_table or np.isfinite(split.inputs).all() else "inputs are not finite everywhere",
    ]


def _shape(what: str, array: NDArray[np.generic], shape: tuple[int, ...]) -> str:
    return "" if array.shape == shape else f"{what} have shape {array.shape}, {shape} is needed"


def _optional(what: str, array: NDArray[np.generic] | None, size: int | None) -> str:
    if (array is None) == (size is None):
        return ""
    return f"has no {what}" if array is None else f"has {what}, which the data set does not declare"


def _labels(what: str, labels: NDArray[np.int64], count: int, classes: int, lowest: int = 0) -> str:
    if labels.shape != (count,) or labels.dtype != np.int64:
        return f"{what} is {labels.dtype} {labels.shape}, int64 ({count},) is needed"
    low, high = int(labels.min()), int(labels.max())
    if low < lowest or high >= classes:
        wrong = low if low < lowest else high
        position = int(np.argmax(labels == wrong))
        return f"{what} of sample {position} is {wrong}, allowed is {lowest} to {classes - 1}"
    return ""
