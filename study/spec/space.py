"""The search space of a study: which keys a trial is given, decided one after the other."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from study.spec.schema import Domain


@dataclass(frozen=True)
class Space:
    """What a study searches.

    Attributes:
        domains: by key, each after those that decide whether it is searched.
        integers: the keys whose ranges are of whole numbers.
        has: whether a trial whose parameters begin so has this key, as its method, network or data set has it.
    """

    domains: Mapping[str, Domain]
    integers: frozenset[str]
    has: Callable[[str, Mapping[str, Any]], bool]

    def applies(self, key: str, params: Mapping[str, Any]) -> bool:
        """Whether a trial is given this key, after those before it got these values."""
        return self.domains[key].applies(params) and self.has(key, params)

    def walk(self, suggest: Callable[[str, Domain], Any]) -> dict[str, Any]:
        """The parameters of a trial, `suggest` asked for the value of each key that applies."""
        params: dict[str, Any] = {}
        for key, domain in self.domains.items():
            if self.applies(key, params):
                params[key] = suggest(key, domain)
        return params

    def contains(self, params: Mapping[str, Any]) -> bool:
        """Whether the search could give exactly these parameters."""
        wanted = [key for key in self.domains if self.applies(key, params)]
        inside = (key in params and self.domains[key].contains(params[key]) for key in wanted)
        return len(wanted) == len(params) and all(inside)


def ordered(domains: Mapping[str, Domain], more: Mapping[str, Iterable[str]]) -> dict[str, Domain]:
    """The domains, each after those that its `when` names and after the keys that `more` has for it.

    Else in the order given.

    Raises:
        CycleError: conditions that wait for each other; its second argument is the circle of keys.
    """
    sorter = TopologicalSorter(
        {key: {*domain.when, *more.get(key, ())} & domains.keys() for key, domain in domains.items()}
    )
    sorter.prepare()
    found: dict[str, Domain] = {}
    ready = list(sorter.get_ready())
    while ready:
        key = min(ready, key=list(domains).index)
        ready.remove(key)
        found[key] = domains[key]
        sorter.done(key)
        ready += sorter.get_ready()
    return found


__all__ = ["CycleError", "Space", "ordered"]
