"""What a study's data sets are, in plain values: what tells MLflow, or a reader years later, which data that were."""

import json
from collections.abc import Mapping
from typing import Any

from study import data
from study.data.dataset import Dataset


def inventory(datasets: Mapping[str, Dataset]) -> dict[str, dict[str, Any]]:
    """Of each data set, by `study.data.key` of its section.

    Returns:
        `title`; `digest`, its fingerprint, which is one for all its splits; `shape` of a sample; `rows` by split; and
        `sources`: the addresses of the files that it is made from, the path of a user's own, none where it comes with
        the software.
    """
    return {key: _told(json.loads(key), dataset) for key, dataset in datasets.items()}


def _told(section: Mapping[str, Any], dataset: Dataset) -> dict[str, Any]:
    own = section.get("path")
    return {
        "title": dataset.facts.title or str(section["name"]),
        "digest": dataset.fingerprint,
        "shape": list(dataset.facts.shape),
        "rows": {name: len(split) for name, split in dataset.splits.items()},
        "sources": [own] if isinstance(own, str) else [source.url or source.path for source in data.sources(section)],
    }
