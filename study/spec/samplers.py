"""What each sampler cannot search, told when a study file is read."""

from study.spec import grid
from study.spec.document import Key
from study.spec.study_spec import StudySpec


def problems(spec: StudySpec) -> list[tuple[Key, str]]:
    """What is wrong with the study's sampler, given what it is to search, with the key at fault."""
    search, found = spec.search, list[tuple[Key, str]]()
    if search.sampler == "cmaes" and len(spec.objective.metrics) > 1:
        found.append((("search", "sampler"), "'cmaes' given, which knows one metric. Of several, take nsga2 or tpe"))
    for key, domain in search.space.items():
        at: Key = ("search", "space", key)
        if search.sampler in ("cmaes", "gp") and domain.when:
            found.append((at, f"has a condition, which {search.sampler} cannot search. Take tpe, nsga2, qmc or random"))
        if search.sampler == "cmaes" and len(domain.choices or ()) > 1:
            found.append((at, "has choices, which cmaes cannot search, only ranges. Take gp or tpe"))
        if search.sampler == "grid":
            try:
                grid.values(domain, key in spec.space.integers)
            except ValueError as error:
                found.append((at, str(error)))
    if search.sampler == "grid" and not found and grid.count(spec.space) > grid.MOST_CELLS:
        found.append((("search", "space"), f"has more than {grid.MOST_CELLS} cells, which is too many for a grid"))
    return found
