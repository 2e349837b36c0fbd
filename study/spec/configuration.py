"""Configurations: which are the same, their digest, and those that a user types, checked against the search's space."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from study import files
from study.errors import UserError, suggest_or_list
from study.knobs import Params, Scalar, Section
from study.spec.domain import Domain, is_among_typed_values
from study.spec.key_errors import ProblemCollector, format_params, quote_value
from study.spec.space import SearchSpace
from study.spec.yaml_document import YamlDocument, parse_assignment
from study.training.config import TRIAL_SECTIONS

ParamsT = TypeVar("ParamsT", bound=Params)


def configuration_key(params: Params) -> frozenset[tuple[str, bool, Scalar]]:
    """Return a key that is equal for the same configurations alone.

    Numbers are compared to twelve digits: 0.3 and 0.1 + 2 * 0.1 are one step of a range.
    """
    return frozenset(
        (key, isinstance(value, bool), float(f"{value:.12g}") if isinstance(value, float) else value)
        for key, value in params.items()
    )


def are_same_configuration(params: Params, other: Params) -> bool:
    """Return whether two configurations are the same."""
    return configuration_key(params) == configuration_key(other)


def distinct_configurations(configurations: Iterable[ParamsT]) -> list[ParamsT]:
    """Return the different ones of these configurations, each where it comes first."""
    found: dict[frozenset[tuple[str, bool, Scalar]], ParamsT] = {}
    for params in configurations:
        found.setdefault(configuration_key(params), params)
    return list(found.values())


EXPORT_FORMAT_VERSION = 2
"""Version of the form of `origin` in an exported file."""


def configuration_digest(values: Section) -> str:
    """Return a digest of the sections that define a trial; it tells whether an exported file was changed.

    `data.folds: null` counts as not given.
    """
    sections = {section: values.get(section) for section in TRIAL_SECTIONS}
    data = sections["data"]
    if isinstance(data, Mapping) and data.get("folds", 0) is None:
        sections["data"] = {key: value for key, value in data.items() if key != "folds"}
    return files.sha256_of_values(sections)


TYPED_CONFIGURATION_SOURCE = "enqueue"
"""What messages call the source of a typed configuration."""


def parse_configuration(
    space: SearchSpace, assignments: Iterable[str], start: Params | None = None
) -> dict[str, Scalar]:
    """Read the parameters of a trial.

    Args:
        assignments: `KEY=VALUE`, each value read as YAML.
        start: values of keys that are not assigned; they hold where a trial with the assigned ones has the key and can
            have the value.

    Returns:
        Every key that a trial with these values has, in the order of the space.

    Raises:
        UserError: says everything that is wrong, as that of `--set` does.
    """
    document, given = YamlDocument(TYPED_CONFIGURATION_SOURCE, {}), dict[str, Scalar]()
    for assignment in assignments:
        key, value, place = parse_assignment(assignment, TYPED_CONFIGURATION_SOURCE)
        if not isinstance(value, Scalar):
            raise UserError(f"{place}: {key}: {quote_value(value)} given, allowed is a single value")
        given[key], document.locations[key,] = value, place
    return validate_configuration(space, given, document, start)


def validate_configuration(
    space: SearchSpace, given: Params, document: YamlDocument, start: Params | None = None
) -> dict[str, Scalar]:
    """Return the parameters of a trial from values that are read already.

    Args:
        document: says where each came from.
    """
    problems = ProblemCollector(document)
    values = {**(start or {}), **{key: _convert_to_domain_type(space, key, value) for key, value in given.items()}}
    params = space.suggest_params(lambda key, domain: values.get(key))
    deciding: set[str] = set()
    for key in given:
        if key not in space.domains:
            problems.add_problem((key,), f"is not searched. {suggest_or_list(key, space.domains)}")
        elif key not in params:
            condition = space.condition_of_key(key)
            deciding |= (missing := condition.keys() - values.keys())
            decided = {other: value for other, value in params.items() if other in space.deciding_keys}
            message = f"a trial with {format_params(decided)} does not have it"
            if missing:
                needed = [f"{other} {' or '.join(map(str, condition[other]))}" for other in sorted(missing)]
                message = f"only a trial with {' and '.join(needed)} has it: give {' and '.join(sorted(missing))}, too"
            problems.add_problem((key,), message)
    for key, why in invalid_value_messages(space, params).items():
        if key not in deciding:
            problems.add_problem((key,), why if key in values else f"is missing: {_allowed_values_text(space, key)}")
    problems.raise_if_any()
    return params


def invalid_value_messages(space: SearchSpace, params: Params) -> dict[str, str]:
    """Return what is wrong with each value of a trial; nothing else of the trial is looked at."""
    wrong = {}
    for key, value in params.items():
        domain = space.domains.get(key)
        if domain is None:
            wrong[key] = "is not searched"
        elif not domain.contains(value) or not _has_number_type_of_domain(space, key, domain, value):
            wrong[key] = f"{quote_value(value)} given, {_allowed_values_text(space, key)}"
    return wrong


def _has_number_type_of_domain(space: SearchSpace, key: str, domain: Domain, value: Scalar) -> bool:
    """Return whether a value of a range is a number, and an int where the range has whole numbers."""
    if domain.choices is not None:
        return True
    return not isinstance(value, bool) and (key not in space.integer_keys or isinstance(value, int))


def _convert_to_domain_type(space: SearchSpace, key: str, value: Scalar) -> Scalar:
    """Return a value as the search would give it, where it could: 64.0 as 64, or 1 as 1.0."""
    domain = space.domains.get(key)
    if domain is None or isinstance(value, bool) or not domain.contains(value):
        return value
    if domain.choices is not None:
        return next(choice for choice in domain.choices if is_among_typed_values(value, [choice]))
    assert isinstance(value, int | float)  # as the range contains it
    if key not in space.integer_keys:
        return float(value)
    return int(value) if value == int(value) else value


def _allowed_values_text(space: SearchSpace, key: str) -> str:
    domain = space.domains[key]
    if domain.choices is not None:
        return f"allowed: {', '.join(map(str, domain.choices))}"
    whole = "a whole number " if key in space.integer_keys else ""
    step = f" in steps of {domain.step}" if domain.step is not None else ""
    return f"allowed is {whole}from {domain.low} to {domain.high}{step}"
