"""Documents: what commands print with `--json`, as frozen dataclasses, and the plain values that these become."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Protocol, dataclass_transform, runtime_checkable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

OMIT_IF_NONE = {"document": "known"}
"""Metadata of a field that the document leaves out where it is None."""

FLATTEN_FIELDS = {"document": "inner"}
"""Metadata of a field whose own fields stand among those of the document; None: there are none."""


@dataclass_transform(frozen_default=True)
class Statement:
    """One thing that is said of a result.

    Each kind is a class of its own, and so a frozen dataclass: of whom it is said, by which metric (`SPLIT/NAME`), with
    which numbers. Its text is made of these alone.
    """

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


@runtime_checkable
class SupportsDocument(Protocol):
    """Value that is written otherwise than by its fields."""

    def to_document_value(self) -> object:
        """Return its plain value."""


def join_statements(statements: Iterable[Statement]) -> str:
    """Join statements to one text."""
    return " ".join(map(str, statements))


def to_plain_value(value: object) -> object:
    """Convert a document to plain values, its fields in their order, a statement as its text."""
    if isinstance(value, Statement):
        return str(value)
    if isinstance(value, SupportsDocument):
        return value.to_document_value()
    if is_dataclass(value) and not isinstance(value, type):
        return to_plain_dict(value)
    if isinstance(value, Mapping):
        return {key: to_plain_value(part) for key, part in value.items()}
    return [to_plain_value(part) for part in value] if isinstance(value, list | tuple) else value


def to_plain_dict(document: "DataclassInstance") -> dict[str, object]:
    """Convert a dataclass to a dictionary of plain values."""
    found: dict[str, object] = {}
    for one in fields(document):
        part, role = getattr(document, one.name), one.metadata.get("document")
        if role == "inner" and part is not None:
            found |= part if isinstance(part, Mapping) else to_plain_dict(part)
        elif not role or part is not None:
            found[one.name] = to_plain_value(part)
    return found
