"""Readings of a paper's protocol: what its text, its appendix and its released code leave open.

A table's study file declares them as blocks of overrides by name, and has one of them itself, with the reason.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from study.errors import UserError
from study.spec.checks import Problems, Strict, check
from study.spec.document import Document, split

ABSENT = object()


class Reading(Strict):
    """One reading of a protocol.

    Attributes:
        about: what it means, in a sentence.
        source: where it stands: an equation, a table, the released code.
        set: the keys and values by which the readings differ, as for `--set`.
        taken: why the study file itself has this reading; None: it has another.
    """

    about: Annotated[str, Field(min_length=1)]
    source: Annotated[str, Field(min_length=1)]
    set: Annotated[dict[str, Any], Field(min_length=1)]
    taken: str | None = None


class Declared(Strict):
    """The outline of what a study file says of readings."""

    readings: dict[str, Reading] = Field(default_factory=dict)


def take_readings(document: Document) -> dict[str, Reading]:
    """Take the readings out of a study file's document and check them.

    Raises:
        UserError: they are not of the form of `Reading`; not exactly one is taken, or the file does not have its
            values.
    """
    declared = document.values.pop("readings", None)
    if declared is None:
        return {}
    problems = Problems(document)
    checked = check(Declared, {"readings": declared}, (), problems)
    problems.raise_any()
    assert checked is not None
    readings: dict[str, Reading] = Declared.model_validate(checked).readings
    taken = [name for name, reading in readings.items() if reading.taken is not None]
    if len(taken) != 1:
        problems.add(("readings",), f"taken: given for {', '.join(taken) or 'none'}, allowed is exactly one of them")
    for name in taken:
        for key, value in readings[name].set.items():
            if (there := _at(document.values, key)) != value:
                has = "nothing" if there is ABSENT else repr(there)
                problems.add(
                    ("readings", name, "set", key), f"{value!r} given, but the file, which takes it, has {has}"
                )
    problems.raise_any()
    return readings


def apply_reading(document: Document, readings: Mapping[str, Reading], name: str) -> None:
    """Override the keys of one reading.

    Raises:
        UserError: it is not declared.
    """
    if name not in readings:
        there = ", ".join(readings) or "none"
        raise UserError(f"{name!r}: no reading of {document.source}. Readings there: {there}")
    for key, value in readings[name].set.items():
        document.set(key, value, document.place(("readings", name, "set", key)))


def is_of(reading: Reading, values: Mapping[str, Any]) -> bool:
    """Return whether a study's document has all values of a reading."""
    return all(_at(values, key) == value for key, value in reading.set.items())


def _at(values: Mapping[str, Any], dotted: str) -> Any:
    """The value at a dotted key of a document, or `ABSENT`."""
    found: Any = values
    for part in split(dotted):
        if not isinstance(found, Mapping) or part not in found:
            return ABSENT
        found = found[part]
    return found
