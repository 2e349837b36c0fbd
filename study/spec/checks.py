"""Checks of a section against the declarations of its keys; pydantic's errors are put in the user's words."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import AllowInfNan, BaseModel, ConfigDict, ValidationError, create_model

from study.errors import UserError, nearest
from study.knobs import Knob, Range
from study.spec.document import Document, Key

BRANCH = re.compile(r"\[key\]|constrained-\w+|list\[.+\]")
"""Parts of an error's location that are not keys: pydantic's marks of a mapping's key or a union's branch."""

STRICT = ConfigDict(extra="forbid", strict=True, frozen=True)


class Problems:
    """Collects what is wrong with a document, so that the user sees all of it at once."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._lines: list[str] = []

    def add(self, key: Key, message: str) -> None:
        printable = "".join(char if char.isprintable() else repr(char)[1:-1] for char in message.replace("\n", " "))
        line = f"{self._document.place(key)}: {'.'.join(map(_key_part, key))}: {printable}"
        if line not in self._lines:
            self._lines.append(line)

    def raise_any(self) -> None:
        """Raise all problems as one UserError, if there are any."""
        if self._lines:
            raise UserError("\n".join(self._lines))


class Noted(Problems):
    """Problems of trials with these parameters: each message says so; `problems` finds the place and collects them."""

    def __init__(self, problems: Problems, params: Mapping[str, Any]) -> None:
        self._problems, self._note = problems, f"with {params_text(params)}: " if params else ""

    def add(self, key: Key, message: str) -> None:
        self._problems.add(key, f"{self._note}{message}")


def _key_part(part: str) -> str:
    """A part of a key, quoted where it would break a message's line."""
    return part if part and part.isprintable() else repr(part)


def params_text(params: Mapping[str, Any]) -> str:
    """Parameters and their values, as messages name them."""
    return ", ".join(f"{key} {value!r}" for key, value in params.items())


def fault(knob: Knob, value: Any) -> str | None:
    """What is wrong with a value of a hyperparameter; None if it is allowed."""
    model = section_model("value", [knob])
    try:
        model.model_validate({knob.key: value})
    except ValidationError as error:
        return _joined([_explain(model, dict(detail), (knob.key,)) for detail in error.errors()])
    return None


def check(model: type[BaseModel], values: Any, at: Key, problems: Problems) -> dict[str, Any] | None:
    """Validate a section; gives it with defaults filled in, or None if something is wrong."""
    try:
        return model.model_validate(values).model_dump(by_alias=True, exclude_none=False)
    except ValidationError as error:
        explained: dict[Key, list[str]] = {}
        for detail in error.errors():
            key = (*at, *_path(detail["loc"]))
            explained.setdefault(key, []).append(_explain(model, dict(detail), key))
        for key, messages in explained.items():
            problems.add(key, _joined(messages))
        return None


def section_model(title: str, knobs: Iterable[Knob], /, **fixed: Any) -> type[BaseModel]:
    """A model of a section whose keys are the given hyperparameters; `fixed` are further fields."""
    return _model(title, tuple(knobs), tuple(fixed.items()))


@lru_cache(1000)  # making a model takes longer than all the checks with it
def _model(title: str, knobs: tuple[Knob, ...], fixed: tuple[tuple[str, Any], ...]) -> type[BaseModel]:
    fields = {knob.key: (_checked(knob.type), ... if knob.required else _plain(knob.default)) for knob in knobs}
    return create_model(title, __config__=STRICT, **{**dict(fixed), **fields})


def one_of(names: Iterable[str]) -> Any:
    """The type of a key that takes one of these names."""
    return Literal[tuple(names)]


def _checked(hint: Any) -> Any:
    """A hyperparameter's type with its `Range` as checks of the value."""
    if get_origin(hint) is Annotated:
        base, *notes = get_args(hint)
        ranges = [note for note in notes if isinstance(note, Range)]
        bounds = [bound for limits in ranges for bound in _bounds(limits)]
        finite = [AllowInfNan(False)] if base is float else []
        return Annotated[(base, *bounds, *finite)] if bounds or finite else base
    if get_origin(hint) in (Union, UnionType):
        return Union[tuple(_checked(part) for part in get_args(hint))]  # noqa: UP007 (built at run time)
    if get_origin(hint) is tuple:
        return list[_checked(get_args(hint)[0])]  # type: ignore[misc]
    return hint


def _bounds(limits: Range) -> Iterator[Ge | Le | Gt | Lt]:
    for bound, limit in ((Ge, limits.low), (Le, limits.high), (Gt, limits.above), (Lt, limits.below)):
        if limit is not None:
            yield bound(limit)


def _plain(default: Any) -> Any:
    return list(default) if isinstance(default, tuple) else default


def _path(location: tuple[int | str, ...]) -> Key:
    """The key of a validation error's location, without the union's branch that the error is from."""
    branch = len(location) > 1 and location[-1] in ("bool", "int", "float", "str", "none")
    parts = (str(part) for part in (location[:-1] if branch else location))
    return tuple(part for part in parts if not BRANCH.fullmatch(part))


def _joined(messages: list[str]) -> str:
    """The messages about one key as one: a union has one per branch, `X given, allowed is Y`."""
    first, *others = messages
    return " or ".join([first, *(other.partition(" allowed is ")[2] or other for other in others)])


def _explain(model: type[BaseModel], detail: Mapping[str, Any], key: Key) -> str:
    kind, value = detail["type"], detail["input"]
    if kind == "extra_forbidden":
        valid = _keys_at(model, detail["loc"][:-1])
        return f"unknown key. {nearest(key[-1], valid)}Allowed here: {', '.join(valid)}"
    if kind == "missing":
        return "is missing"
    if kind == "literal_error":
        allowed = detail["ctx"]["expected"]
        close = nearest(str(value), allowed.replace(" or ", ", ").replace("'", "").split(", "))
        return f"{value!r} given. {close}Allowed: {allowed}"
    message = detail["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    message = message.replace("a valid dictionary", "a mapping of keys to values")
    message = re.sub(r" or instance of \w+$", "", message)
    if isinstance(value, dict | list) and kind == "value_error":
        return message
    return f"{value!r} given, {message if kind == 'value_error' else 'allowed is ' + message}"


def _keys_at(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """The valid keys of the nested model at a place of a validation error."""
    current: Any = model
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


def _names(model: type[BaseModel]) -> dict[str, Any]:
    return {info.alias or name: info for name, info in model.model_fields.items()}
