"""A study of a training function of one's own, from Python."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from study.api.plain import plain, plain_mapping
from study.errors import UserError
from study.methods import OWN
from study.spec import StudySpec
from study.spec.document import Document, override
from study.spec.load import resolve
from study.training.own_function import PICKLE, check, digest

Function = Callable[..., Iterator[Mapping[str, Any]]]


def function_study(
    train: Function,
    *,
    space: Mapping[str, Any],
    name: str,
    metric: str | Sequence[str],
    maximize: bool | Sequence[bool] | None,
    epochs: int,
    fixed: Mapping[str, Any],
    baseline: Mapping[str, Any] | None,
    assignments: list[str],
) -> tuple[StudySpec, bytes | None]:
    """The study of a function, checked, and the function pickled where no other process could import it.

    Raises:
        UserError: something given cannot be used.
    """
    named, content = reference(train)
    check(train, getattr(train, "__qualname__", named))
    domains = domains_of(space)
    fixed, values = plain_mapping(fixed, "fixed"), plain_mapping({} if baseline is None else baseline, "baseline")
    _check_keys(space=domains, fixed=fixed, baseline=values)
    names = metric if isinstance(metric, str) else list(metric)
    search: dict[str, Any] = {"metric": names, "space": {f"method.{key}": domains[key] for key in domains}}
    if maximize is not None:
        search["direction"] = _direction(maximize)
    if baseline is not None:
        search["baseline"] = {f"method.{key}": value for key, value in values.items()}
    method = {"name": OWN, "function": named, **fixed}
    document = Document("study.run", {"name": name, "method": method, "train": {"epochs": epochs}, "search": search})
    override(document, assignments)
    return resolve(document), content


def domains_of(space: Any) -> dict[str, Any]:
    """What is searched, by key, as a study file has it.

    Raises:
        UserError: it is no mapping of names to domains.
    """
    kept = dict.fromkeys(space) if isinstance(space, Mapping) else space
    return {key: domain(key, space[key]) for key in plain_mapping(kept, "space")}


def domain(key: str, given: Any) -> Any:
    """What is searched of a key, as a study file has it: a list or array is choices, a pair (low, high) a range, with a
    third "log" one on a log scale.

    Raises:
        UserError: it is none of these, or holds what a study file cannot.
    """
    values = plain(given, f"space: {key}")
    if isinstance(given, tuple) and len(values) == 2:
        return {"low": values[0], "high": values[1]}
    if isinstance(given, tuple) and values[2:] == ["log"]:
        return {"low": values[0], "high": values[1], "log": True}
    if isinstance(values, list) and not isinstance(given, tuple):
        return {"choices": values}
    if isinstance(values, dict):
        return values
    raise UserError(
        f"space: {key}: {given!r} given; a range is (low, high), one on a log scale (low, high, 'log'), choices "
        "are a list. A value that stays as it is goes into fixed"
    )


def reference(train: Function) -> tuple[str, bytes | None]:
    """How a study file names a function, and its pickle where that is the only way.

    Raises:
        UserError: it can neither be imported by others nor pickled.
    """
    module, name = getattr(train, "__module__", "__main__"), getattr(train, "__qualname__", "<lambda>")
    if module != "__main__" and _find(module, name) is train:
        return f"{module}:{name}", None
    import cloudpickle

    try:
        content: bytes = cloudpickle.dumps(train)
    except Exception as error:  # whatever an object that it refers to does
        raise UserError(
            f"train: {name} cannot be pickled ({type(error).__name__}: {error}): it refers to something that cannot be "
            "sent to another process. Make that within the function, or put the function into a module"
        ) from None
    return f"{PICKLE}{digest(content)}", content


def _find(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _check_keys(**given: Mapping[str, Any]) -> None:
    for argument, values in given.items():
        if taken := [key for key in ("name", "function") if key in values]:
            raise UserError(f"{argument}: {taken[0]}: is taken, the study file has the function there. Another key")
    if both := sorted(given["space"].keys() & given["fixed"].keys()):
        raise UserError(f"fixed: {', '.join(both)}: in space, too; a value to compare with goes into baseline")


def _direction(maximize: Any) -> Any:
    """`search.direction` of it."""
    given = [maximize] if isinstance(maximize, bool) else maximize
    if not isinstance(given, list | tuple) or not all(isinstance(one, bool) for one in given):
        raise UserError(f"maximize: {maximize!r} given, allowed are True, False, or a list of them for several metrics")
    words = ["max" if one else "min" for one in given]
    return words[0] if isinstance(maximize, bool) else words
