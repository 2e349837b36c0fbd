"""Count samples by class and bias class in the splits of a data set, from labels alone."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from study import data
from study.data.dataset import Dataset, Facts, Labelled
from study.errors import UserError
from study.text import quoted, some


def warnings(counts: Mapping[str, Any]) -> list[str]:
    """Warn about classes and cells that are measured but have no training sample, and about a useless bias.

    Args:
        counts: of `count`. Data without names, or that could not be counted, give no warnings.
    """
    if counts["unknown"] or not counts["class_names"]:
        return []
    train = counts["splits"]["train"]
    found = [*_bias(counts)]
    for name, split in counts["splits"].items():
        if name != "train":
            found += _unseen(counts, train, name, split)
    return found


def _bias(counts: Mapping[str, Any]) -> Iterator[str]:
    """Yield a warning if nothing can be learned of the bias: it has one value, or is known for no training sample."""
    names, cells = counts["bias_names"], counts["splits"]["train"]["cells"]
    if names and len(names) == 1:
        yield f"the bias is {quoted(names[0])} in every row: no group differs from another. Leave out data.bias"
    elif cells and not any(map(sum, cells)):
        yield "the bias is known for no training sample: nothing can be learned of it"


NAMED = 3
"""Cells that a sentence names."""


def _unseen(counts: Mapping[str, Any], train: Mapping[str, Any], name: str, split: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a split has and training lacks; the cells of an unseen class are not named again."""
    classes, biases = counts["class_names"], counts["bias_names"]
    unseen = [y for y, count in enumerate(split["classes"]) if count and not train["classes"][y]]
    if unseen:
        told = [f"{quoted(classes[y])} ({split['classes'][y]} in {name})" for y in unseen]
        yield f"class {some(told)} has no training sample: it cannot be learned, and all of it counts as wrong"
    if not biases or not split["cells"] or not train["cells"] or not any(map(sum, train["cells"])):
        return
    pairs = [(y, s) for y in range(len(classes)) for s in range(len(biases)) if y not in unseen]
    groups = [
        f"class {quoted(classes[y])} with bias class {quoted(biases[s])} ({split['cells'][y][s]} in {name})"
        for y, s in pairs
        if split["cells"][y][s] and not train["cells"][y][s]
    ]
    if groups:
        yield f"no training sample of {some(groups, NAMED)}: nothing is learned of such samples"


def count(section: Mapping[str, Any]) -> dict[str, Any]:
    """Count the samples of each split of a `data` section, as plain values; no image is decoded.

    Returns:
        `splits`: the `contents` by split; `class_names` and `bias_names`: None where the data set has no names; and
        `unknown`: why there are no counts, None where there are.
    """
    facts = data.describe(section)
    document: dict[str, Any] = {"splits": {}, "unknown": None}
    document |= {
        name: list(names) if (names := getattr(facts, name)) else None for name in ("class_names", "bias_names")
    }
    if any(source.existing_path() is None for source in data.sources(section)):
        return document | {"unknown": f"its files are not here, see study data prepare {section['name']}"}
    try:
        labels = data.labels(section)
    except UserError as error:
        return document | {"unknown": str(error)}
    if labels is None:
        return document | {"unknown": "the data set does not tell its labels without its samples"}
    return document | {"splits": {name: contents(split, facts.on(name)) for name, split in labels.items()}}


def contents(labels: Labelled, facts: Facts) -> dict[str, Any]:
    """Count the samples of one split, as plain values.

    Returns:
        `samples`, `unlabelled` and `classes` (samples of each). With bias labels also `cells` (samples of each pair of
        class and bias class), the `smallest` and `largest` of them that are not empty, how many are `empty`, and, where
        bias classes have classes of their own, `aligned` and `conflicting` samples. Keys that do not apply are None.
    """
    labelled = labels.target >= 0
    document: dict[str, Any] = {"samples": len(labels.target), "unlabelled": int((~labelled).sum())}
    document["classes"] = np.bincount(labels.target[labelled], minlength=facts.classes).tolist()
    document |= dict.fromkeys(("cells", "smallest", "largest", "empty", "aligned", "conflicting"))
    if labels.bias is not None and facts.bias_classes:
        known = labelled & (labels.bias >= 0)
        codes = labels.target[known] * facts.bias_classes + labels.bias[known]
        cells = np.bincount(codes, minlength=facts.classes * facts.bias_classes)
        document["cells"] = cells.reshape(facts.classes, facts.bias_classes).tolist()
        filled = cells[cells > 0]
        ends = {"smallest": int(filled.min()), "largest": int(filled.max())} if len(filled) else {}
        document |= {**ends, "empty": len(cells) - len(filled)}
        if facts.aligned is not None:
            own = np.array(facts.aligned) == np.arange(facts.classes)[:, None]
            document["aligned"] = int((np.array(document["cells"]) * own).sum())
            document["conflicting"] = int(cells.sum()) - document["aligned"]
    return document


# Sizes of the cells tell how reliable a worst group's accuracy is.

MOST_GROUPS = 400
"""Number of cells of a data set up to which their sizes are kept with a study."""


def group_sizes(datasets: Mapping[str, Dataset]) -> dict[str, Any] | None:
    """Return the size of each cell of a study's data set, as plain values.

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
