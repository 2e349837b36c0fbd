"""A study's data sets as MLflow's inputs: one per split."""

import json
from collections.abc import Mapping
from typing import Any

from study.tracking.change import Input

CONTEXT = "mlflow.data.context"
"""The tag of an input that says what it was read for."""


def inputs(section: Mapping[str, Any], told: Mapping[str, Any]) -> list[Input]:
    """The splits of one data set.

    Args:
        section: the `data` section.
        told: what the ledger says of it, see `study.data.inventory`.
    """
    kind, source = _source(str(section["name"]), told["sources"])
    digest, shape = told["digest"], told.get("shape")
    return [
        Input(
            f"{told['title']}, {split}"[:MOST],
            digest[:DIGEST],
            split,
            kind,
            source,
            json.dumps({"num_rows": rows, "shape": shape}),
        )
        for split, rows in told["rows"].items()
    ]


def _source(name: str, sources: list[str]) -> tuple[str, str]:
    """Its kind and what MLflow keeps of it: the first address, and all where there are more."""
    if not sources:
        return "code", json.dumps({"tags": {"mlflow.source.name": f"study.data.sets.{name}"}})
    several = {"files": sources} if len(sources) > 1 else {}
    if sources[0].startswith(("http://", "https://")):
        return "http", json.dumps({"url": sources[0], **several})
    return "local", json.dumps({"uri": sources[0], **several})


MOST, DIGEST = 500, 36
"""Characters of a name and a digest that MLflow takes."""
