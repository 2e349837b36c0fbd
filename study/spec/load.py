"""From a file, overrides and a profile to a StudySpec, or one message that says what is wrong."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from study import data, methods, models
from study.errors import UserError, nearest
from study.knobs import Knob, knobs
from study.objective import Constraint
from study.spec.checks import Problems, check, one_of, section_model
from study.spec.document import Document, Key, apply_profile, override, read
from study.spec.find import find
from study.spec.rungs import most_brackets
from study.spec.schema import Domain, Layout, Search
from study.spec.study_spec import StudySpec
from study.training import augment, checks, metrics
from study.training.config import SECTIONS, TrainOptions

TRAIN = list(knobs(TrainOptions))
MOST_TRIALS = 100
"""Of a search that names no number."""

NAME_RULE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def load_study(
    spec: str, assignments: Iterable[str] = (), profile: str | None = None, name: str | None = None
) -> StudySpec:
    """The study of a shipped name or a file's path, with overrides applied and everything checked.

    Raises:
        UserError: says everything that is wrong, each with file, line, key, what was given and what is allowed.
    """
    document = read(find(spec))
    apply_profile(document, profile)
    override(document, assignments)
    if name is not None:
        document.set("name", name, "--name")
    return resolve(document)


def load_resolved(path: Path) -> StudySpec:
    """The study of a resolved file, as the study's own folder and `study export` have it."""
    document = read(path)
    apply_profile(document, None)
    return resolve(document)


def check_name(name: str) -> None:
    """Refuse a study name that could not be a folder's.

    Raises:
        UserError: says the rule.
    """
    if not NAME_RULE.fullmatch(name):
        raise UserError(
            f"{name!r} cannot be a study's name: letters, digits, '.', '_' and '-' are allowed, at most 100, "
            "the first a letter or digit"
        )


def resolve(document: Document) -> StudySpec:
    """Check a whole document and fill in every default."""
    problems = Problems(document)
    layout = check(Layout, document.values, (), problems)
    problems.raise_any()
    assert layout is not None
    if not NAME_RULE.fullmatch(layout["name"]):
        problems.add(("name",), f"{layout['name']!r} given. A name has letters, digits, '.', '_', '-', at most 100")
    base = {section: _check_section(section, layout[section], (section,), problems) for section in SECTIONS}
    problems.raise_any()
    search = Search.model_validate(layout["search"])
    spec = StudySpec(
        layout["name"],
        {section: values or {} for section, values in base.items()},
        search if search.trials is not None else search.model_copy(update={"trials": MOST_TRIALS}),
        Layout.model_validate(document.values).resources,
        None if layout["final_seeds"] is None else tuple(layout["final_seeds"]),
        layout["origin"],
    )
    _check_metrics(spec, problems)
    problems.raise_any()
    _check_search(spec, problems)
    for at, why in checks.problems(spec.base, spec.facts):
        problems.add(at, why)
    problems.raise_any()
    return spec


def _check_section(section: str, values: Mapping[str, Any], at: Key, problems: Problems) -> dict[str, Any] | None:
    """One of the four trial sections against the catalogue entry that it names."""
    if section == "train":
        keys = [replace(one, type=one_of(augment.names())) if one.key == "augmentation" else one for one in TRAIN]
        return check(section_model("train", keys), values, at, problems)
    names = {"data": data.names, "model": models.names, "method": methods.names}[section]()
    named = section_model(section, (), name=(one_of(names), ...))
    if check(named, {key: values[key] for key in ("name",) if key in values}, at, problems) is None:
        return None
    if section == "method":
        return _check_method(values, at, problems)
    keys = data.data_knobs(values["name"]) if section == "data" else list(models.model_knobs(values).values())
    return _check_keys(section, keys, values, at, problems)


def _check_keys(
    section: str, keys: Iterable[Knob], values: Mapping[str, Any], at: Key, problems: Problems
) -> dict[str, Any] | None:
    """A section whose other keys may depend on the values of those that name one of a few."""
    switches = [knob for knob in keys if get_origin(knob.type) is Literal]
    given = {knob.key: values[knob.key] for knob in switches if knob.key in values}
    if check(section_model(section, switches), given, at, problems) is None:
        return None
    return check(section_model(section, keys, name=(str, ...)), values, at, problems)


def _check_method(values: Mapping[str, Any], at: Key, problems: Problems) -> dict[str, Any] | None:
    complete = _check_keys("method", methods.method_knobs(values).values(), values, at, problems)
    if complete and "epsilon" in complete and complete["epsilon"] > 2.0 / complete["temperature"]:
        limit = 2.0 / complete["temperature"]
        problems.add(
            (*at, "epsilon"),
            f"{complete['epsilon']!r} given, allowed is at most 2/temperature = {limit:g} (FairKL paper A.2)",
        )
    return complete


def _check_search(spec: StudySpec, problems: Problems) -> None:
    """Every key that the search sets exists, and every value that it may take is valid there."""
    for key, domain in spec.search.space.items():
        at: Key = ("search", "space", key)
        if _check_key(spec, key, at, problems):
            valid = [_check_values(spec, {key: value}, at, problems) for value in domain.ends()]
            if all(valid):
                _check_values(spec, {key: _between(spec, key, domain)}, at, problems)
            section, name = key.split(".")
            if type(spec.base[section][name]) is int and isinstance(domain.step, float):
                problems.add((*at, "step"), f"{domain.step!r} given, allowed is a whole number, as {key} is one")
    points = [(("search", "enqueue", str(index)), point) for index, point in enumerate(spec.search.enqueue)]
    for at, point in [(("search", "baseline"), spec.search.baseline or {}), *points]:
        known = [_check_key(spec, key, (*at, key), problems) for key in point]
        if all(known):
            _check_values(spec, point, at, problems)
    _check_epsilon_space(spec, problems)
    given = len(spec.search.enqueue) + (spec.search.baseline is not None)
    if given > spec.trials:
        message = f"{spec.trials} given, allowed is at least {given}: the baseline and what is enqueued"
        problems.add(("search", "trials"), message)
    if not spec.search.space and spec.trials > max(given, 1):
        problems.add(("search", "trials"), f"{spec.trials} given, allowed is {max(given, 1)}: search.space is empty")
    stopping = spec.search.early_stopping
    if stopping.name != "none" and stopping.grace > spec.epochs:
        at = ("search", "early_stopping", "grace")
        problems.add(at, f"{stopping.grace} given, allowed is at most train.epochs = {spec.epochs}")
    elif stopping.brackets > (fit := most_brackets(stopping, spec.epochs)):
        message = f"{stopping.brackets} given, allowed is at most {fit}: the next would begin after train.epochs"
        problems.add(("search", "early_stopping", "brackets"), message)


def _between(spec: StudySpec, key: str, domain: Domain) -> Any:
    """A value between the ends of a range, which must be valid, too; of choices, any."""
    if domain.choices is not None or domain.low is None or domain.high is None:
        return domain.ends()[0]
    section, name = key.split(".")
    if type(spec.base[section][name]) is int:
        return (int(domain.low) + int(domain.high)) // 2
    return domain.low + 0.382 * (domain.high - domain.low) if domain.low < domain.high else domain.low


def _check_epsilon_space(spec: StudySpec, problems: Problems) -> None:
    """Where epsilon and the temperature are both searched, their largest values together must be valid, too."""
    keys = ("method.epsilon", "method.temperature")
    domains = [spec.search.space.get(key) for key in keys]
    ends = [[end for end in domain.ends() if isinstance(end, int | float)] for domain in domains if domain]
    if len(ends) == len(keys) and all(ends):
        largest = {key: max(values) for key, values in zip(keys, ends, strict=True)}
        _check_values(spec, largest, ("search", "space", keys[0]), problems)


def _check_key(spec: StudySpec, key: str, at: Key, problems: Problems) -> bool:
    valid = [f"{section}.{name}" for section in SECTIONS for name in spec.base[section]]
    if key not in valid:
        near = [one for one in valid if one.split(".")[0] == key.split(".")[0]]
        problems.add(at, f"unknown key. {nearest(key, valid)}Allowed: {', '.join(near or valid)}")
        return False
    if key in ("train.epochs", "train.seed") or key.startswith("data."):
        problems.add(at, "cannot be searched: every trial of a study has the same data, epochs and seed")
        return False
    if at[1] == "space" and key in ("method.name", "model.name"):
        problems.add(at, "cannot be searched: write one study for each")
        return False
    if _is_switch(spec, key):
        problems.add(at, "cannot differ between trials: other keys depend on it. Write one study for each")
        return False
    return True


def _is_switch(spec: StudySpec, key: str) -> bool:
    """Whether which keys there are depends on the value of this one."""
    section, name = key.split(".")
    if section not in ("method", "model") or name == "name":
        return False
    keys_of = methods.method_knobs if section == "method" else models.model_knobs
    there = keys_of(spec.base[section])
    if get_origin(there[name].type) is not Literal:
        return False
    others = (keys_of({**spec.base[section], name: value}) for value in get_args(there[name].type))
    return any(other.keys() != there.keys() for other in others)


def _check_values(spec: StudySpec, values: Mapping[str, Any], at: Key, problems: Problems) -> bool:
    """Values of keys that exist, in the sections that they would give; whether they are valid there."""
    trial = spec.trial_document(values)
    for section in sorted({key.split(".")[0] for key in values}):
        probe = _Redirected(problems, section, at)
        if _check_section(section, trial[section], (section,), probe) is None:
            return False
    known = {why for _, why in checks.problems(spec.base, spec.facts)}
    given = ", ".join(f"{name} {value!r}" for name, value in values.items())
    found = [why for _, why in checks.problems(trial, spec.facts) if why not in known]
    for why in found:
        problems.add(at, f"with {given}: {why}")
    return not found


class _Redirected(Problems):
    """Problems of a section that the search made, told at the place in `search` that made it."""

    def __init__(self, problems: Problems, section: str, at: Key) -> None:
        self._problems, self._section, self._at = problems, section, at

    def add(self, key: Key, message: str) -> None:
        dotted = ".".join(key)
        at = self._at if dotted in self._at else (*self._at, dotted)
        self._problems.add(at, message)


def _check_metrics(spec: StudySpec, problems: Problems) -> None:
    """Every metric that is searched for or limited exists for these data, and looks at the validation split."""
    search, found = spec.search, metrics.available(spec.facts.on("val"))
    valid = [f"val/{name}" for name in found]
    given = [search.metric] if isinstance(search.metric, str) else search.metric
    named: list[tuple[Key, str]] = [(("search", "metric"), name) for name in given]
    if len(set(given)) < len(given):
        problems.add(("search", "metric"), f"{given} given: one is repeated")
    for index, text in enumerate(search.constraints):
        place: Key = ("search", "constraints", str(index))
        try:
            named.append((place, Constraint.parse(text).metric))
        except ValueError as error:
            problems.add(place, str(error))
    for at, name in named:
        if name not in valid:
            note = "test splits choose nothing. " if name.startswith("test/") else ""
            problems.add(at, f"{name!r} given. {note}{nearest(name, valid)}Allowed: {', '.join(valid)}")
