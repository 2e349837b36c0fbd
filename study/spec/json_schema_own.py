"""The JSON Schema of a study file that runs a training function of the user's own: its keys are the function's."""

import copy

from study.catalogue import APART
from study.methods import OWN
from study.spec.json_schema_keys import Schema
from study.spec.own_function import METRIC, OF_TRAIN

KEY = r"[A-Za-z]\w*"
SCALAR: Schema = {"type": ["boolean", "integer", "number", "string", "null"]}

IS_OWN: Schema = {
    "required": ["method"],
    "properties": {"method": {"type": "object", "required": ["name"], "properties": {"name": {"const": OWN}}}},
}
"""What tells such a file."""


def own_file(file: Schema, definitions: dict[str, Schema]) -> tuple[Schema, dict[str, Schema]]:
    """The schema of such a file, and the definitions that it needs.

    Args:
        file: the schema of any other.
        definitions: which that one has: `Search`, `Domain` and `train` among them.
    """
    search, domain = copy.deepcopy(definitions["Search"]), copy.deepcopy(definitions["Domain"])
    domain["properties"]["when"]["propertyNames"] = {"pattern": rf"^method\.{KEY}$"}
    point = {"type": "object", "patternProperties": {rf"^method\.{KEY}$": SCALAR}, "additionalProperties": False}
    searched = {"anyOf": [SCALAR, {"$ref": "#/$defs/own:Domain"}]}
    properties = search["properties"]
    properties["space"] = {**point, "patternProperties": {rf"^method\.{KEY}$": searched}}
    properties["baseline"] = {"anyOf": [point, {"type": "null"}]}
    properties["enqueue"] = {"type": "array", "items": point}
    metric = {"type": "string", "pattern": f"^{METRIC.pattern}$"}
    properties["metric"]["anyOf"] = [metric, {"type": "array", "minItems": 1, "items": metric}]
    del properties["alternatives"]
    own = dict(file["properties"])
    own |= {section: _named(APART[f"study.{room}"]) for section, room in (("data", "data"), ("model", "models"))}
    own["method"] = _named(OWN) | {"required": ["name", "function"], "patternProperties": {f"^{KEY}$": SCALAR}}
    own["method"]["properties"]["function"] = {
        "type": "string",
        "pattern": r"^[\w.]+:[\w.]+$",
        "description": "The training function, as MODULE:NAME.",
    }
    train = {key: definitions["train"]["properties"][key] for key in OF_TRAIN}
    own["train"] = {"type": "object", "properties": train, "additionalProperties": False}
    own["search"] = {"$ref": "#/$defs/own:Search"}
    own["profiles"] = {"type": ["object", "null"], "additionalProperties": {"type": ["object", "null"]}}
    needed = {**file, "properties": own, "required": ["name", "method"]}
    return needed, {"own:Search": search, "own:Domain": domain}


def _named(name: str) -> Schema:
    properties: Schema = {"name": {"const": name}}
    return {"type": "object", "required": ["name"], "properties": properties, "additionalProperties": False}
