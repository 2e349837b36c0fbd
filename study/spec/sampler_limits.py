"""What each sampler can search, known when a study file is read."""

import math
from collections.abc import Iterator

from study.spec import grid
from study.spec.document import Key
from study.spec.same import distinct
from study.spec.schema import Search
from study.spec.space import Space

LEARNING = ("tpe", "gp")
"""Samplers that can begin with another study's trials."""

FORESEEABLE = ("random", "qmc", "tpe")
"""Samplers of which it was tried what more search gains, see `study.ranking.remaining_gain`."""

FINEST = 10_000_000
"""Most steps of a range: beyond it rounding blurs which values are on one."""

MOST_LISTED = 1_000_000
"""Most values of a range with steps, or of whole numbers, that `gp` can search: it has all of them in memory."""


def configurations(search: Search, space: Space, most: int = grid.MOST_CELLS) -> int | None:
    """How many different configurations a search can try: those of its space, and given ones that are not among them.

    None: its space has more than `most`.
    """
    grained = (
        (domain.high - domain.low, domain.step or 1)
        for domain in space.domains.values()
        if domain.low is not None and domain.high is not None
    )
    if any(width / step > most for width, step in grained):
        return None
    try:
        found = grid.count(space, most, every=True)
    except ValueError:  # a range without steps
        return None
    given = distinct([*([search.baseline] if search.baseline is not None else []), *search.enqueue])
    return found + sum(not space.contains(params) for params in given) if found <= most else None


def problems(search: Search, space: Space) -> list[tuple[Key, str]]:
    """What the sampler cannot search, with the key at fault."""
    faults: list[tuple[Key, str]] = []
    if search.sampler in ("cmaes", "gp"):
        message = f"is not in every trial, as {search.sampler} needs it. Allowed: tpe, nsga2, qmc, random"
        faults += [(("search", "space", key), message) for key in space.sometimes()]
    if search.sampler == "cmaes":
        if not isinstance(search.metric, str) and len(search.metric) > 1:
            faults.append((("search", "sampler"), "'cmaes' given for several metrics. Allowed: nsga2, nsga3, tpe"))
        for key, domain in space.domains.items():
            if len(domain.choices or ()) > 1:
                faults.append((("search", "space", key), "has choices, cmaes searches ranges only. Allowed: gp, tpe"))
    if search.from_ is not None and search.sampler not in LEARNING:
        message = f"{search.from_!r} given, but {search.sampler} learns nothing from it. Allowed: {', '.join(LEARNING)}"
        faults.append((("search", "from"), message))
    faults += _stop(search)
    faults += _ranges(search, space)
    if search.sampler == "grid":
        endless = _endless(space)
        faults += endless
        if not endless and grid.count(space) > grid.MOST_CELLS:
            faults.append((("search", "space"), f"has more than {grid.MOST_CELLS} cells, allowed is at most that many"))
    return faults


def _ranges(search: Search, space: Space) -> Iterator[tuple[Key, str]]:
    """The ranges that are too wide or too fine for numbers, or for the sampler."""
    for key, domain in space.domains.items():
        low, high, step = domain.low, domain.high, domain.step
        if low is None or high is None or low == high:
            continue
        at, whole = ("search", "space", key), key in space.integers
        if not math.isfinite(float(high) - float(low)):
            yield at, f"the range {low!r} to {high!r} is wider than the largest number. Allowed: one of at most 1.7e308"
            continue
        values = (high - low) / (step or 1) if whole or step else 0
        if step and not (whole and step == 1) and values > FINEST and search.sampler != "grid":
            message = f"{step!r} given, more than {FINEST} steps from {low!r} to {high!r}"
            yield (*at, "step"), f"{message}. Allowed: a larger one, or none"
        elif values >= MOST_LISTED and search.sampler == "gp":
            message = f"the range {low!r} to {high!r} has more than {MOST_LISTED} values, all of which gp lists"
            allowed = "a larger step, or sampler tpe" if not domain.log else "sampler tpe"
            yield at, f"{message}. Allowed: {allowed}"


def _stop(search: Search) -> list[tuple[Key, str]]:
    """Why it can never be said what more search would gain."""
    if search.stop is None:
        return []
    faults: list[tuple[Key, str]] = []
    if search.sampler not in FORESEEABLE:
        message = f"given with sampler {search.sampler}, of which nobody can say yet what more search would gain"
        faults.append((("search", "stop"), f"{message}. Allowed: {', '.join(FORESEEABLE)}"))
    if not isinstance(search.metric, str) and len(search.metric) > 1:
        faults.append((("search", "stop"), "given for several metrics, allowed is one: there is no single best value"))
    drawn = (search.trials or 0) - len(search.enqueue) - (search.baseline is not None)
    if search.trials is not None and search.stop.trials >= drawn:
        message = f"{search.stop.trials} given, allowed is less than {drawn}, the trials that the sampler draws"
        faults.append((("search", "stop", "trials"), message))
    return faults


def _endless(space: Space) -> list[tuple[Key, str]]:
    """The ranges that a grid cannot list."""
    faults: list[tuple[Key, str]] = []
    for key, domain in space.domains.items():
        try:
            grid.values(domain, key in space.integers)
        except ValueError as error:
            faults.append((("search", "space", key), str(error)))
    return faults
