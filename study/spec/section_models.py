"""Sections of a study file as pydantic models, made from the declarations of their keys."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import GenericAlias, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import AllowInfNan, BaseModel, ConfigDict, create_model

from study.knobs import MAX_INTEGER, Knob, Range, Value

STRICT_CONFIG = ConfigDict(extra="forbid", strict=True, frozen=True)


class StrictModel(BaseModel):
    """Model that has no other keys, takes no value of another type, and is not changed."""

    model_config = STRICT_CONFIG


def make_section_model(title: str, knobs: Iterable[Knob], /, **fixed: object) -> type[BaseModel]:
    """Make a model of a section whose keys are the given hyperparameters; `fixed` are further fields."""
    return _cached_section_model(title, tuple(knobs), tuple(fixed.items()))


@lru_cache(1000)  # making a model takes longer than all the checks with it
def _cached_section_model(
    title: str, knobs: tuple[Knob, ...], fixed: tuple[tuple[str, object], ...]
) -> type[BaseModel]:
    fields = {
        knob.key: (type_with_range_checks(knob.type), ... if knob.required else default_as_in_file(knob.default))
        for knob in knobs
    }
    return make_model(title, {**dict(fixed), **fields})


def make_model(
    title: str, fields: Mapping[str, object], base: type[BaseModel] = StrictModel, about: str | None = None
) -> type[BaseModel]:
    """Make a model at run time: of each key its type and its default, `...` where it has none."""
    return create_model(title, __base__=base, __doc__=about, **fields)  # type: ignore[call-overload]


def literal_type_of_names(names: Iterable[str]) -> object:
    """Return the type of a key that takes one of these names."""
    return Literal[tuple(names)]


def union_of_types(kinds: Iterable[object]) -> object:
    """Return the union of types that are made at run time."""
    return Union[tuple(kinds)]  # noqa: UP007


def type_with_range_checks(hint: object) -> object:
    """Return a hyperparameter's type with its `Range` as checks of the value."""
    if get_origin(hint) is Annotated:
        base, *notes = get_args(hint)
        ranges = [note for note in notes if isinstance(note, Range)]
        bounds = _bounds_of_ranges(base, ranges)
        finite = [AllowInfNan(False)] if base is float else []
        return Annotated[(base, *bounds, *finite)] if bounds or finite else base
    if get_origin(hint) in (Union, UnionType):
        return union_of_types(map(type_with_range_checks, get_args(hint)))
    if get_origin(hint) is tuple:
        return GenericAlias(list, (type_with_range_checks(get_args(hint)[0]),))
    return Annotated[(int, *_bounds_of_ranges(int, ()))] if hint is int else hint


def _bounds_of_ranges(base: object, ranges: Iterable[Range]) -> list[Ge | Le | Gt | Lt]:
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


def default_as_in_file(default: Value) -> Value:
    """Return a default as a study file has it."""
    return list(default) if isinstance(default, tuple) else default
