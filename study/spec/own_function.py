"""A study file whose trials run a training function of the user's own: what it may leave out, and what it may not have.

Data set and network are the function's: `data` and `model` say `none`. Every key of `method` but `name` and `function`
is an argument of the function's configuration; one that is only searched begins at its baseline's value, or at the
low end of its range.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from pydantic import ValidationError

from study.catalogue import APART
from study.methods import OWN
from study.spec.checks import Problems
from study.spec.schema import Domain
from study.training.config import TrainOptions

OF_TRAIN = ("epochs", "seed", "threads")
"""The keys of `train` that mean something to a function."""

METRIC = re.compile(r"val/\w+")


def is_own(values: Mapping[str, Any]) -> bool:
    """Return whether these sections are those of such a study."""
    method = values.get("method")
    return isinstance(method, dict) and method.get("name") == OWN


def completed(values: dict[str, Any], problems: Problems) -> dict[str, Any]:
    """A study file's values with what it may leave out; those of any other study as they are."""
    if not is_own(values):
        return values
    method, search = dict(values["method"]), _mapping(values.get("search"))
    baseline = _mapping(search.get("baseline"))
    for key, given in _mapping(search.get("space")).items():
        section, _, name = str(key).partition(".")
        if section != "method" or name in ("name", "function"):
            problems.add(("search", "space", str(key)), "cannot be searched: allowed are method.NAME, the function's")
        elif (ends := _ends(given)) is not None:
            method[name] = _as_in(ends, method.get(name, baseline.get(key)), name in method)
    for name in method:
        if not re.fullmatch(r"[A-Za-z]\w*", str(name)):
            problems.add(("method", str(name)), "allowed is a name of letters, digits and '_'")
    return {"data": {"name": APART["study.data"]}, "model": {"name": APART["study.models"]}, **values, "method": method}


def faults(trial: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield what complete sections of such a trial have that means nothing to a function, and what other trials have of
    it: the key to change, as (section, key), and why."""
    own = trial["method"]["name"] == OWN
    for section, catalogue in (("data", "study.data"), ("model", "study.models")):
        if own != (trial[section]["name"] == APART[catalogue]):
            allowed = APART[catalogue] if own else f"any but {APART[catalogue]}, which is for method.name {OWN}"
            yield (section, "name"), f"{trial[section]['name']!r} given, allowed is {allowed}"
    if own:
        for field in fields(TrainOptions):
            value = trial["train"].get(field.name, field.default)
            value = tuple(value) if isinstance(value, list) else value
            if field.name not in OF_TRAIN and value != field.default:
                yield (
                    ("train", field.name),
                    f"means nothing to a function of one's own. Allowed: {', '.join(OF_TRAIN)}; give it under method",
                )


def check_metrics(names: Mapping[tuple[str, ...], str], problems: Problems) -> None:
    """Check the form of the metrics that are searched for or limited, by their places; which there are only a trial
    tells."""
    for place, name in names.items():
        if not METRIC.fullmatch(name):
            note = "test metrics cannot be used to choose. " if name.startswith("test/") else ""
            problems.add(place, f"{name!r} given. {note}Allowed: val/NAME, as the function yields it")


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _ends(given: Any) -> list[Any] | None:
    """The ends of a domain, None where it is none: the checks of the search say why."""
    try:
        ends = Domain.model_validate(given).ends()
    except ValidationError:
        return None
    return ends if None not in ends or (isinstance(given, dict) and given.get("choices")) else None


def _as_in(ends: list[Any], value: Any, is_given: bool) -> Any:
    """A value of the kind that a domain has: a whole number as a float where there are floats. One that is not given by
    the section itself, and is missing or of another kind, is an end."""
    others = [end for end in ends if type(end) is not int]
    if type(value) is int and any(type(end) is float for end in others):
        return float(value)
    fits = value is not None and (others or type(value) is int)
    return value if is_given or fits else next(iter(others), ends[0])
