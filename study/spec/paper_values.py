"""The papers' values in a search: `range: paper` of a key, and `enqueue: papers`."""

from collections.abc import Mapping
from itertools import zip_longest

from pydantic import ValidationError

from study.knobs import Scalar, SearchRange, Value
from study.spec.domain import Domain
from study.spec.key_errors import ProblemCollector
from study.spec.space import SearchSpace
from study.spec.trial_sections import SectionForms, TrialSections
from study.spec.yaml_document import KeyPath


def replace_paper_ranges(
    domains: Mapping[str, Domain], forms: SectionForms, problems: ProblemCollector
) -> dict[str, Domain]:
    """Replace `range: paper` in domains by a range that holds all that the space's methods declare for the key.

    What the file itself gives of a range overrides this.
    """
    asked = {key for key, domain in domains.items() if domain.range is not None and key in forms.all_keys}
    return {
        key: _paper_range_of_key(key, domain, forms, problems) if key in asked else domain
        for key, domain in domains.items()
    }


def _paper_range_of_key(key: str, domain: Domain, forms: SectionForms, problems: ProblemCollector) -> Domain:
    at: KeyPath = ("search", "space", key)
    declared = list(dict.fromkeys(knob.search_range for knob in forms.knobs_of_key(key, domain) if knob.search_range))
    own = domain.model_dump(include={"low", "high", "log", "step"}, exclude_defaults=True)
    if not declared:
        others = [other for other in forms.all_keys if any(knob.search_range for knob in forms.knobs_of_key(other))]
        problems.add_problem(at, f"'paper' given, but no range is declared for it. Allowed for: {', '.join(others)}")
        return Domain(choices=[0])
    if any(declaration.choices for declaration in declared):
        choices = list(dict.fromkeys(choice for declaration in declared for choice in declaration.choices))
        if own:
            why = f"the papers' range has the choices {choices}, {', '.join(own)} cannot change them"
            problems.add_problem(at, why)
        return Domain(choices=choices, when=domain.when)
    try:
        return Domain(**{**_covering_range(declared), **own}, when=domain.when)
    except ValidationError as error:
        problems.add_problem(at, error.errors()[0]["msg"].removeprefix("Value error, "))
        return Domain(choices=[0])


def _covering_range(declared: list[SearchRange]) -> dict[str, Value]:
    """Return the smallest range that holds all of these; logarithmic, or in steps, where all are."""
    steps = {declaration.step for declaration in declared}
    return {
        "low": min(declaration.low for declaration in declared if declaration.low is not None),
        "high": max(declaration.high for declaration in declared if declaration.high is not None),
        "log": all(declaration.log for declaration in declared),
        "step": steps.pop() if len(steps) == 1 else None,
    }


def paper_configurations(space: SearchSpace, sections: TrialSections) -> list[dict[str, Scalar]]:
    """Return the papers' configurations that the search could give: the first of each method, then the second ...

    A key without a value in the papers has the value that it has without a search, or else its first choice.
    """
    methods = space.domains["method.name"].boundary_values() if "method.name" in space.domains else [None]
    of_each = [_method_configurations(space, sections, method) for method in methods]
    turns = [configuration for turn in zip_longest(*of_each) for configuration in turn if configuration is not None]
    return [configuration for place, configuration in enumerate(turns) if configuration not in turns[:place]]


def _method_configurations(
    space: SearchSpace, sections: TrialSections, method: Scalar
) -> list[dict[str, Scalar] | None]:
    first, count = _pick_paper_configuration(space, sections, method, 0)
    others = (_pick_paper_configuration(space, sections, method, place)[0] for place in range(1, count))
    return [first, *others] if count else []


def _pick_paper_configuration(
    space: SearchSpace, sections: TrialSections, method: Scalar, place: int
) -> tuple[dict[str, Scalar] | None, int]:
    """Return one of a method's configurations, None if it is not in the space, and how many the papers have."""
    params: dict[str, Scalar] = {}
    count = 0
    for key, domain in space.domains.items():
        if not space.applies_to(key, params):
            continue
        section, name = key.split(".")
        knob = sections.knobs_of_form(section, params).get(name)
        if knob and knob.search_range and knob.search_range.paper:
            values = knob.search_range.paper
            wishes, count = [values[min(place, len(values) - 1)]], max(count, len(values))
        else:
            own = method if key == "method.name" else sections.section_with_names_alone(section, params).get(name)
            wishes = [*([own] if isinstance(own, Scalar) else []), *(domain.choices or [])]
        allowed = [wish for wish in wishes if domain.contains(wish)]
        if not allowed:
            return None, count
        params[key] = allowed[0]
    return params, count
