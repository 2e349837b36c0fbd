"""Which forms the sections of a study's trials can take, and on which searched keys that depends."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from study import data, methods, models
from study.knobs import Knob
from study.spec.same import among
from study.spec.schema import Domain
from study.spec.sections import Params, Section, Sections, named, section_knobs

Domains = Mapping[str, Domain]

CATALOGUES = {"data": data.CATALOGUE, "model": models.CATALOGUE, "method": methods.CATALOGUE}
"""What the `name` of a section can be."""


@dataclass(frozen=True)
class Form:
    """What a section can be.

    Attributes:
        params: the searched names that lead to it, its label among them.
        knobs: the keys that it has then.
    """

    section: str
    params: Params
    knobs: Mapping[str, Knob]

    @property
    def label(self) -> str | None:
        """The alternative that it is a form of; None: the file's own section."""
        return self.params.get(f"{self.section}.name")


@dataclass(frozen=True)
class Forms:
    """All forms that the sections can have, if `when` is ignored.

    Attributes:
        all: every form, the file's own first.
        deciders: for each key, the keys whose values decide whether a trial has it.
    """

    all: list[Form] = field(default_factory=list)
    deciders: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def knobs(self, key: str, domain: Domain | None = None) -> Iterator[Knob]:
        """The declarations of a key in the forms that have it; with a domain, only in forms that its `when` allows."""
        section, name = key.split(".")
        deciding = {decider for form in self.all if form.section == section for decider in form.params}
        when = {decider: values for decider, values in (domain.when if domain else {}).items() if decider in deciding}
        for form in self.all:
            allowed = all(
                decider in form.params and among(form.params[decider], values) for decider, values in when.items()
            )
            if form.section == section and name in form.knobs and allowed:
                yield form.knobs[name]

    @property
    def keys(self) -> list[str]:
        """Every key that a trial can have."""
        return list(dict.fromkeys(f"{form.section}.{name}" for form in self.all for name in form.knobs))


def forms(sections: Sections, domains: Domains) -> Forms:
    """What the sections can be with the values that the search may give to keys that take names."""
    possible = Forms()
    for section in sections.own:
        name = domains.get(f"{section}.name")
        for label in [None, *labels(sections, section, name)]:
            chosen = {} if label is None else {f"{section}.name": label}
            _explore(possible, section, sections.initial_values(section, chosen), chosen, domains)
        if name is not None:
            for key in domains:
                if key.startswith(f"{section}.") and key != f"{section}.name":
                    possible.deciders[key].add(f"{section}.name")
    return possible


def labels(sections: Sections, section: str, domain: Domain | None) -> list[str]:
    """The choices of a domain of `SECTION.name` that exist."""
    if domain is None or not domain.choices:
        return []  # without loading every method or network for its name
    existing = {*sections.alternatives.get(section, {}), *names(section)}
    return [choice for choice in domain.choices if isinstance(choice, str) and choice in existing]


def names(section: str) -> list[str]:
    """Every value of `SECTION.name` that is not a label; empty for `train`, which has no name."""
    return CATALOGUES[section].names() if section in CATALOGUES else []


def _explore(possible: Forms, section: str, initial: Section, first: dict[str, Any], domains: Domains) -> None:
    """Add the forms that other values of the keys that take names lead to, and which key decides on which."""
    waiting, seen = [first], {frozenset(first.items())}
    while waiting:
        params = waiting.pop(0)
        knobs = _knobs(section, initial, params)
        possible.all.append(Form(section, params, knobs))
        for name, knob in knobs.items():
            key = f"{section}.{name}"
            values = domains[key].choices or [] if key in domains else []
            for value in (choice for choice in values if choice in knob.names):
                other = {**params, key: value}
                changed = _knobs(section, initial, other).keys() ^ knobs.keys()
                for dependent in changed:
                    possible.deciders[f"{section}.{dependent}"].add(key)
                if changed and frozenset(other.items()) not in seen:
                    seen.add(frozenset(other.items()))
                    waiting.append(other)


def _knobs(section: str, initial: Section, params: Params) -> Mapping[str, Knob]:
    return section_knobs(section, {**initial, **named(section, params)})
