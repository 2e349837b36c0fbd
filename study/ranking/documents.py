"""Documents: what commands print with `--json`, as frozen dataclasses, and the plain values that these become."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, dataclass_transform

KNOWN = {"document": "known"}
"""The metadata of a field that a document has not where it is None."""

INNER = {"document": "inner"}
"""Of a field whose own fields stand among those of the document; None: there are none."""


@dataclass_transform(frozen_default=True)
class Statement:
    """One thing that is said of a result. Each kind is a class of its own, and with that a frozen dataclass: of whom it
    is said, by which metric (`SPLIT/NAME`), with which numbers. Its text is made of these alone."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


def text_of(said: Iterable[Statement]) -> str:
    """Statements as one text."""
    return " ".join(map(str, said))


def plain(value: object) -> Any:
    """A document as plain values, its fields in their order, a statement as its text."""
    if isinstance(value, Statement):
        return str(value)
    if is_dataclass(value):
        return _of_fields(value)
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


def _of_fields(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in fields(value):
        part, role = getattr(value, one.name), one.metadata.get("document")
        if role == "inner" and part is not None:
            found |= _of_fields(part) if is_dataclass(part) else plain(part)
        elif not role or part is not None:
            found[one.name] = plain(part)
    return found
