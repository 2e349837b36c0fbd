"""The JSON Schema of study files, with which editors complete and check them.

It is made by pydantic from the models that check a study file (`study.spec.schema`), and from models of each section
that are made from the catalogues. Only `study plan` checks what depends on several keys at once (a method that does not
suit the data, a metric that the data lack, a range without its ends), profiles, and files that run a function of the
user's own.
"""

import json
import re
from collections.abc import Iterable, Mapping
from types import GenericAlias
from typing import Annotated, Literal, get_origin

from pydantic import BaseModel, Field, GetJsonSchemaHandler, JsonValue
from pydantic.json_schema import JsonSchemaValue, models_json_schema
from pydantic_core import CoreSchema
from typing_extensions import TypeAliasType

from study import metrics
from study.knobs import Knob
from study.methods import OWN
from study.spec.document import ASIDE
from study.spec.load import NAME_RULE
from study.spec.readings import Reading
from study.spec.schema import Domain, Layout, Resources, Search, Single
from study.spec.search_checks import MARK, NEVER_SEARCHED
from study.spec.section_checks import any_of, checked, made_model, one_of, plain
from study.spec.trial_sections import CATALOGUES, section_knobs
from study.training.config import SECTIONS

FILE = "study.schema.json"
"""Name of the schema's file beside the shipped study files."""

ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
"""Matches a key of a model and what its docstring says of it."""

Duration = Annotated[str, Field(pattern=r"^(\d+(\.\d+)?[smhd])+$", examples=["90m", "1h30m"])]
WORDS = {
    "data": "The data set; study data list prints what there is.",
    "model": "The network, and the projection head on it.",
    "method": "The loss or method, and what is added to it.",
    "train": "How each trial is trained and evaluated.",
    "name": "The name of the study and of its folder.",
    "final_seeds": "The training seeds of a final training, which has one trial for each and no search.",
    "origin": "Where an exported configuration comes from.",
    "profiles": "Blocks of overrides, by name, for --profile: dotted keys and their values.",
    "readings": "What a paper's text and code leave open, by name: the keys in which the readings differ.",
}
FREE: object = Field(default_factory=dict)
"""Default of a key that can be left out and whose default depends on others."""

IS_OWN: JsonSchemaValue = {
    "required": ["method"],
    "properties": {"method": {"type": "object", "required": ["name"], "properties": {"name": {"const": OWN}}}},
}
"""Condition that a file runs a training function of the user's own, of whose keys nothing is known here."""


def schema() -> JsonSchemaValue:
    """Return the schema, draft 2020-12, of the study files that this installation can read."""
    _, found = models_json_schema([(_file(), "validation")])
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A study file", "type": "object"}
    definitions = {name: _plain(definition) for name, definition in found["$defs"].items()}
    definitions["file"]["patternProperties"] = {
        f"^{ASIDE}": {"description": "A place for anchors, which says nothing."}
    }
    return head | {"if": IS_OWN, "else": {"$ref": "#/$defs/file"}, "$defs": definitions}


def text() -> str:
    """Return the schema as text, a line per definition."""
    document = schema()
    definitions = document.pop("$defs")
    lines = [f"  {json.dumps(name)}: {json.dumps(definition)}" for name, definition in definitions.items()]
    body = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in document.items()]
    return "\n".join(["{", *body, ' "$defs": {', ",\n".join(lines), " }", "}", ""])


def declared(section: str, name: str = "") -> dict[str, list[Knob]]:
    """Return the knobs that each key of a section may have, whatever its other keys are.

    Each name that changes which keys there are is followed.
    """
    start = {"name": name} if name else {}
    waiting, seen = [(start, section_knobs(section, start))], {frozenset(start.items())}
    found: dict[str, list[Knob]] = {}
    while waiting:
        values, knobs = waiting.pop(0)
        for knob in knobs.values():
            if knob not in (known := found.setdefault(knob.key, [])):
                known.append(knob)
        for key, other_name in ((key, other) for key, knob in knobs.items() for other in knob.names):
            other = {**values, key: other_name}
            chosen = frozenset(other.items())
            if other_name != knobs[key].default and chosen not in seen:
                seen.add(chosen)
                if (others := section_knobs(section, other)) != knobs:  # else its keys are known
                    waiting.append((other, others))
    return found


def names(section: str) -> list[str]:
    """Return the values of a section's `name`; entries of other distributions that cannot be used are left out."""
    catalogue = CATALOGUES[section]
    return [name for name in catalogue.names() if catalogue.problem(name) is None]


def _file() -> type[BaseModel]:
    """Make the model of a study file."""
    sections, searchable = dict[str, object](), dict[str, object]()
    for section in SECTIONS:
        by_name = {name: declared(section, name) for name in names(section)} if section in CATALOGUES else {}
        models = [_section(section, keys, name) for name, keys in by_name.items()] or [
            _section("train", declared("train"))
        ]
        sections[section] = Annotated[any_of(models), Field(discriminator="name")] if by_name else models[0]
        together: dict[str, list[Knob]] = {}
        for keys in by_name.values() if by_name else [declared(section)]:
            for key, knobs in keys.items():
                together.setdefault(key, []).extend(knobs)
        for key, knobs in together.items():
            if f"{section}.{key}" not in NEVER_SEARCHED and any(map(_is_scalar, knobs)):
                searchable[f"{section}.{key}"] = TypeAliasType(f"{section}_{key}", _type(knobs))
        if by_name:
            label = Annotated[str, Field(description="A label of search.alternatives.")]
            searchable[f"{section}.name"] = TypeAliasType(f"{section}_name", any_of([one_of(by_name), label]))
    when = GenericAlias(dict, (one_of(searchable), list[Single]))
    domain = made_model("Domain", {"when": (when, FREE)}, Domain, Domain.__doc__)
    space = {key: Annotated[any_of([kind, Literal["paper"], domain]), _Choices()] for key, kind in searchable.items()}
    point = _optional("point", searchable)
    marked = _optional("given", {**searchable, MARK: bool})
    alternatives = {section: GenericAlias(dict, (str, sections[section])) for section in CATALOGUES}
    search = _search(_optional("space", space), point, marked, _optional("alternatives", alternatives))
    fields: dict[str, tuple[object, object]] = {
        section: (_told(kind, section), FREE if section == "train" else ...) for section, kind in sections.items()
    }
    name = Annotated[str, Field(pattern=f"^{NAME_RULE.pattern}$", description=WORDS["name"])]
    fields |= {"name": (name, ...), "search": (search, FREE), "resources": (_resources(), FREE)}
    fields["profiles"] = _told(dict[str, dict[str, object] | None] | None, "profiles"), FREE
    fields["readings"] = _told(dict[str, Reading], "readings"), FREE
    for key in ("final_seeds", "origin"):
        fields[key] = _told(Layout.model_fields[key].annotation, key), None
    return made_model("file", fields, Layout)


def _told(kind: object, key: str) -> object:
    return Annotated[kind, Field(description=WORDS[key])]


def _search(
    space: type[BaseModel], point: type[BaseModel], marked: type[BaseModel], alternatives: type[BaseModel]
) -> type[BaseModel]:
    """Make the model of the section `search`.

    Args:
        space: what it may search.
        point, marked: a configuration, and one with its mark.
    """
    metric = one_of(f"val/{name}" for name in metrics.searchable())
    metric_lists = GenericAlias(list, (metric,))
    time = Search.model_fields["time"].rebuild_annotation()
    given: dict[str, tuple[object, object]] = {
        "space": (space, FREE),
        "alternatives": (alternatives, FREE),
        "baseline": (marked | None, None),
        "enqueue": (GenericAlias(list, (marked,)) | Literal["papers"], FREE),
        "incumbents": (GenericAlias(list, (point,)), FREE),
        "metric": (
            any_of([metric, Annotated[(metric_lists, Field(min_length=1))]]),
            Search.model_fields["metric"].default,
        ),
        "time": (any_of([Duration, time]), None),
    }
    return made_model("Search", given, Search, Search.__doc__)


def _resources() -> type[BaseModel]:
    """Make the model of what a new study can ask for: a study that ran with more can still be read."""
    hang = Resources.model_fields["hang"].rebuild_annotation()
    gpu = Annotated[float, Field(ge=0, le=1)]
    fields: dict[str, tuple[object, object]] = {"gpu": (gpu, 0), "hang": (any_of([Duration, hang]), None)}
    return made_model("Resources", fields, Resources, Resources.__doc__)


def _section(section: str, keys: Mapping[str, list[Knob]], name: str = "") -> type[BaseModel]:
    """Make the model of a section, or of the section with one `name`."""
    fields: dict[str, tuple[object, object]] = {"name": (one_of([name]), ...)} if name else {}
    for key, knobs in keys.items():
        defaults = [knob.default for knob in knobs]
        default = FREE if key == "threads" or any(one != defaults[0] for one in defaults) else plain(defaults[0])
        fields[key] = _type(knobs), ... if any(knob.required for knob in knobs) else default
    return made_model(f"{section}_{name}" if name else section, fields)


def _type(knobs: Iterable[Knob]) -> object:
    """Return the type of all values that a key can have."""
    kinds = any_of(dict.fromkeys(checked(knob.type) for knob in knobs))
    return Annotated[kinds, Field(description=next((knob.about for knob in knobs if knob.about), None))]


def _is_scalar(knob: Knob) -> bool:
    """Return whether a search can give the key a value: not where only lists are allowed."""
    return any(get_origin(kind) not in (tuple, list) for kind in knob.kinds)


def _optional(title: str, kinds: Mapping[str, object]) -> type[BaseModel]:
    """Make a model whose keys, of these types, can all be left out."""
    return made_model(title, {key: (kind, FREE) for key, kind in kinds.items()})


class _Choices:
    """Forms of a key in `search.space`: the choices of its domain are values of it."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        found = handler(core)
        value, paper, domain = found["anyOf"]
        return {"anyOf": [value, paper, {"allOf": [domain, {"properties": {"choices": {"items": value}}}]}]}


def _plain(schema: JsonSchemaValue) -> JsonSchemaValue:
    """Return a pydantic schema without titles, and with descriptions of keys from the model's docstring."""
    cleaned: JsonSchemaValue = {}
    for key, value in schema.items():
        if key == "properties":
            cleaned[key] = {name: _plain(child) for name, child in value.items()}
        elif key != "title":
            cleaned[key] = _plain_value(value)
    if "description" in cleaned:
        head, _, block = cleaned["description"].partition("\nAttributes:\n")
        cleaned["description"] = " ".join(head.split())
        words = {key: " ".join(text.split()) for key, text in ATTRIBUTE.findall(block)}
        for key, described in cleaned.get("properties", {}).items():
            if key in words:
                described.setdefault("description", words[key].rstrip("."))
    return cleaned


def _plain_value(value: JsonValue) -> JsonValue:
    """Return a value of a schema, where a mapping is a schema itself."""
    if isinstance(value, list):
        return [_plain_value(child) for child in value]
    if isinstance(value, float) and value.is_integer():  # `typing` keeps the first of equal bounds, 0 or 0.0
        return int(value)
    return _plain(value) if isinstance(value, dict) else value
