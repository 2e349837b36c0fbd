"""The search space of a study: which keys a trial is given, decided one after the other."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import islice

from study.knobs import Params, Scalar
from study.spec.domain import MAX_GRID_CELLS, Domain, grid_values_of_domain, is_among_typed_values
from study.spec.trial_sections import SectionForms, TrialSections, find_section_forms


@dataclass(frozen=True)
class SearchSpace:
    """Search space of a study.

    Attributes:
        domains: by key, each after those that decide whether it is searched.
        deciding_keys: the keys, all with choices, that decide on the data set or on which other keys are searched.
        integer_keys: the keys whose ranges are of whole numbers.
        has_key_in_trial: whether a trial with these first parameters has a key: its method, network or data set
            decides.
    """

    domains: Mapping[str, Domain]
    deciding_keys: frozenset[str]
    integer_keys: frozenset[str]
    has_key_in_trial: Callable[[str, Params], bool]

    def applies_to(self, key: str, params: Params) -> bool:
        """Return whether a trial is given this key, after those before it got these values."""
        return self.domains[key].is_condition_met(params) and self.has_key_in_trial(key, params)

    def suggest_params(self, suggest: Callable[[str, Domain], Scalar]) -> dict[str, Scalar]:
        """Return the parameters of a trial; `suggest` is asked for the value of each key that applies."""
        params: dict[str, Scalar] = {}
        for key, domain in self.domains.items():
            if self.applies_to(key, params):
                params[key] = suggest(key, domain)
        return params

    def contains(self, params: Params) -> bool:
        """Return whether the search could give exactly these parameters."""
        applicable = [key for key in self.domains if self.applies_to(key, params)]
        inside = (key in params and self.domains[key].contains(params[key]) for key in applicable)
        return len(applicable) == len(params) and all(inside)

    def values_outside(self, params: Params) -> list[str]:
        """Return the values that the search cannot give, each as `KEY VALUE`, in the order of the space."""
        there = [key for key in self.domains if key in params and self.applies_to(key, params)]
        return [f"{key} {params[key]}" for key in there if not self.domains[key].contains(params[key])]

    def combinations_of_deciding_keys(self) -> Iterator[dict[str, Scalar]]:
        """Yield every combination of values that trials can have for the `deciding_keys`."""
        deciding = [(key, of.boundary_values()) for key, of in self.domains.items() if key in self.deciding_keys]
        return iterate_completed_params(deciding, self, {})

    def conditional_keys(self) -> list[str]:
        """Return the keys that only some trials are given."""
        cases = list(self.combinations_of_deciding_keys())
        return [key for key in self.domains if not all(self.applies_to(key, case) for case in cases)]

    def condition_of_key(self, key: str) -> dict[str, list[Scalar]]:
        """Return where a key is searched: for each of the `deciding_keys` that matters, the values that allow it."""
        cases = list(self.combinations_of_deciding_keys())
        with_it = [case for case in cases if self.applies_to(key, case)]
        narrowed = {}
        for other in (candidate for candidate in self.domains if candidate in self.deciding_keys and candidate != key):
            values, everyone = self._values_in_cases(other, with_it), self._values_in_cases(other, cases)
            if values and len(values) < len(everyone):
                narrowed[other] = values
        return narrowed

    def _values_in_cases(self, key: str, cases: Iterable[Params]) -> list[Scalar]:
        case_values = [case[key] for case in cases if key in case]
        return [value for value in self.domains[key].boundary_values() if is_among_typed_values(value, case_values)]


def make_search_space(
    domains: Mapping[str, Domain], sections: TrialSections, section_forms: SectionForms | None = None
) -> SearchSpace:
    """Make the space of these domains.

    Args:
        section_forms: `forms(sections, domains)`, if the caller has it.

    Raises:
        CycleError: conditions wait for each other; its second argument is the circle of keys.
    """
    section_forms = section_forms or find_section_forms(sections, domains)
    deciding = {decider for domain in domains.values() for decider in domain.when}
    deciding |= set().union(*section_forms.deciders_by_key.values())
    named = {key for key in domains if key.endswith(".name") or key.startswith("data.")}
    integers = {key for key in domains if any(int in knob.plain_types for knob in section_forms.knobs_of_key(key))}
    order = _sort_domains_by_dependency(domains, section_forms.deciders_by_key)
    return SearchSpace(order, frozenset(deciding & domains.keys() | named), frozenset(integers), sections.has_key)


def _sort_domains_by_dependency(
    domains: Mapping[str, Domain], deciders: Mapping[str, Iterable[str]]
) -> dict[str, Domain]:
    """Sort the domains: each after those that its `when` names and those that decide whether it is there.

    Otherwise they keep their order.
    """
    waits_for = {key: {*domain.when, *deciders.get(key, ())} & domains.keys() for key, domain in domains.items()}
    sorter = TopologicalSorter(waits_for)
    sorter.prepare()
    ordered: dict[str, Domain] = {}
    ready = list(sorter.get_ready())
    while ready:
        key = min(ready, key=list(domains).index)
        ready.remove(key)
        ordered[key] = domains[key]
        sorter.done(key)
        ready += sorter.get_ready()
    return ordered


def iterate_grid_cells(space: SearchSpace, every: bool = False) -> Iterator[dict[str, Scalar]]:
    """Yield the parameters of every cell, the first key's value changing slowest.

    A key that does not apply to a cell is not in it, so that no two cells are the same.

    Raises:
        ValueError: see `grid_values_of_domain`.
    """
    integers, domains = space.integer_keys, space.domains.items()
    by_key = [(key, grid_values_of_domain(domain, key in integers, every)) for key, domain in domains]
    return iterate_completed_params(by_key, space, {})


def count_grid_cells(space: SearchSpace, most: int = MAX_GRID_CELLS, every: bool = False) -> int:
    """Count the cells of a grid; one more than `most` where there are more.

    Raises:
        ValueError: see `grid_values_of_domain`.
    """
    return sum(1 for _ in islice(iterate_grid_cells(space, every), most + 1))


def iterate_completed_params(
    left: Sequence[tuple[str, list[Scalar]]], space: SearchSpace, params: Params
) -> Iterator[dict[str, Scalar]]:
    """Yield the parameters of every trial with these values; a key that does not apply to a trial is not in it."""
    if not left:
        yield dict(params)
        return
    (key, values), *rest = left
    for given in [{key: value} for value in values] if space.applies_to(key, params) else [{}]:
        yield from iterate_completed_params(rest, space, {**params, **given})
