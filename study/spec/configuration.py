"""Read a configuration that a user types for a running search, and check it against the search's space."""

from collections.abc import Iterable, Mapping

from study import files
from study.errors import UserError, nearest
from study.knobs import Params, Scalar, Section
from study.spec.document import Document, assigned
from study.spec.schema import Domain, among
from study.spec.section_checks import Problems, params_text, shown
from study.spec.space import Space
from study.training.config import SECTIONS

FORMAT = 2
"""Version of the form of `origin` in an exported file."""


def configuration_digest(values: Section) -> str:
    """Return a digest of the sections that define a trial; it tells whether an exported file was changed.

    `data.folds: null` counts as not given, as in files from before there were folds.
    """
    sections = {section: values.get(section) for section in SECTIONS}
    data = sections["data"]
    if isinstance(data, Mapping) and data.get("folds", 0) is None:
        sections["data"] = {key: value for key, value in data.items() if key != "folds"}
    return files.digest_of_values(sections)


OPTION = "enqueue"
"""What messages call the source of a typed configuration."""


def configuration(space: Space, assignments: Iterable[str], start: Params | None = None) -> dict[str, Scalar]:
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
    document, given = Document(OPTION, {}), dict[str, Scalar]()
    for assignment in assignments:
        key, value, place = assigned(assignment, OPTION)
        if not isinstance(value, Scalar):
            raise UserError(f"{place}: {key}: {shown(value)} given, allowed is a single value")
        given[key], document.places[key,] = value, place
    return fitted(space, given, document, start)


def fitted(space: Space, given: Params, document: Document, start: Params | None = None) -> dict[str, Scalar]:
    """Return the parameters of a trial from values that are read already.

    Args:
        document: says where each came from.
    """
    problems = Problems(document)
    values = {**(start or {}), **{key: _of_its_kind(space, key, value) for key, value in given.items()}}
    params = space.walk(lambda key, domain: values.get(key))
    for key in given:
        if key not in space.domains:
            message = f"is not searched. {nearest(key, space.domains)}Allowed: {', '.join(space.domains) or 'none'}"
            problems.add((key,), message)
        elif key not in params:
            deciding = {other: value for other, value in params.items() if other in space.structure}
            problems.add((key,), f"a trial with {params_text(deciding)} does not have it")
    for key, why in faults(space, params).items():
        problems.add((key,), why if key in values else f"is missing: {_allowed(space, key)}")
    problems.raise_any()
    return params


def faults(space: Space, params: Params) -> dict[str, str]:
    """Return what is wrong with each value of a trial; nothing else of the trial is looked at."""
    wrong = {}
    for key, value in params.items():
        domain = space.domains.get(key)
        if domain is None:
            wrong[key] = "is not searched"
        elif not domain.contains(value) or not _is_plain(space, key, domain, value):
            wrong[key] = f"{shown(value)} given, {_allowed(space, key)}"
    return wrong


def _is_plain(space: Space, key: str, domain: Domain, value: Scalar) -> bool:
    """Return whether a value of a range is a number, and an int where the range has whole numbers."""
    if domain.choices is not None:
        return True
    return not isinstance(value, bool) and (key not in space.integers or isinstance(value, int))


def _of_its_kind(space: Space, key: str, value: Scalar) -> Scalar:
    """Return a value as the search would give it, where it could: 64.0 as 64, or 1 as 1.0."""
    domain = space.domains.get(key)
    if domain is None or isinstance(value, bool) or not domain.contains(value):
        return value
    if domain.choices is not None:
        return next(choice for choice in domain.choices if among(value, [choice]))
    assert isinstance(value, int | float)  # as the range contains it
    if key not in space.integers:
        return float(value)
    return int(value) if value == int(value) else value


def _allowed(space: Space, key: str) -> str:
    domain = space.domains[key]
    if domain.choices is not None:
        return f"allowed: {', '.join(map(str, domain.choices))}"
    whole = "a whole number " if key in space.integers else ""
    step = f" in steps of {domain.step}" if domain.step is not None else ""
    return f"allowed is {whole}from {domain.low} to {domain.high}{step}"
