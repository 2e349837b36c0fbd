"""The sections of a study with every default filled in, for all forms that its trials give them."""

from collections.abc import Iterable, Mapping
from typing import Any

from study.knobs import Knob
from study.spec.checks import Noted, Problems, check, one_of, section_model
from study.spec.document import Key
from study.spec.forms import CATALOGUES, Domains, Forms, labels
from study.spec.sections import Params, Section, Sections, named, section_knobs
from study.training.config import SECTIONS


def check_names(sections: Sections, domains: Domains, problems: Problems) -> None:
    """Check that all names exist and can be used: of each section but `train`, of alternatives, and those searched."""
    for section, catalogue in CATALOGUES.items():
        labelled = sections.alternatives.get(section, {}).items()
        everyone: dict[Key, Section] = {(section,): sections.own[section]}
        everyone |= {("search", "alternatives", section, label): values for label, values in labelled}
        for at, values in everyone.items():
            apart = catalogue.apart if at == (section,) and values.get("name") == catalogue.apart else None
            allowed = catalogue.names() if apart is None else [apart]
            model = section_model(section, (), name=(one_of(allowed), ...))
            name = {key: value for key, value in values.items() if key == "name"}
            if check(model, name, at, problems) and (why := catalogue.problem(name["name"])):
                problems.add((*at, "name"), why)
        for label in labels(sections, section, domains.get(f"{section}.name")):
            if label not in sections.alternatives.get(section, {}) and (why := catalogue.problem(label)):
                problems.add(("search", "space", f"{section}.name"), why)


def complete(sections: Sections, forms: Forms, trials: Iterable[Params], problems: Problems) -> Sections:
    """The checked sections, each with every key that it has in one of these trials.

    Args:
        forms: of the sections.
        trials: parameters of trials, at least those that decide which keys there are.
    """
    everyone = [{}, *trials]
    filled = _Filled(sections, forms, everyone, problems)
    for params in everyone:
        for section in SECTIONS:
            filled.add(section, params)
    return Sections(filled.own, filled.alternatives)


class _Filled:
    """Collects the forms of the sections, one after the other."""

    def __init__(self, sections: Sections, forms: Forms, trials: Iterable[Params], problems: Problems) -> None:
        self.own: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
        self.alternatives: dict[str, dict[str, dict[str, Any]]] = {}
        self._sections, self._problems = sections, problems
        self._seen: set[tuple[str, str | None, frozenset[tuple[str, str]]]] = set()
        self._known_keys: dict[tuple[str, str | None], set[str]] = {}
        for form in forms.all:
            self._known_keys.setdefault((form.section, form.label), {"name"}).update(form.knobs)
        for params in trials:
            for section in SECTIONS:
                label = params.get(f"{section}.name")
                self._known_keys.setdefault((section, label), {"name"}).update(sections.knobs(section, params))

    def add(self, section: str, params: Params) -> None:
        """Add the form that a section takes in the trial with these parameters.

        A form with a name that its key cannot take is left out: the checks of the search report it.
        """
        label, words = params.get(f"{section}.name"), named(section, params)
        initial = self._sections.initial_values(section, params)
        knobs = section_knobs(section, {**initial, **words})
        words = {key: value for key, value in words.items() if key in knobs and knobs[key].names}
        this = (section, label, frozenset(words.items()))
        if this in self._seen or any(value not in knobs[key].names for key, value in words.items()):
            return
        self._seen.add(this)
        labelled = label in self._sections.alternatives.get(section, {})
        at: Key = ("search", "alternatives", section, str(label)) if labelled else (section,)
        values = {key: value for key, value in initial.items() if key in knobs or key == "name"}
        if (
            labelled or label is None
        ):  # a plain name's section need not have all keys of the section that lends it values
            values |= {key: value for key, value in initial.items() if key not in self._known_keys[section, label]}
        which = {} if labelled or label is None else {f"{section}.name": label}
        which |= {f"{section}.{key}": value for key, value in words.items()}
        whole = _checked(section, knobs, values | words, at, Noted(self._problems, which))
        self._take(section, label, whole or {}, {key: initial.get(key, knobs[key].default) for key in words})

    def _take(self, section: str, label: str | None, whole: Section, words: Section) -> None:
        """Add the keys that are new; `words`: the values of searched names in trials without a search."""
        target = self.own[section]
        if label is not None:
            target = self.alternatives.setdefault(section, {}).setdefault(label, {})
        for key, value in {**whole, **words}.items():
            target.setdefault(key, value)


def _checked(
    section: str, knobs: Mapping[str, Knob], values: Section, at: Key, problems: Problems
) -> dict[str, Any] | None:
    """A section, or None if something is wrong. Keys that take names come first: the others may depend on them."""
    switches = [knob for knob in knobs.values() if knob.names]
    switch_values = {knob.key: values[knob.key] for knob in switches if knob.key in values}
    if check(section_model(section, switches), switch_values, at, problems) is None:
        return None
    fixed = {"name": (str, ...)} if section in CATALOGUES else {}
    return check(section_model(section, knobs.values(), **fixed), values, at, problems)
