"""Check a section against the declarations of its keys, and say what is wrong with each key in the user's words."""

import re
from collections.abc import Callable, Container, Mapping
from typing import TypeGuard, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from study import data, methods, models
from study.catalogue import Catalogue
from study.errors import KEYS_COMMAND, NAMES_COMMAND, UserError, closest_spellings, suggest_or_list
from study.knobs import Knob, Params, Section, Value, read_knobs
from study.spec.schema import SearchOptions, TrialResources
from study.spec.section_models import make_section_model
from study.spec.yaml_document import KeyPath, YamlDocument
from study.text import shorten_text
from study.training.config import TrainOptions

UNION_BRANCH_PATTERN = re.compile(r"\[key\]|constrained-\w+|list\[.+\]")
"""Matches parts of an error's location that are not keys: pydantic's marks of a mapping's key or a union's branch."""


SectionModel = TypeVar("SectionModel", bound=BaseModel)

MAX_PROBLEM_LINES, MAX_PROBLEM_CHARACTERS = 40, 4000
"""Most problems in one message, and most characters about each."""


class ProblemCollector:
    """Collects what is wrong with a document, so that the user sees all of it at once.

    Attributes:
        keys: where something is wrong.
    """

    def __init__(self, document: YamlDocument) -> None:
        self._document = document
        self.keys: list[KeyPath] = []
        self._lines: dict[str, None] = {}

    def add_problem(self, key: KeyPath, message: str) -> None:
        """Add what is wrong with a key."""
        message = shorten_text(message.replace("\n", " "), MAX_PROBLEM_CHARACTERS)
        printable = "".join(char if char.isprintable() else repr(char)[1:-1] for char in message)
        self.keys.append(key)
        self._lines[f"{self._document.key_location(key)}: {'.'.join(map(_quote_key_part, key))}: {printable}"] = None

    def is_dotted(self, key: KeyPath) -> bool:
        """Return whether the user typed this key as `section.key`."""
        return key in self._document.dotted_keys

    def raise_if_any(self) -> None:
        """Raise the problems as one UserError, if there are any."""
        if not self._lines:
            return
        lines = list(self._lines)
        if more := lines[MAX_PROBLEM_LINES:]:
            lines = [*lines[:MAX_PROBLEM_LINES], f"{self._document.source}: and {len(more)} more problems"]
        raise UserError("\n".join(lines))


class TrialProblemCollector(ProblemCollector):
    """Problems of trials with certain parameters, which each message names; `problems` collects them."""

    def __init__(self, problems: ProblemCollector, params: Params) -> None:
        self._problems, self._note = problems, f"with {format_params(params)}: " if params else ""

    def add_problem(self, key: KeyPath, message: str) -> None:
        self._problems.add_problem(key, f"{self._note}{message}")

    def is_dotted(self, key: KeyPath) -> bool:
        return self._problems.is_dotted(key)


def _quote_key_part(part: str) -> str:
    """Return a part of a key, quoted where it would break a message's line."""
    part = shorten_text(part)
    return part if part and part.isprintable() else repr(part)


def format_params(params: Params) -> str:
    """Return parameters and their values as messages name them."""
    return ", ".join(f"{key} {quote_value(value)}" for key, value in params.items())


def quote_value(value: Value) -> str:
    """Return a value as messages quote it."""
    return shorten_text(repr(value))


def fault_of_value(knob: Knob, value: Value) -> str | None:
    """Return what is wrong with a value of a hyperparameter; None if it is allowed."""
    model = make_section_model("value", [knob])
    try:
        model.model_validate({knob.key: value})
    except ValidationError as error:
        return _join_messages([_explain_error(model, detail, (knob.key,)) for detail in error.errors()])
    return None


def validate_section_as(
    model: type[SectionModel], values: Section, at: KeyPath, problems: ProblemCollector
) -> SectionModel | None:
    """Return a section as its model, with defaults filled in; None if something is wrong."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        explained: dict[KeyPath, list[str]] = {}
        for detail in error.errors():
            key = (*at, *_error_key(detail["loc"]))
            explained.setdefault(key, []).append(_explain_error(model, detail, key, values, problems.is_dotted(key)))
        for key, messages in explained.items():
            message, example = _join_messages(messages), EXAMPLES_BY_KEY.get(".".join(key))
            shown = f", as {example}" if example and message.endswith(ENDINGS_BEFORE_EXAMPLE) else ""
            problems.add_problem(key, f"{message}{shown}")
        return None


def validate_section(
    model: type[BaseModel], values: Section, at: KeyPath, problems: ProblemCollector
) -> dict[str, Value] | None:
    """Validate a section, and return it with defaults filled in; None if something is wrong."""
    found = validate_section_as(model, values, at, problems)
    return None if found is None else found.model_dump()


def _error_key(location: tuple[int | str, ...]) -> KeyPath:
    """Return the key of a validation error's location, without the union's branch that the error is from."""
    last = str(location[-1])
    branch = len(location) > 1 and (last in ("bool", "int", "float", "str", "none") or last.startswith("literal["))
    parts = (str(part) for part in (location[:-1] if branch else location))
    return tuple(part for part in parts if not UNION_BRANCH_PATTERN.fullmatch(part))


def _join_messages(messages: list[str]) -> str:
    """Join the messages about one key: a union has one per branch, `X given, allowed is Y`; words have `Allowed: Y`."""
    first, *others = messages
    return " or ".join([first, *(re.split(" allowed is | Allowed: ", other, maxsplit=1)[-1] for other in others)])


def _explain_error(
    model: type[BaseModel],
    detail: ErrorDetails,
    key: KeyPath,
    section: Section | None = None,
    is_dotted: bool = False,
) -> str:
    """Return what is wrong with a key, in a section with certain values if it is in one.

    Args:
        is_dotted: whether it was typed as `section.key`; what is proposed is then typed so as well.
    """
    kind, value = detail["type"], detail["input"]
    if kind == "extra_forbidden":
        if len(key) == 1 and (dotted := dotted_keys_ending_in(key[0])):
            meant = [name if is_dotted else "{0}: {{{2}: ...}}".format(*name.partition(".")) for name in dotted]
            return f"unknown key. Did you mean {' or '.join(map(repr, meant) if is_dotted else meant)}?"
        if bringing := _values_enabling_key_text(key, section or {}):
            return f"unknown key: it comes with {bringing}"
        valid = _valid_keys_at(model, detail["loc"][:-1])
        before = "".join(f"{part}." for part in key[:-1]) if is_dotted else ""
        allowed = suggest_or_list(key[-1], valid, "Allowed here", KEYS_COMMAND, before)
        return f"unknown key. {allowed}{_names_with_key_hint(key)}"
    if kind == "missing":
        return "is missing"
    if kind == "literal_error":
        allowed = str(detail.get("ctx", {})["expected"])
        names = allowed.replace(" or ", ", ").replace("'", "").split(", ")
        if key[-1] == "name" and "method" in key and (name := name_beside_fair_kl(str(value))):
            at = ".".join(key[:-1])
            return f"{quote_value(value)} given. Did you mean {at}.name={name} with {at}.regulariser=fair_kl?"
        command = NAMES_COMMAND if key[-1] == "name" else KEYS_COMMAND
        return f"{quote_value(value)} given. {suggest_or_list(str(value), names, command=command)}"
    message = detail["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    message = message.replace("a valid dictionary", "a mapping of keys to values")
    message = message.replace("a valid integer", "a whole number").replace("a valid number", "a number")
    message = message.replace("a valid string", "a text")
    shown = "" if ".".join(key) in EXAMPLES_BY_KEY or not isinstance(value, str) else f", as [{value!r}]"
    message = message.replace("a valid list", f"a list{shown}")
    message = re.sub(r"List should have (at .*) after validation, not \d+", r"\1", message)
    message = re.sub(r" or instance of \w+$", "", message.replace("a valid boolean", "true or false"))
    if isinstance(value, dict | list) and kind == "value_error":
        return message
    return f"{quote_value(value)} given, {message if kind == 'value_error' else 'allowed is ' + message}"


def name_beside_fair_kl(given: str) -> str | None:
    """Return the method that a name with FairKL means, as `fairkl` or `sup_con+fair_kl`; None: it means no such one."""
    known = [*methods.method_names(), *names_with_fair_kl()]
    name, plus, _ = next(iter(closest_spellings(given, known)), "").partition("+")
    return name if plus else None


def names_with_fair_kl() -> list[str]:
    """Return `NAME+fair_kl` for each method that FairKL can be beside."""
    return [f"{name}+fair_kl" for name in _names_with_key("method", "regulariser")]


def _values_enabling_key_text(key: KeyPath, section: Section) -> str:
    """Return which other value of a key of the same section would bring a key that the section lacks; else nothing."""
    if len(key) != 2 or key[0] not in ("model", "method") or not isinstance(section.get("name"), str):
        return ""
    declared = methods.method_knobs if key[0] == "method" else models.model_knobs
    knobs = declared(section)
    found = []
    for knob in knobs.values():
        allowed = [value for value in knob.choices if value != section.get(knob.key, knob.default)]
        if bringing := [value for value in allowed if key[1] in declared({**section, knob.key: value})]:
            found.append(f"{key[0]}.{knob.key}: {' or '.join(map(str, bringing))}")
    return ", or with ".join(found)


EXAMPLES_BY_KEY = {
    "search.alternatives": "{method: {dcl: {name: debiased_info_nce}}}",
    "search.baseline": "{method.alpha: 0.0}",
    "search.confirm": "{top: 3, seeds: 5}",
    "search.constraints": "['val/equalized_odds <= 0.05']",
    "search.early_stopping": "{name: asha, grace: 4}",
    "search.enqueue": "[{method.alpha: 0.1}]",
    "search.metric": "val/accuracy or [val/accuracy, val/equalized_odds]",
    "search.references": "[logistic_regression]",
    "search.space": "{method.alpha: {low: 0.01, high: 1.0, log: true}}",
    "search.time": "2h or 90m",
    "train.lr_milestones": "[0.5, 0.75]",
}
"""An example of each value whose form a user would not guess, for the message about another."""

ENDINGS_BEFORE_EXAMPLE = ("a list", "a mapping of keys to values", "a number", "a text")
"""What a message ends with that an example follows."""


def _names_with_key_hint(key: KeyPath) -> str:
    """Return which other networks, methods or data sets have a key of their section that the chosen one lacks."""
    if len(key) != 2 or key[0] not in CATALOGUES_AND_KEYS:
        return ""
    having = _names_with_key(*key)
    return f". {key[0]}.name with this key: {', '.join(having)}" if having else ""


CATALOGUES_AND_KEYS: Mapping[str, tuple[Catalogue, Callable[[str], Container[str]]]] = {
    "data": (data.CATALOGUE, lambda name: {knob.key for knob in data.data_knobs(name)}),
    "model": (models.CATALOGUE, lambda name: models.model_knobs({"name": name})),
    "method": (methods.CATALOGUE, lambda name: methods.method_knobs({"name": name})),
}
"""Names that a section can have, and the keys of each, by section."""


def _names_with_key(section: str, key: str) -> list[str]:
    """Return the usable names of a section that have a key."""
    catalogue, keys = CATALOGUES_AND_KEYS[section]
    usable = (name for name in catalogue.listed_names() if catalogue.why_unusable(name) is None)
    return [name for name in usable if key in keys(name)]


def dotted_keys_ending_in(name: str) -> list[str]:
    """Return the keys of a study file that end with the last part of a name, of any data set, network and method."""
    name = name.rpartition(".")[2]
    declared = {
        "train": {knob.key for knob in read_knobs(TrainOptions)},
        "search": SearchOptions.model_fields,
        "resources": TrialResources.model_fields,
    }
    sections = [section for section, keys in declared.items() if name in keys]
    sections += [section for section in CATALOGUES_AND_KEYS if _names_with_key(section, name)]
    return [f"{section}.{name}" for section in sections]


def _valid_keys_at(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Return the valid keys of the nested model at the location of a validation error."""
    current: object = model
    for part in location:
        if _is_model(current):
            if part not in current.model_fields:
                continue  # a union's tag
            current = current.model_fields[str(part)].annotation
        candidates = [current, *get_args(current), *(inner for arg in get_args(current) for inner in get_args(arg))]
        current = next(filter(_is_model, candidates), current)
    return list(current.model_fields) if _is_model(current) else []


def _is_model(kind: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
