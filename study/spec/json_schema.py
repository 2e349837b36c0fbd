"""The JSON Schema of study files, with which editors complete and check them.

It is made by pydantic from the models that check a study file (`study.spec.schema`), and from models of each section
that are made from the catalogues. Only `study plan` checks what depends on several keys at once (a method that does not
suit the data, a metric that the data lack, a range without its ends), profiles, and files that run a function of the
user's own.
"""

import json
from collections.abc import Iterable, Mapping
from types import GenericAlias
from typing import Annotated, Literal, get_origin

from pydantic import BaseModel, Field, GetJsonSchemaHandler, JsonValue
from pydantic.json_schema import JsonSchemaValue, models_json_schema
from pydantic_core import CoreSchema
from typing_extensions import TypeAliasType

from study import metrics
from study.knobs import Knob, descriptions_by_name
from study.methods import OWN_FUNCTION_NAME
from study.spec.domain import ChoiceValue, Domain
from study.spec.load import STUDY_NAME_PATTERN
from study.spec.paper_readings import ProtocolReading
from study.spec.schema import SearchOptions, StudyFileLayout, TrialResources
from study.spec.search_checks import INCUMBENT_MARK_KEY, UNSEARCHABLE_KEYS
from study.spec.section_models import (
    default_as_in_file,
    literal_type_of_names,
    make_model,
    type_with_range_checks,
    union_of_types,
)
from study.spec.trial_sections import SECTION_CATALOGUES, section_knobs
from study.spec.yaml_document import IGNORED_KEY_PREFIX
from study.training.config import TRIAL_SECTIONS

SCHEMA_FILE_NAME = "study.schema.json"
"""Name of the schema's file beside the shipped study files."""


DurationText = Annotated[str, Field(pattern=r"^(\d+(\.\d+)?[smhd])+$", examples=["90m", "1h30m"])]
SECTION_DESCRIPTIONS = {
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
DEPENDENT_DEFAULT: object = Field(default_factory=dict)
"""Default of a key that can be left out and whose default depends on others."""

OWN_FUNCTION_CONDITION: JsonSchemaValue = {
    "required": ["method"],
    "properties": {
        "method": {"type": "object", "required": ["name"], "properties": {"name": {"const": OWN_FUNCTION_NAME}}}
    },
}
"""Condition that a file runs a training function of the user's own, of whose keys nothing is known here."""


def study_file_schema() -> JsonSchemaValue:
    """Return the schema, draft 2020-12, of the study files that this installation can read."""
    _, found = models_json_schema([(_study_file_schema_model(), "validation")])
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A study file", "type": "object"}
    definitions = {name: _simplify_schema(definition) for name, definition in found["$defs"].items()}
    anchors = {"description": "A place for anchors, which says nothing."}
    definitions["file"]["patternProperties"] = {f"^{IGNORED_KEY_PREFIX}": anchors}
    return head | {"if": OWN_FUNCTION_CONDITION, "else": {"$ref": "#/$defs/file"}, "$defs": definitions}


def study_file_schema_text() -> str:
    """Return the schema as text, a line per definition."""
    document = study_file_schema()
    definitions = document.pop("$defs")
    lines = [f"  {json.dumps(name)}: {json.dumps(definition)}" for name, definition in definitions.items()]
    body = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in document.items()]
    return "\n".join(["{", *body, ' "$defs": {', ",\n".join(lines), " }", "}", ""])


def possible_knobs_by_key(section: str, name: str = "") -> dict[str, list[Knob]]:
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
        for key, other_name in ((key, other) for key, knob in knobs.items() for other in knob.choices):
            other = {**values, key: other_name}
            chosen = frozenset(other.items())
            if other_name != knobs[key].default and chosen not in seen:
                seen.add(chosen)
                if (others := section_knobs(section, other)) != knobs:  # else its keys are known
                    waiting.append((other, others))
    return found


def names_of_section(section: str) -> list[str]:
    """Return the values of a section's `name`; entries of other distributions that cannot be used are left out."""
    catalogue = SECTION_CATALOGUES[section]
    return [name for name in catalogue.listed_names() if catalogue.why_unusable(name) is None]


def _study_file_schema_model() -> type[BaseModel]:
    """Make the model of a study file."""
    sections, searchable = dict[str, object](), dict[str, object]()
    for section in TRIAL_SECTIONS:
        names = names_of_section(section) if section in SECTION_CATALOGUES else []
        by_name = {name: possible_knobs_by_key(section, name) for name in names}
        forms = by_name or {"": possible_knobs_by_key(section)}
        models = [_section_schema_model(section, keys, name) for name, keys in forms.items()]
        sections[section] = Annotated[union_of_types(models), Field(discriminator="name")] if by_name else models[0]
        together: dict[str, list[Knob]] = {}
        for key, knobs in (item for keys in forms.values() for item in keys.items()):
            together.setdefault(key, []).extend(knobs)
        for key, knobs in together.items():
            if f"{section}.{key}" not in UNSEARCHABLE_KEYS and any(map(_takes_scalar, knobs)):
                searchable[f"{section}.{key}"] = TypeAliasType(f"{section}_{key}", _knobs_type(knobs))
        if by_name:
            label = Annotated[str, Field(description="A label of search.alternatives.")]
            kinds = union_of_types([literal_type_of_names(by_name), label])
            searchable[f"{section}.name"] = TypeAliasType(f"{section}_name", kinds)
    when = GenericAlias(dict, (literal_type_of_names(searchable), list[ChoiceValue]))
    domain = make_model("Domain", {"when": (when, DEPENDENT_DEFAULT)}, Domain, Domain.__doc__)
    space = {
        key: Annotated[union_of_types([kind, Literal["paper"], domain]), _DomainSchemaForms()]
        for key, kind in searchable.items()
    }
    alternatives = {section: GenericAlias(dict, (str, sections[section])) for section in SECTION_CATALOGUES}
    search = _search_schema_model(
        _optional_keys_model("space", space),
        _optional_keys_model("point", searchable),
        _optional_keys_model("given", {**searchable, INCUMBENT_MARK_KEY: bool}),
        _optional_keys_model("alternatives", alternatives),
    )
    fields: dict[str, tuple[object, object]] = {
        section: (_with_description(kind, section), DEPENDENT_DEFAULT if section == "train" else ...)
        for section, kind in sections.items()
    }
    name = Annotated[str, Field(pattern=f"^{STUDY_NAME_PATTERN.pattern}$", description=SECTION_DESCRIPTIONS["name"])]
    fields |= {"name": (name, ...), "search": (search, DEPENDENT_DEFAULT)}
    fields["resources"] = _resources_schema_model(), DEPENDENT_DEFAULT
    fields["profiles"] = _with_description(dict[str, dict[str, object] | None] | None, "profiles"), DEPENDENT_DEFAULT
    fields["readings"] = _with_description(dict[str, ProtocolReading], "readings"), DEPENDENT_DEFAULT
    for key in ("final_seeds", "origin"):
        fields[key] = _with_description(StudyFileLayout.model_fields[key].annotation, key), None
    return make_model("file", fields, StudyFileLayout)


def _with_description(kind: object, key: str) -> object:
    return Annotated[kind, Field(description=SECTION_DESCRIPTIONS[key])]


def _search_schema_model(
    space: type[BaseModel], point: type[BaseModel], marked: type[BaseModel], alternatives: type[BaseModel]
) -> type[BaseModel]:
    """Make the model of the section `search`.

    Args:
        space: what it may search.
        point, marked: a configuration, and one with its mark.
    """
    metric = literal_type_of_names(f"val/{name}" for name in metrics.searchable_metrics())
    metric_lists = GenericAlias(list, (metric,))
    time = SearchOptions.model_fields["time"].rebuild_annotation()
    given: dict[str, tuple[object, object]] = {
        "space": (space, DEPENDENT_DEFAULT),
        "alternatives": (alternatives, DEPENDENT_DEFAULT),
        "baseline": (marked | None, None),
        "enqueue": (GenericAlias(list, (marked,)) | Literal["papers"], DEPENDENT_DEFAULT),
        "incumbents": (GenericAlias(list, (point,)), DEPENDENT_DEFAULT),
        "metric": (
            union_of_types([metric, Annotated[(metric_lists, Field(min_length=1))]]),
            SearchOptions.model_fields["metric"].default,
        ),
        "time": (union_of_types([DurationText, time]), None),
    }
    return make_model("Search", given, SearchOptions, SearchOptions.__doc__)


def _resources_schema_model() -> type[BaseModel]:
    """Make the model of what a new study can ask for: a study that ran with more can still be read."""
    hang = TrialResources.model_fields["hang"].rebuild_annotation()
    gpu = Annotated[float, Field(ge=0, le=1)]
    fields: dict[str, tuple[object, object]] = {"gpu": (gpu, 0), "hang": (union_of_types([DurationText, hang]), None)}
    return make_model("Resources", fields, TrialResources, TrialResources.__doc__)


def _section_schema_model(section: str, keys: Mapping[str, list[Knob]], name: str = "") -> type[BaseModel]:
    """Make the model of a section, or of the section with one `name`."""
    fields: dict[str, tuple[object, object]] = {"name": (literal_type_of_names([name]), ...)} if name else {}
    for key, knobs in keys.items():
        defaults = [knob.default for knob in knobs]
        depends = key == "threads" or any(one != defaults[0] for one in defaults)
        default = DEPENDENT_DEFAULT if depends else default_as_in_file(defaults[0])
        fields[key] = _knobs_type(knobs), ... if any(knob.required for knob in knobs) else default
    return make_model(f"{section}_{name}" if name else section, fields)


def _knobs_type(knobs: Iterable[Knob]) -> object:
    """Return the type of all values that a key can have."""
    kinds = union_of_types(dict.fromkeys(type_with_range_checks(knob.type) for knob in knobs))
    return Annotated[kinds, Field(description=next((knob.description for knob in knobs if knob.description), None))]


def _takes_scalar(knob: Knob) -> bool:
    """Return whether a search can give the key a value: not where only lists are allowed."""
    return any(get_origin(kind) not in (tuple, list) for kind in knob.plain_types)


def _optional_keys_model(title: str, kinds: Mapping[str, object]) -> type[BaseModel]:
    """Make a model whose keys, of these types, can all be left out."""
    return make_model(title, {key: (kind, DEPENDENT_DEFAULT) for key, kind in kinds.items()})


class _DomainSchemaForms:
    """Forms of a key in `search.space`: the choices of its domain are values of it."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        found = handler(core)
        value, paper, domain = found["anyOf"]
        return {"anyOf": [value, paper, {"allOf": [domain, {"properties": {"choices": {"items": value}}}]}]}


def _simplify_schema(schema: JsonSchemaValue) -> JsonSchemaValue:
    """Return a pydantic schema without titles, and with descriptions of keys from the model's docstring."""
    cleaned: JsonSchemaValue = {}
    for key, value in schema.items():
        if key == "properties":
            cleaned[key] = {name: _simplify_schema(child) for name, child in value.items()}
        elif key != "title":
            cleaned[key] = _simplify_schema_value(value)
    if "description" in cleaned:
        head, _, block = cleaned["description"].partition("\nAttributes:\n")
        cleaned["description"] = " ".join(head.split())
        words = descriptions_by_name(block)
        for key, described in cleaned.get("properties", {}).items():
            if key in words:
                described.setdefault("description", words[key])
    return cleaned


def _simplify_schema_value(value: JsonValue) -> JsonValue:
    """Return a value of a schema, where a mapping is a schema itself."""
    if isinstance(value, list):
        return [_simplify_schema_value(child) for child in value]
    if isinstance(value, float) and value.is_integer():  # `typing` keeps the first of equal bounds, 0 or 0.0
        return int(value)
    return _simplify_schema(value) if isinstance(value, dict) else value
