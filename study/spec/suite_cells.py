"""The study file that each search of a suite is made of."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from study.spec.document import Document, Key
from study.spec.study_spec import StudySpec
from study.spec.suite_schema import BaseSearch

KEPT = tuple(BaseSearch.model_fields)
"""Keys of `search` that are the same for every method."""

SAMPLER = "random"
"""Where no sampler is given: its configurations are drawn for no rule, so that all rules choose among the same."""


def graft(source: Document, at: Key, target: Document, to: Key) -> None:
    """Remember in `target` below `to` where the keys of `source` below `at` stand."""
    for key, place in source.places.items():
        if key[: len(at)] == at:
            target.places[*to, *key[len(at) :]] = place


def cell_document(suite: Document, checked: Mapping[str, Any], method: str, label: str) -> Document:
    """The study file of a method's first search on a data set; its keys stand where the suite file has them.

    Args:
        suite: the file, its base written out.
        checked: the same with defaults.
    """
    base, own, budget = suite.values.get("base") or {}, suite.values["methods"][method], checked["budget"]
    place = f"{suite.source}: methods.{method} on data.{label}"
    cell = Document(place, {"name": "cell", "data": dict(suite.values["data"][label]), "method": dict(own["method"])})
    cell.values["model"] = _model(base.get("model"), own.get("model"))
    cell.values["train"] = {**(base.get("train") or {}), **(own.get("train") or {}), "epochs": budget["epochs"]}
    space = own.get("space") or {}
    cell.values["search"] = {
        "sampler": SAMPLER,
        **{key: value for key, value in (base.get("search") or {}).items() if value is not None},
        "space": space,
        "enqueue": own.get("enqueue") or [],
        "trials": budget["trials"] if space else 1,
        "confirm": {"top": 0, "seeds": budget["seeds"], "rules": list(checked["rules"])},
    }
    cell.values["resources"] = dict(base.get("resources") or {})
    for section in ("model", "train", "search", "resources"):
        graft(suite, ("base", section), cell, (section,))
    for section in ("method", "model", "train"):
        graft(suite, ("methods", method, section), cell, (section,))
    for section in ("space", "enqueue"):
        graft(suite, ("methods", method, section), cell, ("search", section))
    graft(suite, ("data", label), cell, ("data",))
    graft(suite, ("budget", "trials"), cell, ("search", "trials"))
    graft(suite, ("budget", "epochs"), cell, ("train", "epochs"))
    graft(suite, ("budget",), cell, ("search", "confirm"))
    return cell


def _model(base: Mapping[str, Any] | None, own: Mapping[str, Any] | None) -> dict[str, Any]:
    """A method's network: its own where it names one, else that of all with the keys that it gives."""
    return dict(own) if own and "name" in own else {**(base or {}), **(own or {})}


def numbered(first: StudySpec, data: int, search: int, seeds: int, *, fresh: bool) -> StudySpec:
    """A search of a method on a data set from the first one.

    All methods have the same seeds in the same search of the same data set, so that they can be compared in pairs.
    No two searches of a method share any, be it on one data set or on two.

    Args:
        data, search: places of the data set and of the search, from 0.
        seeds: fresh training seeds of a study.
        fresh: whether it has a split of its own.
    """
    turn = block(data, search)
    train = {**first.base["train"], "seed": first.seed + turn * (len(first.seeds) + seeds)}
    section = dict(first.base["data"])
    if fresh:
        section["seed"] = section["seed"] + turn
    base = {**first.base, "train": train, "data": section}
    return replace(first, base=base, search=first.search.model_copy(update={"seed": turn}))


def block(data: int, search: int) -> int:
    """A number of its own for each pair (Cantor's pairing): more data sets or searches change none of it."""
    total = data + search
    return total * (total + 1) // 2 + search
