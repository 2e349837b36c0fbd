"""The steps from one configuration to another: in which knobs they differ, and which of these move together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from study.errors import UserError, nearest
from study.spec import StudySpec
from study.spec.checks import fault
from study.spec.same import among
from study.spec.trial_checks import faults

Params = Mapping[str, Any]
Step = tuple[str, ...]
Steps = Sequence[Step]
Moved = frozenset[int]
"""A configuration of an ablation: the places of the steps that have the best's values, the others the baseline's."""


@dataclass(frozen=True)
class Merge:
    """Knobs that move in one step, and why."""

    keys: Step
    reason: str


def value(spec: StudySpec, params: Params, key: str) -> Any:
    """What a configuration has for a key, its own or the study file's; None for a key that it has not."""
    if key in params:
        return params[key]
    section, _, name = key.partition(".")
    if name != "name":
        return spec.sections.form(section, params).get(name)
    own = spec.base[section].get("name")  # that of an alternative too, perhaps of other values
    return own if spec.sections.form(section, {key: own}) == spec.sections.form(section, {}) else None


def differing(spec: StudySpec, start: Params, end: Params) -> list[str]:
    """The knobs in which two configurations differ, in the order of the study file."""
    keys = dict.fromkeys([*spec.search.space, *start, *end])
    ends = {key: (value(spec, start, key), value(spec, end, key)) for key in keys if key in start or key in end}
    return [key for key, (one, other) in ends.items() if not among(one, [other])]


def mixed(spec: StudySpec, start: Params, end: Params, steps: Steps) -> dict[str, Any]:
    """The start's parameters with the end's values for the keys of these steps; a key that the side it is from does not
    have is left out."""
    moved = {key for step in steps for key in step}
    keys = dict.fromkeys([*spec.search.space, *start, *end])
    values = {key: value(spec, end if key in moved else start, key) for key in keys if key in start or key in end}
    return {key: each for key, each in values.items() if each is not None}


def refusal(spec: StudySpec, params: Params) -> str | None:
    """Why the study could not train this configuration; None: it can."""
    for key, given in params.items():
        section, _, name = key.partition(".")
        knob = spec.sections.knobs(section, params).get(name)
        if name != "name" and (knob is None or not spec.sections.has(key, params)):
            return f"there is no {key}"
        if knob is not None and name != "name" and (why := fault(knob, given)):
            return f"{key}: {why}"
    document = spec.trial_document(params)
    if document["data"] not in spec.data_sections:
        return "the study has not loaded its data"
    for (section, name), why in faults(document, spec.describe(document["data"])):
        return f"{section}.{name}: {why}"
    return None


def plan(
    spec: StudySpec, start: Params, end: Params, order: Sequence[str], alone: Sequence[str] = ()
) -> tuple[list[Step], list[Merge]]:
    """The steps between two configurations, so that every configuration that an ablation needs can be trained.

    A knob that one of the two does not have, or has only where another knob has a certain value, moves together with
    the knob that decides on it. Where the study refuses a configuration all the same, the two steps are joined after
    which the fewest are refused.

    Args:
        order: knobs, in the order in which their steps are taken; those that are not in it come last.
        alone: the knobs that are measured; all others move together, in the last step. Without any, all are.

    Returns:
        The steps, and those that have several knobs although nobody asked for it.

    Raises:
        UserError: one of the two is refused itself, as the study was made with another version of a method.
    """
    knobs = differing(spec, start, end)
    steps: list[Step] = [(knob,) for knob in knobs]
    reasons: dict[str, str] = {}
    for knob in knobs:
        for decider in _deciders(spec, start, end, knob, knobs):
            steps = _joined(steps, knob, decider)
            reasons[knob] = f"{knob} depends on {decider}"
    steps = _ordered(steps, order)
    rest = tuple(key for step in steps if alone and not set(step) & set(alone) for key in step)
    if rest:
        steps = [*(step for step in steps if set(step) & set(alone)), rest]
    while refused := _refused(spec, start, end, steps):
        if len(steps) == 1:
            raise UserError(f"{spec.name}: its own configurations are refused: {refused[0]}")
        pairs = [_joined(steps, one[0], other[0]) for one, other in combinations(steps, 2)]
        best = min(pairs, key=lambda joined: len(_refused(spec, start, end, joined)))
        (new,) = (step for step in best if step not in steps)
        reasons[new[0]] = f"the study refuses {refused[0]}"
        steps = best
    merges = [step for step in steps if len(step) > 1 and step != rest]
    return steps, [Merge(step, "; ".join(reasons[key] for key in step if key in reasons)) for step in merges]


def path(count: int) -> list[Moved]:
    """The configurations from the baseline to the best, a step at a time."""
    return [frozenset(range(taken)) for taken in range(count + 1)]


def adding(count: int) -> list[Moved]:
    """The baseline with each step alone."""
    return [frozenset({place}) for place in range(count)]


def removing(count: int) -> list[Moved]:
    """The best without each step."""
    return [path(count)[-1] - {place} for place in range(count)]


def configurations(count: int) -> list[Moved]:
    """Each that an ablation of so many steps needs, once: 2 for one step, 4 for two, `3k - 1` for more."""
    return list(dict.fromkeys([*path(count), *adding(count), *removing(count)]))


def check_knobs(name: str, option: str, given: Sequence[str], knobs: Sequence[str]) -> None:
    """Refuse keys that are not among the knobs.

    Raises:
        UserError: says which are.
    """
    for key in given:
        if key not in knobs:
            raise UserError(
                f"{option} {key}: baseline and best of {name} do not differ in it. {nearest(key, list(knobs))}"
                f"They differ in {', '.join(knobs)}"
            )


def _deciders(spec: StudySpec, start: Params, end: Params, knob: str, knobs: Sequence[str]) -> list[str]:
    """The other knobs that decide whether one of the two configurations has this one."""
    section, domain = knob.split(".")[0], spec.search.space.get(knob)
    deciders: dict[str, None] = {}
    for params in (start, end):
        values = {key: each for key in knobs if (each := value(spec, params, key)) is not None}
        values = {**params, **values}
        is_there = value(spec, params, knob) is not None
        if domain is not None and not domain.applies(values):
            deciders |= dict.fromkeys(domain.when)
        if not is_there:
            words = (key for key in values if key.split(".")[0] == section and isinstance(values[key], str))
            deciders |= dict.fromkeys([f"{section}.name", *words])
    return [key for key in deciders if key in knobs and key != knob]


def _joined(steps: Sequence[Step], one: str, other: str) -> list[Step]:
    """The steps with those of two knobs made one, where the first of the two stands."""
    both = [step for step in steps if one in step or other in step]
    joined = tuple(key for step in both for key in step)
    return [joined if step is both[0] else step for step in steps if step is both[0] or step not in both]


def _ordered(steps: Sequence[Step], order: Sequence[str]) -> list[Step]:
    """The steps in the order of their first knob in `order`; those without one behind, as they stand."""
    place = {key: at for at, key in reversed(list(enumerate(order)))}
    return sorted(steps, key=lambda step: min((place[key] for key in step if key in place), default=len(order)))


def _refused(spec: StudySpec, start: Params, end: Params, steps: Steps) -> list[str]:
    """The configurations that the study refuses, each with the reason."""
    found = []
    for moved in configurations(len(steps)):
        taken = [steps[place] for place in sorted(moved)]
        if why := refusal(spec, mixed(spec, start, end, taken)):
            keys = " and ".join(key for step in taken for key in step)
            found.append(f"the baseline with {keys} of the best ({why})" if keys else f"the baseline ({why})")
    return found
