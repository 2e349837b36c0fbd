"""What the papers say about a search: the ranges that hyperparameters declare, and configurations to try first."""

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from pydantic import ValidationError

from study.knobs import Searched
from study.spec.checks import Problems
from study.spec.document import Key
from study.spec.forms import Forms
from study.spec.schema import Domain
from study.spec.sections import Sections
from study.spec.space import Space


def written_out(domains: Mapping[str, Domain], forms: Forms, problems: Problems) -> dict[str, Domain]:
    """The domains with `range: paper` replaced: by a range that holds all that the space's methods declare for the key.

    What the file itself gives of a range overrides this.
    """
    asked = {key for key, domain in domains.items() if domain.range is not None and key in forms.keys}
    return {
        key: _written_out(key, domain, forms, problems) if key in asked else domain for key, domain in domains.items()
    }


def _written_out(key: str, domain: Domain, forms: Forms, problems: Problems) -> Domain:
    at: Key = ("search", "space", key)
    declared = list(dict.fromkeys(knob.searched for knob in forms.knobs(key, domain) if knob.searched))
    own = domain.model_dump(include={"low", "high", "log", "step"}, exclude_defaults=True)
    if not declared:
        others = [other for other in forms.keys if any(knob.searched for knob in forms.knobs(other))]
        problems.add(at, f"'paper' given, but no range is declared for it. Allowed for: {', '.join(others)}")
        return Domain(choices=[0])
    if any(declaration.choices for declaration in declared):
        choices = list(dict.fromkeys(choice for declaration in declared for choice in declaration.choices))
        if own:
            problems.add(at, f"the papers' range has the choices {choices}, {', '.join(own)} cannot change them")
        return Domain(choices=choices, when=domain.when)
    try:
        return Domain(**{**_hull(declared), **own}, when=domain.when)
    except ValidationError as error:
        problems.add(at, error.errors()[0]["msg"].removeprefix("Value error, "))
        return Domain(choices=[0])


def _hull(declared: list[Searched]) -> dict[str, Any]:
    """The smallest range that holds all of these; logarithmic, or in steps, where all are."""
    steps = {declaration.step for declaration in declared}
    return {
        "low": min(declaration.low for declaration in declared if declaration.low is not None),
        "high": max(declaration.high for declaration in declared if declaration.high is not None),
        "log": all(declaration.log for declaration in declared),
        "step": steps.pop() if len(steps) == 1 else None,
    }


def configurations(space: Space, sections: Sections) -> list[dict[str, Any]]:
    """The papers' configurations that the search could give: of each method the first, then of each the second ...

    A key without a value in the papers has the value that it has without a search, or else its first choice.
    """
    methods = space.domains["method.name"].ends() if "method.name" in space.domains else [None]
    of_each = [_of_method(space, sections, method) for method in methods]
    turns = [configuration for turn in zip_longest(*of_each) for configuration in turn if configuration is not None]
    return [configuration for place, configuration in enumerate(turns) if configuration not in turns[:place]]


def _of_method(space: Space, sections: Sections, method: Any) -> list[dict[str, Any] | None]:
    first, count = _configuration(space, sections, method, 0)
    others = (_configuration(space, sections, method, place)[0] for place in range(1, count))
    return [first, *others] if count else []


def _configuration(space: Space, sections: Sections, method: Any, place: int) -> tuple[dict[str, Any] | None, int]:
    """One of a method's configurations, None if it is not in the space, and how many the papers have."""
    params: dict[str, Any] = {}
    count = 0
    for key, domain in space.domains.items():
        if not space.applies(key, params):
            continue
        section, name = key.split(".")
        knob = sections.knobs(section, params).get(name)
        if knob and knob.searched and knob.searched.paper:
            values = knob.searched.paper
            wishes, count = [values[min(place, len(values) - 1)]], max(count, len(values))
        else:
            wishes = [
                method if key == "method.name" else sections.form(section, params).get(name),
                *(domain.choices or []),
            ]
        value = next((wish for wish in wishes if domain.contains(wish)), _NONE)
        if value is _NONE:
            return None, count
        params[key] = value
    return params, count


_NONE = object()
