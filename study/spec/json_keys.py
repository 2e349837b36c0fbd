"""The keys of a study file's sections as JSON Schema: made from what declares them, with types, ranges and words."""

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
        names: what `name` can be, empty for `train`; without entries of other distributions that cannot be used.
        of: by name (`""` for `train`), the keys with their schemas.
    """

    def __init__(self, section: str) -> None:
        catalogue = CATALOGUES.get(section)
        self.section = section
        self.names = [name for name in catalogue.names() if catalogue.problem(name) is None] if catalogue else []
        knobs = {name: list(_all_knobs(section, {"name": name} if name else {})) for name in self.names or [""]}
        self.required = {name: sorted({one.key for one in several if one.required}) for name, several in knobs.items()}
        self.of = {name: self._schemas(several) for name, several in knobs.items()}

    @property
    def keys(self) -> list[str]:
        """Every key that one of the names has."""
        return list(dict.fromkeys(key for schemas in self.of.values() for key in schemas))

    def everything(self) -> dict[str, Schema]:
        """Each key that one of the names has, with all that it can be."""
        found: dict[str, list[Schema]] = {}
        for schemas in self.of.values():
            for key, schema in schemas.items():
                found.setdefault(key, []).append(schema)
        return {key: either(schemas) for key, schemas in found.items()}

    def _schemas(self, knobs: Iterable[Knob]) -> dict[str, Schema]:
        found: dict[str, list[Schema]] = {}
        for knob in knobs:
            found.setdefault(knob.key, []).append(self._schema(knob))
        return {key: either(schemas) for key, schemas in found.items()}

    def _schema(self, knob: Knob) -> Schema:
        return ({"description": knob.about} if knob.about else {}) | _values(knob)


def either(schemas: list[Schema]) -> Schema:
    """What one of these allows; of names that can be chosen all."""
    different = [one for place, one in enumerate(schemas) if one not in schemas[:place]]
    bare = [{key: value for key, value in one.items() if key not in ("description", "default")} for one in different]
    words = next((one["description"] for one in different if "description" in one), None)
    described = {"description": words} if words else {}
    if len(different) == 1:
        return different[0]
    if all(one.keys() == {"type", "enum"} and one["type"] == bare[0]["type"] for one in bare):
        names = list(dict.fromkeys(name for one in bare for name in one["enum"]))
        return {**described, "type": bare[0]["type"], "enum": names}
    kinds = [one for place, one in enumerate(bare) if one not in bare[:place]]
    return {**described, **(kinds[0] if len(kinds) == 1 else {"anyOf": kinds})}


def is_scalar(schema: Schema) -> bool:
    """Whether a search can give a key values: no lists."""
    return any(one.get("type") != "array" for one in schema.get("anyOf", [schema]))


def _all_knobs(section: str, start: Mapping[str, Any]) -> Iterator[Knob]:
    """Every knob that a section can have, by following the keys that take names wherever they change what there is."""
    waiting, seen = [dict(start)], {frozenset(start.items())}
    given: set[Knob] = set()
    while waiting:
        values = waiting.pop(0)
        there = section_knobs(section, values)
        yield from (knob for knob in there.values() if knob not in given)
        given |= set(there.values())
        for key, name in ((key, name) for key, knob in there.items() for name in knob.names if name != knob.default):
            other = {**values, key: name}
            known = frozenset(other.items())
            if known not in seen:
                seen.add(known)
                if section_knobs(section, other) != there:
                    waiting.append(other)


@cache
def _values(knob: Knob) -> Schema:
    """The schema of a knob's values, as pydantic has it from what also checks them."""
    whole = section_model("section", [knob]).model_json_schema()
    return {key: value for key, value in whole["properties"][knob.key].items() if key != "title"}
