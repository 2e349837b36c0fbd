"""Check a section against the declarations of its keys; pydantic's errors are put in the user's words."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import GenericAlias, UnionType
from typing import Annotated, Literal, TypeVar, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import AllowInfNan, BaseModel, ConfigDict, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from study import data, methods, models
from study.errors import UserError, nearest
from study.knobs import MAX_INTEGER, Knob, Params, Range, Section, Value
from study.spec.document import Document, Key
from study.text import shortened

BRANCH = re.compile(r"\[key\]|constrained-\w+|list\[.+\]")
"""Matches parts of an error's location that are not keys: pydantic's marks of a mapping's key or a union's branch."""

STRICT = ConfigDict(extra="forbid", strict=True, frozen=True)


class Strict(BaseModel):
    """Model that has no other keys, takes no value of another type, and is not changed."""

    model_config = STRICT


Model = TypeVar("Model", bound=BaseModel)

MAX_LINES, MAX_CHARACTERS = 40, 4000
"""Most problems in one message, and most characters about each."""


class Problems:
    """Collects what is wrong with a document, so that the user sees all of it at once.

    Attributes:
        keys: where something is wrong.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self.keys: list[Key] = []
        self._lines: dict[str, None] = {}

    def add(self, key: Key, message: str) -> None:
        """Add what is wrong with a key."""
        message = shortened(message.replace("\n", " "), MAX_CHARACTERS)
        printable = "".join(char if char.isprintable() else repr(char)[1:-1] for char in message)
        self.keys.append(key)
        self._lines[f"{self._document.place(key)}: {'.'.join(map(_key_part, key))}: {printable}"] = None

    def raise_any(self) -> None:
        """Raise the problems as one UserError, if there are any."""
        if not self._lines:
            return
        lines = list(self._lines)
        if more := lines[MAX_LINES:]:
            lines = [*lines[:MAX_LINES], f"{self._document.source}: and {len(more)} more problems"]
        raise UserError("\n".join(lines))


class Noted(Problems):
    """Problems of trials with certain parameters, which each message names; `problems` collects them."""

    def __init__(self, problems: Problems, params: Params) -> None:
        self._problems, self._note = problems, f"with {params_text(params)}: " if params else ""

    def add(self, key: Key, message: str) -> None:
        self._problems.add(key, f"{self._note}{message}")


def _key_part(part: str) -> str:
    """Return a part of a key, quoted where it would break a message's line."""
    part = shortened(part)
    return part if part and part.isprintable() else repr(part)


def params_text(params: Params) -> str:
    """Return parameters and their values as messages name them."""
    return ", ".join(f"{key} {shown(value)}" for key, value in params.items())


def shown(value: Value) -> str:
    """Return a value as messages quote it."""
    return shortened(repr(value))


def fault(knob: Knob, value: Value) -> str | None:
    """Return what is wrong with a value of a hyperparameter; None if it is allowed."""
    model = section_model("value", [knob])
    try:
        model.model_validate({knob.key: value})
    except ValidationError as error:
        return _joined([_explain(model, detail, (knob.key,)) for detail in error.errors()])
    return None


def validated(model: type[Model], values: Section, at: Key, problems: Problems) -> Model | None:
    """Return a section as its model, with defaults filled in; None if something is wrong."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        explained: dict[Key, list[str]] = {}
        for detail in error.errors():
            key = (*at, *_path(detail["loc"]))
            explained.setdefault(key, []).append(_explain(model, detail, key))
        for key, messages in explained.items():
            problems.add(key, _joined(messages))
        return None


def check(model: type[BaseModel], values: Section, at: Key, problems: Problems) -> dict[str, Value] | None:
    """Validate a section, and return it with defaults filled in; None if something is wrong."""
    found = validated(model, values, at, problems)
    return None if found is None else found.model_dump()


def section_model(title: str, knobs: Iterable[Knob], /, **fixed: object) -> type[BaseModel]:
    """Make a model of a section whose keys are the given hyperparameters; `fixed` are further fields."""
    return _model(title, tuple(knobs), tuple(fixed.items()))


@lru_cache(1000)  # making a model takes longer than all the checks with it
def _model(title: str, knobs: tuple[Knob, ...], fixed: tuple[tuple[str, object], ...]) -> type[BaseModel]:
    fields = {knob.key: (checked(knob.type), ... if knob.required else plain(knob.default)) for knob in knobs}
    return made_model(title, {**dict(fixed), **fields})


def made_model(
    title: str, fields: Mapping[str, object], base: type[BaseModel] = Strict, about: str | None = None
) -> type[BaseModel]:
    """Make a model at run time: of each key its type and its default, `...` where it has none."""
    return create_model(title, __base__=base, __doc__=about, **fields)  # type: ignore[call-overload]


def one_of(names: Iterable[str]) -> object:
    """Return the type of a key that takes one of these names."""
    return Literal[tuple(names)]


def any_of(kinds: Iterable[object]) -> object:
    """Return the union of types that are made at run time."""
    return Union[tuple(kinds)]  # noqa: UP007


def checked(hint: object) -> object:
    """Return a hyperparameter's type with its `Range` as checks of the value."""
    if get_origin(hint) is Annotated:
        base, *notes = get_args(hint)
        ranges = [note for note in notes if isinstance(note, Range)]
        bounds = _bounds(base, ranges)
        finite = [AllowInfNan(False)] if base is float else []
        return Annotated[(base, *bounds, *finite)] if bounds or finite else base
    if get_origin(hint) in (Union, UnionType):
        return any_of(map(checked, get_args(hint)))
    if get_origin(hint) is tuple:
        return GenericAlias(list, (checked(get_args(hint)[0]),))
    return Annotated[(int, *_bounds(int, ()))] if hint is int else hint


def _bounds(base: object, ranges: Iterable[Range]) -> list[Ge | Le | Gt | Lt]:
    """Return the bounds of a number's ranges; a whole number always has a lower and an upper bound."""
    bounds: list[Ge | Le | Gt | Lt] = [
        bound(limit)
        for limits in ranges
        for bound, limit in ((Ge, limits.low), (Le, limits.high), (Gt, limits.above), (Lt, limits.below))
        if limit is not None
    ]
    if base is int and not any(isinstance(bound, Ge | Gt) for bound in bounds):
        bounds.append(Ge(-MAX_INTEGER))
    if base is int and not any(isinstance(bound, Le | Lt) for bound in bounds):
        bounds.append(Le(MAX_INTEGER))
    return bounds


def plain(default: Value) -> Value:
    """Return a default as a study file has it."""
    return list(default) if isinstance(default, tuple) else default


def _path(location: tuple[int | str, ...]) -> Key:
    """Return the key of a validation error's location, without the union's branch that the error is from."""
    last = str(location[-1])
    branch = len(location) > 1 and (last in ("bool", "int", "float", "str", "none") or last.startswith("literal["))
    parts = (str(part) for part in (location[:-1] if branch else location))
    return tuple(part for part in parts if not BRANCH.fullmatch(part))


def _joined(messages: list[str]) -> str:
    """Join the messages about one key: a union has one per branch, `X given, allowed is Y`; words have `Allowed: Y`."""
    first, *others = messages
    return " or ".join([first, *(re.split(" allowed is | Allowed: ", other, maxsplit=1)[-1] for other in others)])


def _explain(model: type[BaseModel], detail: ErrorDetails, key: Key) -> str:
    kind, value = detail["type"], detail["input"]
    if kind == "extra_forbidden":
        valid = _keys_at(model, detail["loc"][:-1])
        return f"unknown key. {nearest(key[-1], valid)}Allowed here: {', '.join(valid)}{_elsewhere(key)}"
    if kind == "missing":
        return "is missing"
    if kind == "literal_error":
        allowed = str(detail.get("ctx", {})["expected"])
        close = nearest(str(value), allowed.replace(" or ", ", ").replace("'", "").split(", "))
        return f"{shown(value)} given. {close}Allowed: {allowed}"
    message = detail["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    message = message.replace("a valid dictionary", "a mapping of keys to values")
    message = re.sub(r" or instance of \w+$", "", message.replace("a valid boolean", "true or false"))
    if isinstance(value, dict | list) and kind == "value_error":
        return message
    return f"{shown(value)} given, {message if kind == 'value_error' else 'allowed is ' + message}"


def _elsewhere(key: Key) -> str:
    """Return which other networks, methods or data sets have a key of their section that the chosen one lacks."""
    if len(key) != 2 or key[0] not in ("data", "model", "method"):
        return ""
    having: list[str] = {"data": _data_sets_with, "model": _networks_with, "method": _methods_with}[key[0]](key[1])
    return f". {key[0]}.name with this key: {', '.join(having)}" if having else ""


def _data_sets_with(key: str) -> list[str]:
    return [name for name in data.names() if key in {knob.key for knob in data.data_knobs(name)}]


def _networks_with(key: str) -> list[str]:
    return [name for name in models.names() if key in models.model_knobs({"name": name})]


def _methods_with(key: str) -> list[str]:
    return [name for name in methods.names() if name != methods.OWN and key in methods.method_knobs({"name": name})]


def _keys_at(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Return the valid keys of the nested model at the location of a validation error."""
    current: object = model
    for part in location:
        if isinstance(current, type) and issubclass(current, BaseModel):
            if part not in _names(current):
                continue  # a union's tag
            current = _names(current)[str(part)].annotation
        candidates = [current, *get_args(current), *(inner for arg in get_args(current) for inner in get_args(arg))]
        current = next(
            (candidate for candidate in candidates if isinstance(candidate, type) and issubclass(candidate, BaseModel)),
            current,
        )
    return list(_names(current)) if isinstance(current, type) and issubclass(current, BaseModel) else []


def _names(model: type[BaseModel]) -> dict[str, FieldInfo]:
    return model.model_fields
