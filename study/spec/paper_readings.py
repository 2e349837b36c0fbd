"""Readings of a paper's protocol: what its text, its appendix and its released code leave open.

A table's study file declares them as blocks of overrides by name, and has one of them itself, with the reason.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from study.errors import UserError
from study.knobs import Section
from study.spec.key_errors import ProblemCollector, validate_section_as
from study.spec.section_models import StrictModel
from study.spec.yaml_document import YamlDocument, split_dotted_key

MISSING_VALUE = object()


class ProtocolReading(StrictModel):
    """One reading of a protocol.

    Attributes:
        about: what it means, in a sentence.
        source: where it stands: an equation, a table, the released code.
        set: the keys and values by which the readings differ, as for `--set`. None: the trials are those of the file's
            own reading, and are read in another way.
        metrics: our metric that a printed number is, in place of the table's.
        values: by key, what a printed value means in a study file.
        epoch: the one whose numbers are printed: the last, or the best on the test split.
        taken: why the study file itself has this reading; None: it has another.
    """

    about: Annotated[str, Field(min_length=1)]
    source: Annotated[str, Field(min_length=1)]
    set: dict[str, JsonValue] = Field(default_factory=dict)
    metrics: dict[str, str] = Field(default_factory=dict)
    values: dict[str, dict[str, float]] = Field(default_factory=dict)
    epoch: Literal["last", "best"] = "last"
    taken: str | None = None

    @property
    def is_reevaluation_only(self) -> bool:
        """Whether it reads the same trials in another way."""
        return bool(self.metrics or self.values) or self.epoch != "last"


class DeclaredReadings(StrictModel):
    """Outline of what a study file says of readings."""

    readings: dict[str, ProtocolReading] = Field(default_factory=dict)


def pop_readings(document: YamlDocument) -> dict[str, ProtocolReading]:
    """Take the readings out of a study file's document and check them.

    Raises:
        UserError: they are not of the form of `ProtocolReading`; not exactly one is taken, or the file does not have
            its values.
    """
    declared = document.values.pop("readings", None)
    if declared is None:
        return {}
    problems = ProblemCollector(document)
    checked = validate_section_as(DeclaredReadings, {"readings": declared}, (), problems)
    problems.raise_if_any()
    readings = checked.readings if checked else {}
    taken = [name for name, reading in readings.items() if reading.taken is not None]
    if len(taken) != 1:
        given = ", ".join(taken) or "none"
        problems.add_problem(("readings",), f"taken: given for {given}, allowed is exactly one of them")
    for name, each in readings.items():
        if each.taken is None and not (each.set or each.is_reevaluation_only):
            why = "set, metrics, values, epoch: none given, so it differs from no other one"
            problems.add_problem(("readings", name), why)
    for name in taken:
        if readings[name].is_reevaluation_only:
            why = "metrics, values, epoch: given, but those of the one taken are the table's"
            problems.add_problem(("readings", name), why)
        for key, value in readings[name].set.items():
            if (there := _value_at_dotted_key(document.values, key)) != value:
                has = "nothing" if there is MISSING_VALUE else repr(there)
                why = f"{value!r} given, but the file, which takes it, has {has}"
                problems.add_problem(("readings", name, "set", key), why)
    problems.raise_if_any()
    return readings


def apply_reading(document: YamlDocument, readings: Mapping[str, ProtocolReading], name: str) -> None:
    """Override the keys of a study file by those of one reading.

    Raises:
        UserError: it is not declared.
    """
    if name not in readings:
        there = ", ".join(readings) or "none"
        raise UserError(f"{name!r}: no reading of {document.source}. Readings there: {there}")
    for key, value in readings[name].set.items():
        document.override_key(key, value, document.key_location(("readings", name, "set", key)))


def has_own_trials(reading: ProtocolReading) -> bool:
    """Return whether a reading has trials of its own, beside those of the file's reading."""
    return reading.taken is None and bool(reading.set)


def is_study_by_reading(reading: ProtocolReading, values: Section) -> bool:
    """Return whether a study has the trials of a reading: all of its values, if it has any or is the file's own."""
    return (bool(reading.set) or reading.taken is not None) and all(
        _value_at_dotted_key(values, key) == value for key, value in reading.set.items()
    )


def _value_at_dotted_key(values: Section, dotted: str) -> object:
    """Return the value at a dotted key of a document, or `MISSING_VALUE`."""
    found: object = values
    for part in split_dotted_key(dotted):
        if not isinstance(found, Mapping) or part not in found:
            return MISSING_VALUE
        found = found[part]
    return found
