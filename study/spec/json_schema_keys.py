"""The keys of a study file's sections as JSON Schema, from their declarations: types, ranges and descriptions."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from study.knobs import Knob
from study.spec.checks import section_model
from study.spec.forms import CATALOGUES
from study.spec.sections import section_knobs

Schema = dict[str, Any]


class Keys:
    """The keys that a section can have, whatever its name and the values of its other keys.

    Attributes:
        names: what `name` can be, empty for `train`; entries of other distributions that cannot be used are left out.
        of: by name (`""` for `train`), the keys with their schemas.
    """

    def __init__(self, section: str) -> None:
        catalogue = CATALOGUES.get(section)
        self.section = section
        self.names = [name for name in catalogue.names() if catalogue.problem(name) is None] if catalogue else []
        knobs = {name: list(_all_knobs(section, {"name": name} if name else {})) for name in self.names or [""]}
        self.required = {
            name: sorted({knob.key for knob in declared if knob.required}) for name, declared in knobs.items()
        }
        self.of = {name: self._schemas(declared) for name, declared in knobs.items()}

    @property
    def keys(self) -> list[str]:
        """Every key that one of the names has."""
        return list(dict.fromkeys(key for schemas in self.of.values() for key in schemas))

    def everything(self) -> dict[str, Schema]:
        """Each key that one of the names has, with all that it can be."""
        by_key: dict[str, list[Schema]] = {}
        for schemas in self.of.values():
            for key, schema in schemas.items():
                by_key.setdefault(key, []).append(schema)
        return {key: either(schemas) for key, schemas in by_key.items()}

    def _schemas(self, knobs: Iterable[Knob]) -> dict[str, Schema]:
        by_key: dict[str, list[Schema]] = {}
        for knob in knobs:
            by_key.setdefault(knob.key, []).append(self._schema(knob))
        return {key: either(schemas) for key, schemas in by_key.items()}

    def _schema(self, knob: Knob) -> Schema:
        return ({"description": knob.about} if knob.about else {}) | _values(knob)


def either(schemas: list[Schema]) -> Schema:
    """The schema of what any of these allows; lists of names are merged."""
    different = [schema for place, schema in enumerate(schemas) if schema not in schemas[:place]]
    bare = [
        {key: value for key, value in schema.items() if key not in ("description", "default")} for schema in different
    ]
    words = next((schema["description"] for schema in different if "description" in schema), None)
    described = {"description": words} if words else {}
    if len(different) == 1:
        return different[0]
    if all(schema.keys() == {"type", "enum"} and schema["type"] == bare[0]["type"] for schema in bare):
        names = list(dict.fromkeys(name for schema in bare for name in schema["enum"]))
        return {**described, "type": bare[0]["type"], "enum": names}
    kinds = [schema for place, schema in enumerate(bare) if schema not in bare[:place]]
    return {**described, **(kinds[0] if len(kinds) == 1 else {"anyOf": kinds})}


def is_scalar(schema: Schema) -> bool:
    """Whether a search can give the key a value: not where only lists are allowed."""
    return any(branch.get("type") != "array" for branch in schema.get("anyOf", [schema]))


def _all_knobs(section: str, start: Mapping[str, Any]) -> Iterator[Knob]:
    """Every knob that a section can have: follows each name of a key that changes which keys there are."""
    waiting, seen = [dict(start)], {frozenset(start.items())}
    yielded: set[Knob] = set()
    while waiting:
        values = waiting.pop(0)
        knobs = section_knobs(section, values)
        yield from (knob for knob in knobs.values() if knob not in yielded)
        yielded |= set(knobs.values())
        for key, name in ((key, name) for key, knob in knobs.items() for name in knob.names if name != knob.default):
            other = {**values, key: name}
            chosen = frozenset(other.items())
            if chosen not in seen:
                seen.add(chosen)
                if section_knobs(section, other) != knobs:
                    waiting.append(other)


@cache
def _values(knob: Knob) -> Schema:
    """The schema of a knob's values, from the pydantic model that also checks them."""
    whole = section_model("section", [knob]).model_json_schema()
    return {key: value for key, value in whole["properties"][knob.key].items() if key != "title"}
