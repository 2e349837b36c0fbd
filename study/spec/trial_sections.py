"""Sections that trials are made of: a study file's own, alternatives to them, and what they become in a trial."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import get_origin

from study import data, methods, models
from study.knobs import Knob, Params, Section, Value, read_knobs
from study.spec.domain import Domain, is_among_typed_values
from study.spec.key_errors import ProblemCollector, TrialProblemCollector, validate_section
from study.spec.section_models import default_as_in_file, literal_type_of_names, make_section_model
from study.spec.yaml_document import KeyPath
from study.training import augment
from study.training.config import TRIAL_SECTIONS, TrainOptions


def section_knobs(section: str, values: Section) -> Mapping[str, Knob]:
    """Return the keys that a section with these values has, `name` left out; values of other keys are ignored.

    Which keys there are may depend on the values of others, and these on yet others: a value counts only once its key
    is known to be there.
    """
    if section == "method" and values["name"] == methods.OWN_FUNCTION_NAME:
        return methods.method_knobs(values)
    declared, counted = _declared_knobs(section, _section_with_name_only(values)), None
    while declared.keys() != counted:
        counted = declared.keys()
        given = {key: values[key] for key in counted if key in values}
        deciding = {key: value for key, value in given.items() if _can_decide_on_keys(declared[key], value)}
        declared = _declared_knobs(section, _section_with_name_only(values) | deciding)
    return declared


def _can_decide_on_keys(knob: Knob, value: Value) -> bool:
    """Return whether other keys may depend on this value: not on a list or mapping where a name is allowed."""
    return not isinstance(value, list | dict) or any(get_origin(kind) is tuple for kind in knob.plain_types)


@dataclass(frozen=True)
class TrialSections:
    """Sections of each trial of a study.

    A trial's parameter `method.name` is the label of an alternative, or the plain name of a method, which then gets
    those values of the file's own section that it has keys for; `data.name` and `model.name` likewise. Then the trial's
    other parameters are set in the section, and its remaining keys get their defaults.

    Attributes:
        own_sections: the file's sections.
        alternatives: by section and label.
    """

    own_sections: Mapping[str, Section]
    alternatives: Mapping[str, Mapping[str, Section]]
    _forms: dict[Hashable, tuple[Section, Mapping[str, Knob]]] = field(default_factory=dict, repr=False, compare=False)

    def complete_sections_of_trial(self, params: Params) -> dict[str, dict[str, Value]]:
        """Return the complete sections of the trial with these parameters."""
        sections = {section: dict(self.section_with_names_alone(section, params)) for section in TRIAL_SECTIONS}
        for key, value in params.items():
            section, name = key.split(".")
            if name != "name":
                sections[section][name] = value
        return sections

    def has_key(self, key: str, params: Params) -> bool:
        """Return whether a trial with these parameters, perhaps not yet all, has a key."""
        section, name = key.split(".")
        return name in self.section_with_names_alone(section, params)

    def initial_values(self, section: str, params: Params) -> Section:
        """Return the values that a trial's section begins with; some may be of keys that it does not have."""
        label = section_name_in_params(section, params)
        if label is None:
            return self.own_sections[section]
        labelled = self.alternatives.get(section, {})
        return labelled[label] if label in labelled else {**self.own_sections[section], "name": label}

    def section_with_names_alone(self, section: str, params: Params) -> Section:
        """Return the section of a trial with only the parameters set that are names: other keys may depend on them."""
        return self._completed_section_and_knobs(section, params)[0]

    def knobs_of_form(self, section: str, params: Params) -> Mapping[str, Knob]:
        """Return the knobs of the section that `section_with_names_alone` returns, by key."""
        return self._completed_section_and_knobs(section, params)[1]

    def _completed_section_and_knobs(self, section: str, params: Params) -> tuple[Section, Mapping[str, Knob]]:
        words = params_that_are_names(section, params)
        this = (section, params.get(f"{section}.name"), frozenset(words.items()))
        if this not in self._forms:
            values = {**self.initial_values(section, params), **words}
            declared = section_knobs(section, values)
            applicable = {key: knob for key, knob in declared.items() if key in values or not knob.required}
            whole = {key: values.get(key, default_as_in_file(knob.default)) for key, knob in applicable.items()}
            self._forms[this] = (_section_with_name_only(values) | whole, declared)
        return self._forms[this]


def section_name_in_params(section: str, params: Params) -> str | None:
    """Return the name that parameters give a section, or the label of an alternative; None: they give none."""
    name = params.get(f"{section}.name")
    return None if name is None else str(name)


def params_that_are_names(section: str, params: Params) -> dict[str, str]:
    """Return the parameters of a section that are names, on which its other keys may depend, without its `name`."""
    own = {key.removeprefix(f"{section}."): value for key, value in params.items() if key.startswith(f"{section}.")}
    return {key: value for key, value in own.items() if isinstance(value, str) and key != "name"}


def _declared_knobs(section: str, values: Section) -> Mapping[str, Knob]:
    if section == "train":
        return train_knobs()
    if section == "data":
        return {knob.key: knob for knob in data.data_knobs(str(values["name"]))}
    if section == "model":
        return models.model_knobs(values)
    hashable = ((key, tuple(value) if isinstance(value, list) else value) for key, value in values.items())
    return _method_knobs(str(values["name"]), frozenset(hashable))


@cache
def _method_knobs(name: str, values: frozenset[tuple[str, Value]]) -> Mapping[str, Knob]:
    """Return the knobs of a method: the same are asked for again and again."""
    return {knob.key: knob for knob in methods.CATALOGUE.find_module(name).knobs(dict(values))}


@cache
def train_knobs() -> Mapping[str, Knob]:
    """Return the knobs of the `train` section, by key."""
    augmentations = literal_type_of_names(augment.AUGMENTATION_CHECKS)
    declared = {knob.key: knob for knob in read_knobs(TrainOptions)}
    return declared | {"augmentation": replace(declared["augmentation"], type=augmentations)}


def _section_with_name_only(values: Section) -> dict[str, Value]:
    return {"name": values["name"]} if "name" in values else {}


DomainsByKey = Mapping[str, Domain]

SECTION_CATALOGUES = {"data": data.CATALOGUE, "model": models.CATALOGUE, "method": methods.CATALOGUE}
"""Catalogues of the names that a section can have."""


@dataclass(frozen=True)
class SectionForm:
    """Form that a section can have.

    Attributes:
        params: the searched names that lead to it, its label among them.
        knobs: the keys that it has then.
    """

    section: str
    params: Params
    knobs: Mapping[str, Knob]

    @property
    def label(self) -> str | None:
        """Label of the alternative that it is a form of; None: the file's own section."""
        return section_name_in_params(self.section, self.params)


@dataclass(frozen=True)
class SectionForms:
    """Forms that the sections can have, if `when` is ignored.

    Attributes:
        all_forms: every form, the file's own first.
        deciders_by_key: for each key, the keys whose values decide whether a trial has it.
    """

    all_forms: list[SectionForm] = field(default_factory=list)
    deciders_by_key: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def knobs_of_key(self, key: str, domain: Domain | None = None) -> Iterator[Knob]:
        """Yield the knobs of a key in the forms that have it; with a domain, only in forms that its `when` allows."""
        section, name = key.split(".")
        deciding = {decider for form in self.all_forms if form.section == section for decider in form.params}
        when = {decider: values for decider, values in (domain.when if domain else {}).items() if decider in deciding}
        for form in self.all_forms:
            allowed = all(
                decider in form.params and is_among_typed_values(form.params[decider], values)
                for decider, values in when.items()
            )
            if form.section == section and name in form.knobs and allowed:
                yield form.knobs[name]

    @property
    def all_keys(self) -> list[str]:
        """Every key that a trial can have."""
        return list(dict.fromkeys(f"{form.section}.{name}" for form in self.all_forms for name in form.knobs))


def find_section_forms(sections: TrialSections, domains: DomainsByKey) -> SectionForms:
    """Find the forms of all sections with the values that the search may give to keys that take names."""
    possible = SectionForms()
    for section in sections.own_sections:
        name = domains.get(f"{section}.name")
        for label in [None, *existing_name_choices(sections, section, name)]:
            chosen = {} if label is None else {f"{section}.name": label}
            _add_reachable_forms(possible, section, sections.initial_values(section, chosen), chosen, domains)
        if name is not None:
            for key in domains:
                if key.startswith(f"{section}.") and key != f"{section}.name":
                    possible.deciders_by_key[key].add(f"{section}.name")
    return possible


def existing_name_choices(sections: TrialSections, section: str, domain: Domain | None) -> list[str]:
    """Return the choices of a domain of `SECTION.name` that exist."""
    if domain is None or not domain.choices:
        return []  # without loading every method or network for its name
    existing = {*sections.alternatives.get(section, {}), *valid_section_names(section)}
    return [choice for choice in domain.choices if isinstance(choice, str) and choice in existing]


def valid_section_names(section: str) -> list[str]:
    """Return every value of `SECTION.name` that is not a label; empty for `train`, which has no name."""
    return SECTION_CATALOGUES[section].listed_names() if section in SECTION_CATALOGUES else []


def _add_reachable_forms(
    possible: SectionForms, section: str, initial: Section, first: Params, domains: DomainsByKey
) -> None:
    """Add the forms that other values of the keys that take names lead to, and which key decides on which."""
    waiting, seen = [first], {frozenset(first.items())}
    while waiting:
        params = waiting.pop(0)
        knobs = _knobs_in_form(section, initial, params)
        possible.all_forms.append(SectionForm(section, params, knobs))
        for name, knob in knobs.items():
            key = f"{section}.{name}"
            values = domains[key].choices or [] if key in domains else []
            for value in (choice for choice in values if choice in knob.choices):
                other = {**params, key: value}
                changed = _knobs_in_form(section, initial, other).keys() ^ knobs.keys()
                for dependent in changed:
                    possible.deciders_by_key[f"{section}.{dependent}"].add(key)
                if changed and frozenset(other.items()) not in seen:
                    seen.add(frozenset(other.items()))
                    waiting.append(other)


def _knobs_in_form(section: str, initial: Section, params: Params) -> Mapping[str, Knob]:
    return section_knobs(section, {**initial, **params_that_are_names(section, params)})


def check_section_names(sections: TrialSections, domains: DomainsByKey, problems: ProblemCollector) -> None:
    """Check that all names exist and can be used: of each section but `train`, of alternatives, and those searched."""
    for section, catalogue in SECTION_CATALOGUES.items():
        labelled = sections.alternatives.get(section, {}).items()
        everyone: dict[KeyPath, Section] = {(section,): sections.own_sections[section]}
        everyone |= {("search", "alternatives", section, label): values for label, values in labelled}
        for at, values in everyone.items():
            given = values.get("name")
            is_unlisted = at == (section,) and isinstance(given, str) and given in catalogue.unlisted_names
            allowed = [str(values["name"])] if is_unlisted else catalogue.listed_names()
            model = make_section_model(section, (), name=(literal_type_of_names(allowed), ...))
            name = {key: value for key, value in values.items() if key == "name"}
            if validate_section(model, name, at, problems) and (why := catalogue.why_unusable(str(name["name"]))):
                problems.add_problem((*at, "name"), why)
        for label in existing_name_choices(sections, section, domains.get(f"{section}.name")):
            if label not in sections.alternatives.get(section, {}) and (why := catalogue.why_unusable(label)):
                problems.add_problem(("search", "space", f"{section}.name"), why)


def fill_in_sections(
    sections: TrialSections, forms: SectionForms, trials: Iterable[Params], problems: ProblemCollector
) -> TrialSections:
    """Return the checked sections with all defaults, each with every key that it has in one of these trials.

    A form with a name that its key cannot take is left out: the checks of the search report it.

    Args:
        forms: of the sections.
        trials: parameters of trials, at least those that decide which keys there are.
    """
    everyone = [(section, params) for params in ({}, *trials) for section in TRIAL_SECTIONS]
    known_keys: dict[tuple[str, str | None], set[str]] = {}
    for form in forms.all_forms:
        known_keys.setdefault((form.section, form.label), {"name"}).update(form.knobs)
    for section, params in everyone:
        label = section_name_in_params(section, params)
        known_keys.setdefault((section, label), {"name"}).update(sections.knobs_of_form(section, params))
    own: dict[str, dict[str, Value]] = {section: {} for section in TRIAL_SECTIONS}
    alternatives: dict[str, dict[str, dict[str, Value]]] = {}
    seen: set[tuple[str, str | None, frozenset[tuple[str, str]]]] = set()
    for section, params in everyone:
        label, words = section_name_in_params(section, params), params_that_are_names(section, params)
        initial = sections.initial_values(section, params)
        knobs = section_knobs(section, {**initial, **words})
        words = {key: value for key, value in words.items() if key in knobs and knobs[key].choices}
        this = (section, label, frozenset(words.items()))
        if this in seen or any(value not in knobs[key].choices for key, value in words.items()):
            continue
        seen.add(this)
        labelled = label in sections.alternatives.get(section, {})
        at: KeyPath = ("search", "alternatives", section, str(label)) if labelled else (section,)
        values = {key: value for key, value in initial.items() if key in knobs or key == "name"}
        if labelled or label is None:  # the section of a plain name may lack keys of the section that lends it values
            values |= {key: value for key, value in initial.items() if key not in known_keys[section, label]}
        which = {} if labelled or label is None else {f"{section}.name": label}
        which |= {f"{section}.{key}": value for key, value in words.items()}
        noted = TrialProblemCollector(problems, which)
        whole = _validate_section_of_form(section, knobs, values | words, at, noted) or {}
        without_search = {key: initial.get(key, knobs[key].default) for key in words}  # values of the searched names
        target = own[section] if label is None else alternatives.setdefault(section, {}).setdefault(label, {})
        for key, value in {**whole, **without_search}.items():
            target.setdefault(key, value)
    return TrialSections(own, alternatives)


def _validate_section_of_form(
    section: str, knobs: Mapping[str, Knob], values: Section, at: KeyPath, problems: ProblemCollector
) -> dict[str, Value] | None:
    """Return a section with defaults, or None if something is wrong.

    Keys that take names come first, as the others may depend on them. Where such a name is wrong, the others may be any
    that a right one has.
    """
    switches = [knob for knob in knobs.values() if knob.choices]
    switch_values = {knob.key: values[knob.key] for knob in switches if knob.key in values}
    fixed = {"name": (str, ...)} if section in SECTION_CATALOGUES else {}
    if validate_section(make_section_model(section, switches), switch_values, at, problems) is None:
        every: dict[str, Knob] = {}
        for knob in switches:
            for name in knob.choices:
                every |= section_knobs(section, {**values, knob.key: name})
        others = {key: value for key, value in values.items() if key not in switch_values}
        validate_section(make_section_model(section, every.values(), **fixed), others, at, problems)
        return None
    return validate_section(make_section_model(section, knobs.values(), **fixed), values, at, problems)
