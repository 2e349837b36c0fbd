"""The JSON Schema of study files, by which editors complete and check them.

It is pydantic's, of the models that check a study file (`study.spec.schema`) and of such models of each section, made
from the catalogues. What depends on several keys at once (a method that does not suit the data, a metric that the data
lack) only `study plan` checks.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, Union, get_origin

from pydantic import BaseModel, Field, GetJsonSchemaHandler, create_model
from pydantic.json_schema import models_json_schema
from typing_extensions import TypeAliasType

from study import metrics
from study.catalogue import APART
from study.knobs import Knob
from study.methods import OWN
from study.spec.checks import STRICT, checked, one_of
from study.spec.load import NAME_RULE
from study.spec.own_function import METRIC, OF_TRAIN
from study.spec.schema import Domain, Layout, Notify, Resources, Scalar, Search
from study.spec.search_checks import NEVER_SEARCHED
from study.spec.sections import CATALOGUES, section_knobs, train_knobs
from study.training.config import SECTIONS

Schema = dict[str, Any]

FILE = "study.schema.json"
"""Its name beside the shipped study files."""

ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
"""A key of a model and what its docstring says of it."""

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
}
UNION: Any = Union
MAPPING: Any = dict
LIST: Any = list
MODEL: Any = create_model
"""For types that are made at run time."""

FREE: Any = Field(default_factory=dict)
"""A key that can be left out, and whose default depends on others."""

KEY = r"[A-Za-z]\w*"
OWN_KEY = Annotated[str, Field(pattern=rf"^method\.{KEY}$")]
"""What can be searched in a study of the user's own function."""

IS_OWN: Schema = {
    "required": ["method"],
    "properties": {"method": {"type": "object", "required": ["name"], "properties": {"name": {"const": OWN}}}},
}
"""What tells such a file."""


def schema() -> Schema:
    """The schema, draft 2020-12, of the study files that this installation can read."""
    file, own = _file(), _own_file()
    _, found = models_json_schema([(file, "validation"), (own, "validation")])
    definitions: Schema = _plain(found)["$defs"]
    for name, definition in definitions.items():
        if name.endswith("Domain"):
            definition |= _one_form()
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A study file", "type": "object"}
    return head | {"if": IS_OWN, "then": _ref("own_file"), "else": _ref("file"), "$defs": definitions}


def text() -> str:
    """The schema as text, a line per definition."""
    document = schema()
    definitions = document.pop("$defs")
    lines = [f"  {json.dumps(name)}: {json.dumps(definition)}" for name, definition in definitions.items()]
    body = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in document.items()]
    return "\n".join(["{", *body, ' "$defs": {', ",\n".join(lines), " }", "}", ""])


def declared(section: str, name: str = "") -> dict[str, list[Knob]]:
    """Return what each key of a section may be, whatever its other keys say: follows each name of a key that changes
    which keys there are."""
    start = {"name": name} if name else {}
    waiting, seen = [start], {frozenset(start.items())}
    found: dict[str, list[Knob]] = {}
    while waiting:
        values = waiting.pop(0)
        knobs = section_knobs(section, values)
        for knob in knobs.values():
            if knob not in (known := found.setdefault(knob.key, [])):
                known.append(knob)
        for key, other_name in ((key, other) for key, knob in knobs.items() for other in knob.names):
            other = {**values, key: other_name}
            chosen = frozenset(other.items())
            if other_name != knobs[key].default and chosen not in seen:
                seen.add(chosen)
                if section_knobs(section, other) != knobs:
                    waiting.append(other)
    return found


def names(section: str) -> list[str]:
    """Return what the `name` of a section can be; entries of other distributions that cannot be used are left out."""
    catalogue = CATALOGUES[section]
    return [name for name in catalogue.names() if catalogue.problem(name) is None]


def _file() -> Any:
    """The model of a study file."""
    sections, values, searchable = dict[str, Any](), dict[str, Any](), dict[str, Any]()
    for section in SECTIONS:
        by_name = {name: declared(section, name) for name in names(section)} if section in CATALOGUES else {}
        models = [_section(section, keys, name) for name, keys in by_name.items()] or [
            _section("train", declared("train"))
        ]
        sections[section] = Annotated[UNION[tuple(models)], Field(discriminator="name")] if by_name else models[0]
        together: dict[str, list[Knob]] = {}
        for keys in by_name.values() if by_name else [declared(section)]:
            for key, knobs in keys.items():
                together.setdefault(key, []).extend(knobs)
        for key, knobs in together.items():
            values[f"{section}.{key}"] = TypeAliasType(f"{section}_{key}", _type(knobs))
            if f"{section}.{key}" not in NEVER_SEARCHED and any(map(_is_scalar, knobs)):
                searchable[f"{section}.{key}"] = values[f"{section}.{key}"]
        if by_name:
            values[f"{section}.name"] = one_of(by_name)
            label = Annotated[str, Field(description="A label of search.alternatives.")]
            searchable[f"{section}.name"] = TypeAliasType(f"{section}_name", one_of(by_name) | label)
    domain = MODEL(
        "Domain", __base__=Domain, __doc__=Domain.__doc__, when=(MAPPING[one_of(searchable), list[Scalar]], FREE)
    )
    space = {key: Annotated[kind | Literal["paper"] | domain, _Choices()] for key, kind in searchable.items()}
    point = _optional("point", searchable)
    alternatives = {section: MAPPING[str, sections[section]] for section in CATALOGUES}
    metric = one_of(f"val/{name}" for name in metrics.searchable())
    search = _search("Search", _optional("space", space), point, metric, LIST[point] | Literal["papers"])
    search = MODEL(
        "Search", __base__=search, __doc__=search.__doc__, alternatives=(_optional("alternatives", alternatives), FREE)
    )
    resources = _resources()
    blocks = {"name": str, "search": search, "resources": resources, "notify": Notify} | sections | values
    for section, model in {"search": search, "resources": resources, "notify": Notify}.items():
        blocks |= dict(_flat(model, section))
    deeper = {r"^search\.(space|baseline|alternatives|plateau|stop)\.": True}
    profile = _optional("profile", blocks, json_schema_extra={"patternProperties": deeper})
    described = {section: _told(kind, section) for section, kind in sections.items()}
    return _layout("file", search, resources, MAPPING[str, profile | None] | None, described)


def _own_file() -> Any:
    """The model of a study file that runs a training function of the user's own: its keys are the function's."""
    domain = MODEL("own_Domain", __base__=Domain, __doc__=Domain.__doc__, when=(dict[OWN_KEY, list[Scalar]], FREE))
    alone = Field(json_schema_extra={"additionalProperties": False})
    space, point = (Annotated[MAPPING[OWN_KEY, kind], alone] for kind in (Scalar | domain, Scalar))
    metric = Annotated[str, Field(pattern=f"^{METRIC.pattern}$")]
    search = _search("own_Search", space, point, metric, LIST[point])
    named = {
        section: MODEL(f"own_{section}", __config__=STRICT, name=(one_of([APART[f"study.{room}"]]), ...))
        for section, room in (("data", "data"), ("model", "models"))
    }
    function = Annotated[str, Field(pattern=r"^[\w.]+:[\w.]+$", description="The training function, as MODULE:NAME.")]
    keys = {"patternProperties": {f"^{KEY}$": {"type": ["boolean", "integer", "number", "string", "null"]}}}
    config = {**STRICT, "json_schema_extra": keys}
    method = MODEL("own_method", __config__=config, name=(Literal[OWN], ...), function=(function, ...))
    train = _section("own_train", {key: [train_knobs()[key]] for key in OF_TRAIN})
    sections = {
        "data": (named["data"], FREE),
        "model": (named["model"], FREE),
        "method": (method, ...),
        "train": (train, FREE),
    }
    base = _layout("own_base", search, _resources(), dict[str, dict[str, Any] | None] | None, {})
    return MODEL("own_file", __base__=base, **sections)


def _layout(title: str, search: Any, resources: Any, profiles: Any, sections: Mapping[str, Any]) -> Any:
    name = Annotated[str, Field(pattern=f"^{NAME_RULE.pattern}$", description=WORDS["name"])]
    fields: dict[str, Any] = {key: (kind, FREE if key == "train" else ...) for key, kind in sections.items()}
    fields |= {"name": (name, ...), "search": (search, FREE), "resources": (resources, FREE)}
    fields["profiles"] = _told(profiles, "profiles"), FREE
    for key in ("final_seeds", "origin"):
        fields[key] = _told(Layout.model_fields[key].annotation, key), None
    return MODEL(title, __base__=Layout, **fields)


def _told(kind: Any, key: str) -> Any:
    return Annotated[kind, Field(description=WORDS[key])]


def _search(title: str, space: Any, point: Any, metric: Any, enqueue: Any) -> Any:
    """The model of the section `search` with what it may give to trials, and a trial of it."""
    several = Annotated[LIST[metric], Field(min_length=1)]
    time = Search.model_fields["time"].rebuild_annotation()
    given = {
        "space": (space, FREE),
        "baseline": (point | None, None),
        "enqueue": (enqueue, FREE),
        "metric": (metric | several, Search.model_fields["metric"].default),
        "time": (Duration | time, None),
    }
    return MODEL(title, __base__=Search, __doc__=Search.__doc__, **given)


def _resources() -> Any:
    """With what a study can ask for today: one that ran with more can be read."""
    hang = Resources.model_fields["hang"].rebuild_annotation()
    gpu = Annotated[float, Field(ge=0, le=1)]
    return MODEL("Resources", __base__=Resources, __doc__=Resources.__doc__, gpu=(gpu, 0), hang=(Duration | hang, None))


def _section(section: str, keys: Mapping[str, list[Knob]], name: str = "") -> Any:
    """The model of a section, or of what it is with a name."""
    fields: dict[str, Any] = {"name": (one_of([name]), ...)} if name else {}
    for key, knobs in keys.items():
        defaults = [knob.default for knob in knobs]
        plain = list(defaults[0]) if isinstance(defaults[0], tuple) else defaults[0]
        default = FREE if key == "threads" or any(one != defaults[0] for one in defaults) else plain
        fields[key] = _type(knobs), ... if any(knob.required for knob in knobs) else default
    return MODEL(f"{section}_{name}" if name else section, __config__=STRICT, **fields)


def _type(knobs: Iterable[Knob]) -> Any:
    """All that a key can be."""
    kinds = UNION[tuple(dict.fromkeys(checked(knob.type) for knob in knobs))]
    return Annotated[kinds, Field(description=next((knob.about for knob in knobs if knob.about), None))]


def _is_scalar(knob: Knob) -> bool:
    """Return whether a search can give the key a value: not where only lists are allowed."""
    return any(get_origin(kind) not in (tuple, list) for kind in knob.kinds)


def _optional(title: str, fields: Mapping[str, Any], **config: Any) -> Any:
    """A model of keys none of which has to be given."""
    return MODEL(title, __config__={**STRICT, **config}, **{key: (kind, FREE) for key, kind in fields.items()})


def _flat(model: type[BaseModel], at: str) -> Iterator[tuple[str, Any]]:
    """The keys of a model, at any depth, with dots."""
    for name, field in model.model_fields.items():
        key = f"{at}.{field.alias or name}"
        yield key, field.rebuild_annotation()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _flat(field.annotation, key)


class _Choices:
    """The forms of a key in `search.space`: the choices of its domain are values of it."""

    def __get_pydantic_json_schema__(self, core: Any, handler: GetJsonSchemaHandler) -> Schema:
        found = handler(core)
        value, paper, domain = found["anyOf"]
        return {"anyOf": [value, paper, {"allOf": [domain, {"properties": {"choices": {"items": value}}}]}]}


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


def _ref(definition: str) -> Schema:
    return {"$ref": f"#/$defs/{definition}"}


def _plain(node: Any) -> Any:
    """A pydantic schema without titles, and with descriptions of keys from the model's docstring."""
    if isinstance(node, list):
        return [_plain(child) for child in node]
    if isinstance(node, float) and node.is_integer():  # 0 and 0.0 are one bound to `typing`, which keeps the first
        return int(node)
    if not isinstance(node, dict):
        return node
    cleaned: dict[str, Any] = {
        key: {name: _plain(child) for name, child in value.items()} if key in ("properties", "$defs") else _plain(value)
        for key, value in node.items()
        if key != "title"
    }
    if "description" in cleaned:
        head, _, block = cleaned["description"].partition("\nAttributes:\n")
        cleaned["description"] = " ".join(head.split())
        words = {key: " ".join(text.split()) for key, text in ATTRIBUTE.findall(block)}
        for key, schema in cleaned.get("properties", {}).items():
            if key in words:
                schema.setdefault("description", words[key].rstrip("."))
    return cleaned
