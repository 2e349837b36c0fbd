"""How many samples of each class and bias class the splits of a data set have, from labels alone."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from study import data
from study.data.dataset import Facts, Labelled
from study.errors import UserError


def count(section: Mapping[str, Any]) -> dict[str, Any]:
    """The `contents` of each split of a `data` section, as plain values; no image is decoded.

    Returns:
        `splits`: the contents by split; `class_names` and `bias_names`: None where the data set has no names; and
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
    """Counts of one split, as plain values.

    Returns:
        `samples`, `unlabelled` and `classes` (samples of each). With bias labels also `cells` (samples of each pair of
        class and bias class), the `smallest` and `largest` of them that are not empty, how many are `empty`, and, where
        a bias class is a class's own, `aligned` and `conflicting` samples. What there is not is None.
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
        if facts.classes == facts.bias_classes and not facts.is_table:  # else no bias class is a class's own
            document["aligned"] = int(np.trace(np.array(document["cells"])))
            document["conflicting"] = int(cells.sum()) - document["aligned"]
    return document
