"""Declarations of the values that a hyperparameter may have, where the hyperparameter is used.

A hyperparameter is annotated as `Annotated[float, Range(low=0.0)]`, and described in the docstring of its owner, or by
a `Doc` in an annotation that several owners share. Losses, models and data carry these annotations and still run on a
machine that has PyTorch (which brings `typing_extensions`) and nothing else. `study.spec` turns them into checks of a
study file.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from typing_extensions import Doc

OptionsT = TypeVar("OptionsT")
ValueT = TypeVar("ValueT", bool, int, str)

Scalar = bool | int | float | str | None
"""Value of a parameter."""

Value = Scalar | Sequence["Value"] | Mapping[str, "Value"]
"""What a study file, or any file of JSON, can hold."""

Section = Mapping[str, Value]
"""Values of one section of a study file, by key."""

Params = Mapping[str, Scalar]
"""Parameters of a trial: the searched keys, each a dotted path, with their values."""

MAX_INTEGER = 2**63 - 1
"""Largest whole number of a study file where no smaller one is declared: what JSON, Optuna and databases can hold."""


@dataclass(frozen=True)
class Range:
    """Allowed values of a number, as `Annotated[float, Range(...)]`.

    Args:
        low, high: smallest and largest allowed value, inclusive; None: no bound.
        above, below: exclusive bounds; None: no bound.
    """

    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None


@dataclass(frozen=True)
class SearchRange:
    """The range that a search begins with, as a further note in `Annotated`; a study file says `paper` for it.

    Args:
        low, high: ends of the range, both inclusive.
        log: whether the scale is logarithmic.
        step: distance of its values; None: continuous, or 1 for whole numbers.
        choices: a few values instead.
        paper: values that a paper found good, the best first. The first ones of all of a method's hyperparameters are
            one configuration, the second ones the next, and so on; shorter lists repeat their last value.
    """

    low: float | None = None
    high: float | None = None
    log: bool = False
    step: float | None = None
    choices: tuple[Scalar, ...] = ()
    paper: tuple[Scalar, ...] = ()


@dataclass(frozen=True)
class Knob:
    """One hyperparameter: its key, its annotated type, its default (`required` if it has none), what it is."""

    key: str
    type: Any
    default: Any
    required: bool
    description: str = field(default="", compare=False)

    @property
    def plain_types(self) -> tuple[Any, ...]:
        """Plain types of its values: int and None's for `Annotated[int, Range(low=1)] | None`."""
        return tuple(get_args(part)[0] if get_origin(part) is Annotated else part for part in self._union_members)

    @cached_property
    def choices(self) -> tuple[Any, ...]:
        """Values of a hyperparameter that takes one of a few; empty for any other."""
        kind, *others = self.plain_types
        return get_args(kind) if not others and get_origin(kind) is Literal else ()

    @property
    def search_range(self) -> SearchRange | None:
        """Range that a search for it begins with, if that is declared; of several declarations the last."""
        notes = [note for part in self._union_members if get_origin(part) is Annotated for note in get_args(part)[1:]]
        return next((note for note in reversed(notes) if isinstance(note, SearchRange)), None)

    @property
    def _union_members(self) -> tuple[Any, ...]:
        return get_args(self.type) if get_origin(self.type) in (Union, UnionType) else (self.type,)


class _TensorPlaceholder:
    """PyTorch's class of this name, in an annotation."""


@cache
def read_knobs(owner: Callable[..., Any]) -> tuple[Knob, ...]:
    """Return the hyperparameters of a function (its keyword-only parameters) or of a dataclass (its fields).

    What the docstring, or that of a base class, says of one comes before a `Doc` of its annotation. A name that is a
    Python keyword is written with an underscore at its end (`lambda_`), the key without it. Keyword-only parameters
    whose type is a tensor are inputs, not hyperparameters, and are left out.
    """
    declared = []
    owners = reversed(owner.__mro__) if inspect.isclass(owner) else [owner]
    described = {name: text for one in owners for name, text in descriptions_by_name(inspect.getdoc(one) or "").items()}
    known = {"Tensor": _TensorPlaceholder}  # whose import takes a second, and which is then only left out
    hints = get_type_hints(owner.__init__ if inspect.isclass(owner) else owner, localns=known, include_extras=True)
    for parameter in inspect.signature(owner).parameters.values():
        if not inspect.isclass(owner) and parameter.kind is not parameter.KEYWORD_ONLY:
            continue
        kind, about = _split_doc(hints[parameter.name])
        if "Tensor" in str(kind):
            continue
        required = parameter.default is parameter.empty
        key, default = parameter.name.rstrip("_"), None if required else parameter.default
        declared.append(Knob(key, kind, default, required, described.get(parameter.name, about)))
    return tuple(declared)


def descriptions_by_name(docstring: str) -> dict[str, str]:
    """Return what a docstring, without its indentation, says of each argument or attribute, by name."""
    return {name: " ".join(text.split()).removesuffix(".") for name, text in DOCSTRING_ENTRY_PATTERN.findall(docstring)}


DOCSTRING_ENTRY_PATTERN = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
"""Matches an entry of `Args:` or `Attributes:`."""


def _split_doc(hint: Any) -> tuple[Any, str]:
    """Return an annotation without its outermost `Doc` notes, and the text of the last one, empty without any."""
    if get_origin(hint) is not Annotated:
        return hint, ""
    kind, *notes = get_args(hint)
    texts = [note.documentation for note in notes if isinstance(note, Doc)]
    others = [note for note in notes if not isinstance(note, Doc)]
    return Annotated[(kind, *others)] if others else kind, texts[-1] if texts else ""


def value_or_default(section: Section, key: str, default: ValueT) -> ValueT:
    """Return the value of a key in a checked section, of the default's type; the default where the key is not there."""
    value = section.get(key, default)
    assert isinstance(value, type(default))
    return value


def text_list(section: Section, key: str) -> list[str]:
    """Return the texts of a key that has a list of them; none where it is not there."""
    found = section.get(key)
    return [str(text) for text in found] if isinstance(found, list | tuple) else []


def to_options(kind: type[OptionsT], section: Section) -> OptionsT:
    """Make the dataclass with a study file section's values for its fields, and defaults for the others."""
    names = {name.rstrip("_"): name for name in inspect.signature(kind).parameters}
    return kind(**{names[key]: value for key, value in section.items() if key in names})
