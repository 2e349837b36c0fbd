"""The JSON Schema of study files, by which editors complete and check them.

It is made from the models that check a study file (`study.spec.schema`) and from the catalogues. What depends on
several keys at once (a method that does not suit the data, a metric that the data lack) only `study plan` checks.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from study import metrics
from study.spec.json_schema_keys import Keys, Schema, is_scalar
from study.spec.json_schema_own import IS_OWN, own_file
from study.spec.load import NAME_RULE
from study.spec.resources import Resources
from study.spec.schema import Layout, Search
from study.spec.search_checks import NEVER_SEARCHED
from study.training.config import SECTIONS

FILE = "study.schema.json"
"""Its name beside the shipped study files."""

DURATION: Schema = {"type": "string", "pattern": r"^(\d+(\.\d+)?[smhd])+$", "examples": ["90m", "1h30m"]}
WORDS = {
    "data": "The data set; study data list prints what there is.",
    "model": "The network, and the projection head on it.",
    "method": "The loss or method, and what is added to it.",
    "train": "How each trial is trained and evaluated.",
    "name": "The name of the study and of its folder.",
    "final_seeds": "The training seeds of a final training, which has one trial for each and no search.",
    "origin": "Where an exported configuration comes from.",
    "profiles": "Blocks of overrides, by name, for --profile: dotted keys and their values.",
}


def schema() -> Schema:
    """The schema, draft 2020-12, of the study files that this installation can read."""
    keys = {section: Keys(section) for section in SECTIONS}
    whole = _plain(Layout.model_json_schema())
    definitions = whole.pop("$defs")
    for section in keys.values():
        definitions |= _section(section)
        definitions |= {
            _any(f"{section.section}.{key}"): key_schema for key, key_schema in section.everything().items()
        }
    for threads in (definitions["train"]["properties"]["threads"], definitions[_any("train.threads")]):
        threads.pop("default", None)  # it follows another key
    definitions |= _search_definitions(keys)
    properties = {key: key_schema for key, key_schema in whole["properties"].items() if key not in SECTIONS}
    properties["name"] |= {"pattern": f"^{NAME_RULE.pattern}$"}
    properties |= {section: _ref(section) for section in SECTIONS}
    properties["profiles"] = _profiles(keys, definitions)
    for key, words in WORDS.items():
        properties[key] = {"description": words, **properties[key]}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A study file"}
    file = {**whole, "properties": properties}
    shared = _shared(definitions)
    own, further = own_file(file, shared)
    return head | {"type": "object", "if": IS_OWN, "then": own, "else": file, "$defs": shared | further}


def text() -> str:
    """The schema as text, a line per definition."""
    document = schema()
    definitions = document.pop("$defs")
    lines = [f"  {json.dumps(name)}: {json.dumps(definition)}" for name, definition in definitions.items()]
    body = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in document.items()]
    return "\n".join(["{", *body, ' "$defs": {', ",\n".join(lines), " }", "}", ""])


def _section(keys: Keys) -> dict[str, Schema]:
    """The definition of a section, and one for each name that it can have."""
    if not keys.names:
        return {keys.section: _mapping(keys.of[""])}
    label = keys.section
    definitions: dict[str, Schema] = {
        label: {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string", "enum": keys.names}},
            "allOf": [_where(name, f"{label}:{name}") for name in keys.names],
        }
    }
    for name in keys.names:
        properties = {"name": {"const": name}, **keys.of[name]}
        definitions[f"{label}:{name}"] = _mapping(properties) | {"required": ["name", *keys.required[name]]}
    return definitions


def _where(name: str, definition: str) -> Schema:
    condition = {"properties": {"name": {"const": name}}, "required": ["name"]}
    return {"if": condition, "then": _ref(definition)}


def _search_definitions(keys: dict[str, Keys]) -> dict[str, Schema]:
    """Definitions of `search` and what is in it, with the keys and values that a search can give trials."""
    search = _plain(Search.model_json_schema())
    definitions: dict[str, Schema] = search.pop("$defs")
    everything = {
        f"{section_keys.section}.{key}": own
        for section_keys in keys.values()
        for key, own in section_keys.everything().items()
    }
    values = {key: _ref(_any(key)) for key, own in everything.items() if key not in NEVER_SEARCHED and is_scalar(own)}
    for section in (section_keys for section_keys in keys.values() if section_keys.names):
        names = {"type": "string", "enum": section.names}
        values[f"{section.section}.name"] = {
            "anyOf": [names, {"type": "string", "description": "A label of search.alternatives."}]
        }
    definitions["Domain"]["properties"]["when"]["propertyNames"] = {"enum": list(values)}
    definitions["Domain"] |= _one_form()
    space = {key: _domain(schema) for key, schema in values.items()}
    definitions["point"] = _mapping(values) | {"description": "A configuration: dotted keys and their values."}
    properties = search["properties"]
    properties["space"] |= _mapping(space)
    properties["baseline"] |= {"anyOf": [_ref("point"), {"type": "null"}]}
    several = {"type": "array", "items": _ref("point")}
    properties["enqueue"] = {key: value for key, value in properties["enqueue"].items() if key not in ("type", "items")}
    properties["enqueue"] |= {"anyOf": [several, {"const": "papers"}]}
    labelled = {
        section_keys.section: _ref(section_keys.section) for section_keys in keys.values() if section_keys.names
    }
    properties["alternatives"] |= _mapping(
        {section: {"type": "object", "additionalProperties": schema} for section, schema in labelled.items()}
    )
    del properties["alternatives"]["propertyNames"]
    metric = {"type": "string", "enum": [f"val/{name}" for name in metrics.searchable()]}
    properties["metric"]["anyOf"] = [metric, {"type": "array", "minItems": 1, "items": metric}]
    properties["time"]["anyOf"] = [DURATION, *properties["time"]["anyOf"]]
    resources = _plain(Resources.model_json_schema())
    resources["properties"]["gpu"]["maximum"] = 1  # see study.spec.load; a study that ran with more can be read
    resources["properties"]["hang"]["anyOf"] = [DURATION, *resources["properties"]["hang"]["anyOf"]]
    return definitions | {"Search": search, "Resources": resources}


def _domain(values: Schema) -> Schema:
    """The entry in `search.space` of a key that can have these values."""
    choices = {"properties": {"choices": {"items": values}}}
    return {"anyOf": [values, {"const": "paper"}, {"allOf": [_ref("Domain"), choices]}]}


def _one_form() -> Schema:
    """A domain has choices, or a range."""
    numbers = [_with_key(key, {"type": "number"}) for key in ("low", "high", "step")]
    parts = [*numbers, _with_key("log", {"const": True}), _with_key("range", {"const": "paper"})]
    choices = _with_key("choices", {"type": "array"})
    ends = {"allOf": [_with_key("low", {"type": "number"}), _with_key("high", {"type": "number"})]}
    ranges = {"not": choices, "anyOf": [ends, _with_key("range", {"const": "paper"})]}
    return {"anyOf": [{"allOf": [choices, {"not": {"anyOf": parts}}]}, ranges]}


def _with_key(key: str, value: Schema) -> Schema:
    return {"required": [key], "properties": {key: value}}


def _profiles(keys: dict[str, Keys], definitions: dict[str, Schema]) -> Schema:
    """Blocks of overrides: every key of every section, and of the search at any depth."""
    blocks = {section: _ref(section) for section in keys}
    blocks |= {
        f"{section_keys.section}.{key}": _ref(_any(f"{section_keys.section}.{key}"))
        for section_keys in keys.values()
        for key in section_keys.keys
    }
    blocks |= {
        f"{section_keys.section}.name": {"enum": section_keys.names}
        for section_keys in keys.values()
        if section_keys.names
    }
    models = {"search": "Search", "resources": "Resources", "notify": "Notify"}
    blocks |= {"name": {"type": "string"}, **{section: _ref(model) for section, model in models.items()}}
    for section, model in models.items():
        for key, schema in definitions[model]["properties"].items():
            blocks[f"{section}.{key}"] = _ref(f"{model}/properties/{key}")
            below = schema.get("$ref", "").removeprefix("#/$defs/")
            inner = definitions.get(below, {}).get("properties", {})
            blocks |= {f"{section}.{key}.{name}": _ref(f"{below}/properties/{name}") for name in inner}
    deeper = {r"^search\.(space|baseline|alternatives|plateau|stop)\.": True}
    block = _mapping(blocks) | {"patternProperties": deeper}
    return {"type": ["object", "null"], "additionalProperties": block}


def _ref(definition: str) -> Schema:
    return {"$ref": f"#/$defs/{definition}"}


def _any(key: str) -> str:
    """The name of the definition of all that a dotted key can be, whatever `name` its section has."""
    return f"{key}:any"


def _mapping(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _plain(node: Any) -> Any:
    """A pydantic schema without titles, and with descriptions of keys from the model's docstring."""
    if isinstance(node, list):
        return [_plain(child) for child in node]
    if not isinstance(node, dict):
        return node
    cleaned: dict[str, Any] = {
        key: {name: _plain(child) for name, child in value.items()} if key in ("properties", "$defs") else _plain(value)
        for key, value in node.items()
        if key != "title"
    }
    if "description" in cleaned:
        cleaned["description"] = " ".join(cleaned["description"].split())
        for key, schema in cleaned.get("properties", {}).items():
            if words := _sentence_about(cleaned["description"], key):
                schema.setdefault("description", words)
    return cleaned


def _sentence_about(docstring: str, key: str) -> str | None:
    """The sentence that quotes a key."""
    sentences = re.split(r"(?<=[.;:]) (?=`|[A-Z])", docstring)
    return next((sentence.rstrip(";:") for sentence in sentences if f"`{key}`" in sentence), None)


def _shared(definitions: dict[str, Schema]) -> dict[str, Schema]:
    """The definitions, with schemas of a key that several sections share written once."""
    shared: dict[str, Schema] = {}
    for label, definition in definitions.items():
        section, _, name = label.partition(":")
        if not name or name == "any":
            shared[label] = definition
            continue
        refs = {}
        for key, key_schema in definition["properties"].items():
            if key == "name":
                refs[key] = key_schema
                continue
            fitting = (at for at in _places(f"{section}.{key}") if shared.get(at, key_schema) == key_schema)
            place = next(fitting)
            shared[place] = key_schema
            refs[key] = _ref(place)
        shared[label] = {**definition, "properties": refs}
    return shared


def _places(key: str) -> Iterable[str]:
    yield key
    yield from (f"{key}.{number}" for number in range(2, 1000))
