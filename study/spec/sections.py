"""The sections that trials are made of: a study file's own, alternatives to them, and what they become in a trial."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, get_origin

from study import data, methods, models
from study.knobs import Knob, knobs
from study.spec.checks import one_of
from study.training import augment
from study.training.config import SECTIONS, TrainOptions

Section = Mapping[str, Any]
Params = Mapping[str, Any]


def section_knobs(section: str, values: Section) -> Mapping[str, Knob]:
    """The keys that a section with these values has, `name` left out; values of keys that it does not have are ignored.

    Which keys there are may depend on the values of others, and these on yet others: a value counts only once its key
    is known to be there.
    """
    if section == "method" and values["name"] == methods.OWN:
        return methods.method_knobs(values)
    declared, counted = _knobs(section, _start(values)), None
    while declared.keys() != counted:
        counted = declared.keys()
        deciding = {key: values[key] for key in counted if key in values and _may_decide(declared[key], values[key])}
        declared = _knobs(section, _start(values) | deciding)
    return declared


def _may_decide(knob: Knob, value: Any) -> bool:
    """Whether other keys may depend on this value: not on a list or mapping where a name is allowed."""
    return not isinstance(value, list | dict) or any(get_origin(kind) is tuple for kind in knob.kinds)


@dataclass(frozen=True)
class Sections:
    """What the sections of each trial of a study are.

    A trial's parameter `method.name` is the label of an alternative, or the plain name of a method, which then gets
    those values of the file's own section that it has keys for; `data.name` and `model.name` likewise. Then the trial's
    other parameters are set in the section, and its remaining keys get their defaults.

    Attributes:
        own: the file's sections.
        alternatives: by section and label.
    """

    own: Mapping[str, Section]
    alternatives: Mapping[Any, Mapping[str, Section]]
    _forms: dict[Hashable, tuple[Section, Mapping[str, Knob]]] = field(default_factory=dict, repr=False, compare=False)

    def trial(self, params: Params) -> dict[str, dict[str, Any]]:
        """The complete sections of the trial with these parameters."""
        sections = {section: dict(self.form(section, params)) for section in SECTIONS}
        for key, value in params.items():
            section, name = key.split(".")
            if name != "name":
                sections[section][name] = value
        return sections

    def has(self, key: str, params: Params) -> bool:
        """Whether a trial with these parameters, perhaps not yet all, has a key."""
        section, name = key.split(".")
        return name in self.form(section, params)

    def initial_values(self, section: str, params: Params) -> Section:
        """The values that a trial's section begins with; some may be of keys that it does not have."""
        label = params.get(f"{section}.name")
        if label is None:
            return self.own[section]
        labelled = self.alternatives.get(section, {})
        return labelled[label] if label in labelled else {**self.own[section], "name": label}

    def form(self, section: str, params: Params) -> Section:
        """The section of a trial with only those parameters set that other keys may depend on: those with names."""
        return self._form(section, params)[0]

    def knobs(self, section: str, params: Params) -> Mapping[str, Knob]:
        """What the keys of that section may be."""
        return self._form(section, params)[1]

    def _form(self, section: str, params: Params) -> tuple[Section, Mapping[str, Knob]]:
        words = named(section, params)
        this = (section, params.get(f"{section}.name"), frozenset(words.items()))
        if this not in self._forms:
            values = {**self.initial_values(section, params), **words}
            declared = section_knobs(section, values)
            applicable = {key: knob for key, knob in declared.items() if key in values or not knob.required}
            whole = {key: values.get(key, _plain(knob.default)) for key, knob in applicable.items()}
            self._forms[this] = (_start(values) | whole, declared)
        return self._forms[this]


def named(section: str, params: Params) -> dict[str, str]:
    """The parameters of a section with names, which its other keys may depend on; its own `name` is left out."""
    own = {key.removeprefix(f"{section}."): value for key, value in params.items() if key.startswith(f"{section}.")}
    return {key: value for key, value in own.items() if isinstance(value, str) and key != "name"}


def _knobs(section: str, values: Section) -> Mapping[str, Knob]:
    if section == "train":
        return train_knobs()
    if section == "data":
        return {knob.key: knob for knob in data.data_knobs(values["name"])}
    return models.model_knobs(values) if section == "model" else methods.method_knobs(values)


@cache
def train_knobs() -> Mapping[str, Knob]:
    """The keys of the `train` section."""
    augmentations = one_of(augment.names())
    declared = {knob.key: knob for knob in knobs(TrainOptions)}
    return declared | {"augmentation": replace(declared["augmentation"], type=augmentations)}


def _start(values: Section) -> dict[str, Any]:
    return {"name": values["name"]} if "name" in values else {}


def _plain(default: Any) -> Any:
    return list(default) if isinstance(default, tuple) else default
