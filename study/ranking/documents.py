"""Documents: what commands print with `--json`, as frozen dataclasses, and the plain values that these become."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

KNOWN = {"document": "known"}
"""The metadata of a field that a document has not where it is None."""

INNER = {"document": "inner"}
"""Of a field whose own fields stand among those of the document; None: there are none."""


def plain(value: object) -> Any:
    """A document as plain values, its fields in their order."""
    if is_dataclass(value):
        found: dict[str, Any] = {}
        for one in fields(value):
            part, role = getattr(value, one.name), one.metadata.get("document")
            if role and part is None:
                continue
            found |= plain(part) if role == "inner" else {one.name: plain(part)}
        return found
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value
