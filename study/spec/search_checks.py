"""Checks of what a search asks for: its keys exist, its values are valid, and all that it can give is a valid trial."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from study.errors import nearest
from study.knobs import Knob
from study.spec.checks import Noted, Problems, fault
from study.spec.document import Key
from study.spec.forms import CATALOGUES, Domains, Forms, names
from study.spec.schema import Domain, Search
from study.spec.sections import Params, Sections
from study.spec.space import Space

NEVER_SEARCHED = {
    "train.epochs": "epochs",
    "train.seed": "seed",
    "train.inferred_groups": "groups to be judged by",
    "train.bias_model_epochs": "groups to be judged by",
    "train.deterministic": "way to compute",
}
"""Keys of which each study has one value, and what of its trials it is."""

MOST_CASES = 2000
"""Combinations of names that are checked one by one."""


def points(search: Search) -> dict[Key, Params]:
    """The configurations that a search is given, baseline and enqueued, by their place."""
    baseline: dict[Key, Params] = {("search", "baseline"): search.baseline or {}}
    return baseline | {("search", "enqueue", str(place)): params for place, params in enumerate(search.enqueue)}


def check_space(domains: Domains, sections: Sections, forms: Forms, problems: Problems) -> None:
    """Check that every key of a space exists and can be searched, and that its condition names keys of the space."""
    for key, domain in domains.items():
        at: Key = ("search", "space", key)
        if not _is_key(key, forms.keys, at, problems):
            continue
        if domain.choices is None and (key.endswith(".name") or key.startswith("data.")):
            problems.add(at, "a range given, allowed are choices: each is a data set, network or method of its own")
        if key.endswith(".name"):
            _check_names(key, domain.choices or [], sections, at, problems)
        if isinstance(domain.step, float) and any(int in knob.kinds for knob in forms.knobs(key)):
            problems.add((*at, "step"), f"{domain.step!r} given, allowed is a whole number, as {key} is one")
        _check_when(domain.when, domains, (*at, "when"), problems)


def check_points(configurations: Mapping[Key, Params], sections: Sections, problems: Problems) -> list[Params]:
    """Check that every key of the configurations exists in the sections that they lead to, and has a valid value.

    Returns:
        The valid configurations.
    """
    sound = []
    for at, point in configurations.items():
        labels = {key: value for key, value in point.items() if key.endswith(".name")}
        right = [_check_names(key, [value], sections, (*at, key), problems) for key, value in labels.items()]
        if not all(right):
            continue
        knobs = {
            f"{section}.{key}": knob for section in sections.own for key, knob in sections.knobs(section, point).items()
        }
        existing = [key for key in point if _is_key(key, list(knobs), (*at, key), problems)]
        wrong = {key: why for key in existing if key in knobs and (why := fault(knobs[key], point[key]))}
        for key, why in wrong.items():
            problems.add((*at, key), why)
        if len(existing) == len(point) and not wrong:
            sound.append(point)
    return sound


def check_cases(space: Space, problems: Problems) -> list[dict[str, Any]]:
    """The combinations of the keys that decide on others; checks that they are few enough and each key is in one."""
    cases = list(islice(space.cases(), MOST_CASES + 1))
    if len(cases) > MOST_CASES:
        message = f"more than {MOST_CASES} combinations of {', '.join(sorted(space.structure))}. Write several studies"
        problems.add(("search", "space"), message)
        return []
    for key in space.domains:
        if not any(space.applies(key, case) for case in cases):
            problems.add(("search", "space", key), "is searched in no trial: its condition never holds")
    return cases


def check_values(space: Space, sections: Sections, cases: Iterable[Params], problems: Problems) -> None:
    """Check that every value that the search may give to a key is valid, in all forms of the key's section."""
    seen: set[tuple[str, Knob]] = set()
    for case in cases:
        for key, domain in space.domains.items():
            section, name = key.split(".")
            knob = sections.knobs(section, case).get(name)
            if knob is None or (key, knob) in seen or not space.applies(key, case):
                continue
            seen.add((key, knob))
            label = f"{section}.name"
            noted = Noted(problems, {label: case[label]} if label in case else {})
            faults = [why for value in domain.ends() if (why := fault(knob, value))]
            between = None if faults or domain.choices is not None else fault(knob, _between(domain, key, space))
            for why in [*faults, *([between] if between else [])]:
                noted.add(("search", "space", key), why)


def _is_key(key: str, valid: list[str], at: Key, problems: Problems) -> bool:
    if key in NEVER_SEARCHED:
        problems.add(at, f"cannot be searched: every trial of a study has the same {NEVER_SEARCHED[key]}")
        return False
    section, _, name = key.partition(".")
    if key in valid or (name == "name" and section in CATALOGUES):
        return True
    near = [other for other in valid if other.split(".")[0] == section]
    problems.add(at, f"unknown key. {nearest(key, valid)}Allowed: {', '.join(near or valid)}")
    return False


def _check_names(key: str, chosen: Sequence[Any], sections: Sections, at: Key, problems: Problems) -> bool:
    section = key.removesuffix(".name")
    valid = list(dict.fromkeys([*sections.alternatives.get(section, {}), *names(section)]))
    wrong = [name for name in chosen if name not in valid]
    for name in wrong:
        problems.add(at, f"{name!r} given. {nearest(str(name), valid)}Allowed: {', '.join(valid)}")
    plain = [name for name in chosen if name not in wrong and name not in sections.alternatives.get(section, {})]
    unusable = [why for name in plain if (why := CATALOGUES[section].problem(name))]
    for why in unusable:
        problems.add(at, why)
    return not wrong and not unusable


def _check_when(when: Mapping[str, list[Any]], domains: Domains, at: Key, problems: Problems) -> None:
    for key, values in when.items():
        if key not in domains:
            searched = list(domains)
            problems.add((*at, key), f"is not in search.space. {nearest(key, searched)}Allowed: {', '.join(searched)}")
        elif domains[key].choices is None:
            problems.add((*at, key), f"{key} is searched as a range, allowed in a condition are keys with choices")
        else:
            for value in (choice for choice in values if not domains[key].contains(choice)):
                allowed = ", ".join(map(repr, domains[key].ends()))
                problems.add((*at, key), f"{value!r} given, which {key} never is. Allowed: {allowed}")


def _between(domain: Domain, key: str, space: Space) -> Any:
    """A value between the ends of a range, which must be valid, too."""
    assert domain.low is not None
    assert domain.high is not None
    if key in space.integers:
        return int(domain.low + domain.high) // 2
    return domain.low + 0.382 * (domain.high - domain.low) if domain.low < domain.high else domain.low
