"""How many samples each group, a class with a bias class, has in each split: what a worst group's accuracy rests on."""

from collections.abc import Mapping
from typing import Any

from study.data.cells import contents
from study.data.dataset import Dataset

MOST_GROUPS = 400
"""Groups of a data set up to which their sizes are kept with a study."""


def group_sizes(datasets: Mapping[str, Dataset]) -> dict[str, Any] | None:
    """Of a study's data set, as plain values.

    Returns:
        By split, `val` and `test`, a list per class with the samples of each bias class; `classes` and `biases`, their
        names, where it has names. None without bias labels, for more than `MOST_GROUPS`, and for several data sets.
    """
    if len(datasets) != 1:
        return None
    (dataset,) = datasets.values()
    facts = dataset.facts
    if not facts.bias_classes or facts.classes * facts.bias_classes > MOST_GROUPS:
        return None
    found = {
        name: contents(dataset.splits[name], facts.on(name))["cells"]
        for name in ("val", "test")
        if name in dataset.splits
    }
    sizes: dict[str, Any] = {name: cells for name, cells in found.items() if cells}
    names = {"classes": facts.class_names, "biases": facts.bias_names}
    return sizes | {key: list(value) for key, value in names.items() if value} if sizes else None
