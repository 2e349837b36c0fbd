"""Configurations that a search has to beat: where a study file marks them, and what the margin for them needs."""

from study.knobs import Value
from study.spec.document import Key
from study.spec.schema import Search, same
from study.spec.search_checks import points
from study.spec.section_checks import Problems

MARK = "incumbent"
"""Key in a given configuration: whether another one has to beat it by `search.margin`."""


LISTS = ("enqueue", "incumbents")
"""Keys of `search` that hold lists of configurations."""


def with_incumbents(values: dict[str, Value], problems: Problems) -> dict[str, Value]:
    """Return a document without these marks; the marked configurations stand in `search.incumbents` as well."""
    search = values.get("search")
    if not isinstance(search, dict):
        return values
    enqueued, incumbents = ([*listed] if isinstance(listed := search.get(key), list) else [] for key in LISTS)
    given: dict[Key, Value] = {("search", "baseline"): search.get("baseline")}
    given |= {("search", "enqueue", str(place)): params for place, params in enumerate(enqueued)}
    marked = {at: params for at, params in given.items() if isinstance(params, dict) and MARK in params}
    for at, params in marked.items():
        if not isinstance(params[MARK], bool):
            problems.add((*at, MARK), f"{params[MARK]!r} given, allowed is true or false")
    problems.raise_any()
    bare = {at: {key: value for key, value in params.items() if key != MARK} for at, params in marked.items()}
    if not marked:
        return values
    own = dict(search)
    for at, params in bare.items():
        incumbents += [params] if marked[at][MARK] else []
        if at[1] == "baseline":
            own["baseline"] = params
        else:
            enqueued[int(at[2])] = params
    return {**values, "search": {**own, **({"enqueue": enqueued} if enqueued else {}), "incumbents": incumbents}}


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
