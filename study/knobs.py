"""What a hyperparameter may be, declared where the hyperparameter is used.

Standard library only: losses, models and data carry these annotations and still run on a machine
that has PyTorch and nothing else. `study.spec` turns them into checks of a study file.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Options = TypeVar("Options")


@dataclass(frozen=True)
class Range:
    """Allowed values of a number, as `Annotated[float, Range(...)]`.

    Args:
        low, high: smallest and largest allowed value, inclusive; None: no bound.
        above, below: the same, exclusive.
    """

    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None


@dataclass(frozen=True)
class Searched:
    """Where a search for a hyperparameter begins, as a further note in `Annotated`; a study file says `paper` for it.

    Args:
        low, high, log, step: the ends of a range, both in it; on a logarithmic scale; in steps.
        choices: a few values instead.
        paper: values that a paper found good, the best first. The first ones of all of a method's hyperparameters are
            one configuration, the second ones the next, and so on; who has fewer stays at the last.
    """

    low: float | None = None
    high: float | None = None
    log: bool = False
    step: float | None = None
    choices: tuple[Any, ...] = ()
    paper: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Knob:
    """One hyperparameter: its key, its annotated type, its default (`required` if it has none), what its owner says."""

    key: str
    type: Any
    default: Any
    required: bool
    about: str = field(default="", compare=False)

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The plain types of its values: of `Annotated[int, Range(low=1)] | None` int and None's."""
        return tuple(get_args(part)[0] if get_origin(part) is Annotated else part for part in self._branches)

    @property
    def names(self) -> tuple[Any, ...]:
        """The values of one that takes one of a few, empty for any other."""
        return get_args(self.kinds[0]) if len(self.kinds) == 1 and get_origin(self.kinds[0]) is Literal else ()

    @property
    def searched(self) -> Searched | None:
        """Where a search for it begins, if that is declared; of several declarations the last."""
        notes = [note for part in self._branches if get_origin(part) is Annotated for note in get_args(part)[1:]]
        return next((note for note in reversed(notes) if isinstance(note, Searched)), None)

    @property
    def _branches(self) -> tuple[Any, ...]:
        return get_args(self.type) if get_origin(self.type) in (Union, UnionType) else (self.type,)


@cache
def knobs(owner: Callable[..., Any]) -> tuple[Knob, ...]:
    """The hyperparameters of a function (its keyword-only parameters) or of a dataclass (its fields).

    A name that is a Python keyword is written with an underscore at its end (`lambda_`), the key without it.
    Keyword-only parameters whose type is a tensor are inputs, not hyperparameters, and are left out.
    """
    found = []
    told = descriptions(owner.__doc__ or "", [name.rstrip("_") for name in inspect.signature(owner).parameters])
    hints = get_type_hints(owner.__init__ if inspect.isclass(owner) else owner, include_extras=True)
    for parameter in inspect.signature(owner).parameters.values():
        if not inspect.isclass(owner) and parameter.kind is not parameter.KEYWORD_ONLY:
            continue
        hint = hints[parameter.name]
        if "Tensor" in str(hint):
            continue
        required = parameter.default is parameter.empty
        key, default = parameter.name.rstrip("_"), None if required else parameter.default
        found.append(Knob(key, hint, default, required, told.get(key, "")))
    return tuple(found)


def descriptions(docstring: str, names: Sequence[str]) -> dict[str, str]:
    """What a docstring says of each of these names.

    It has entries `name: text` or `name, other: text`, one after the other with `;` between them, or a line or more
    each, under `Attributes:` or `Args:` or alone. Of a name without an entry the first one counts that quotes it.

    >>> descriptions("rho: share of samples; seed: of the split.", ["rho", "seed"])
    {'rho': 'share of samples', 'seed': 'of the split'}
    """
    one = "|".join(map(re.escape, names)) or r"\b\B"
    entry = re.compile(rf"(?:^|(?<=; ))((?:`?\w+`?, )*`?(?:{one})`?(?:, `?\w+`?)*): ")
    found: dict[str, str] = {}
    for item in _items(inspect.cleandoc(docstring)):
        _, *parts = entry.split(item)
        for several, text in zip(parts[::2], parts[1::2], strict=True):
            found |= dict.fromkeys(re.findall(r"\w+", several), text.rstrip("; ."))
    texts = {
        name: found.get(name) or next((text for text in found.values() if f"`{name}`" in text), "") for name in names
    }
    return {name: text for name, text in texts.items() if text}


def _items(text: str) -> list[str]:
    """The paragraphs of a docstring, and its entries with their further lines, each as one line."""
    starts = re.sub(r"\n(?=\n| {0,4}\S)", "\0", text).split("\0")
    joined = [" ".join(line.split()) for line in starts]
    whole = " ".join(text.split()) if "\n\n" not in text else ""
    return [whole] if whole else joined


def options(kind: type[Options], section: Mapping[str, Any]) -> Options:
    """The dataclass with the values that a section of a study file has for its fields, the others at their defaults."""
    names = {name.rstrip("_"): name for name in inspect.signature(kind).parameters}
    return kind(**{names[key]: value for key, value in section.items() if key in names})
