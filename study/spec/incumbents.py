"""Configurations that a search has to beat: where a study file marks them, and what the margin for them needs."""

from typing import Any

from study.spec.document import Key
from study.spec.schema import Search, same
from study.spec.search_checks import points
from study.spec.section_checks import Problems

MARK = "incumbent"
"""Key in a given configuration: whether another one has to beat it by `search.margin`."""


def with_incumbents(values: dict[str, Any], problems: Problems) -> dict[str, Any]:
    """Return a document without these marks; the marked configurations stand in `search.incumbents` as well."""
    search = values.get("search")
    if not isinstance(search, dict):
        return values
    enqueued = search["enqueue"] if isinstance(search.get("enqueue"), list) else []
    given: dict[Key, Any] = {("search", "baseline"): search.get("baseline")}
    given |= {("search", "enqueue", str(place)): params for place, params in enumerate(enqueued)}
    marked = {at: params for at, params in given.items() if isinstance(params, dict) and MARK in params}
    for at, params in marked.items():
        if not isinstance(params[MARK], bool):
            problems.add((*at, MARK), f"{params[MARK]!r} given, allowed is true or false")
    problems.raise_any()
    bare = {at: {key: value for key, value in params.items() if key != MARK} for at, params in marked.items()}
    if not marked:
        return values
    own: dict[str, Any] = {"incumbents": [*(search.get("incumbents") or [])]}
    own |= {"enqueue": [*enqueued]} if enqueued else {}
    for at, params in bare.items():
        if at[1] == "baseline":
            own["baseline"] = params
        else:
            own["enqueue"][int(at[2])] = params
        own["incumbents"] += [dict(params)] if marked[at][MARK] else []
    return {**values, "search": {**search, **own}}


def check_incumbents(search: Search, problems: Problems) -> None:
    """Check that there is a margin where there are incumbents, and something to beat where there is a margin."""
    given = list(points(search).values())
    for place, params in enumerate(search.incumbents):
        if not any(same(params, other) for other in given):
            why = "is none of the configurations of search.baseline and search.enqueue"
            problems.add(("search", "incumbents", str(place)), why)
    if search.incumbents and not search.margin:
        problems.add(("search", "margin"), "is 0, but there is an incumbent. Give it a number above 0, as 0.5")
    elif search.margin and not search.enqueue and search.baseline is None:
        message = f"{search.margin:g} given, but nothing is to be beaten. Give search.baseline or search.enqueue"
        problems.add(("search", "margin"), message)
