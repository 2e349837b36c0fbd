"""What a hyperparameter may be, declared where the hyperparameter is used.

Standard library only: losses, models and data carry these annotations and still run on a machine
that has PyTorch and nothing else. `study.spec` turns them into checks of a study file.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

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
class Knob:
    """One hyperparameter: its key, its annotated type and its default (`required` if it has none)."""

    key: str
    type: Any
    default: Any
    required: bool


def knobs(owner: Callable[..., Any]) -> Iterator[Knob]:
    """The hyperparameters of a function (its keyword-only parameters) or of a dataclass (its fields).

    A name that is a Python keyword is written with an underscore at its end (`lambda_`), the key without it.
    Keyword-only parameters whose type is a tensor are inputs, not hyperparameters, and are left out.
    """
    hints = get_type_hints(owner.__init__ if inspect.isclass(owner) else owner, include_extras=True)
    for parameter in inspect.signature(owner).parameters.values():
        if not inspect.isclass(owner) and parameter.kind is not parameter.KEYWORD_ONLY:
            continue
        hint = hints[parameter.name]
        if "Tensor" in str(hint):
            continue
        required = parameter.default is parameter.empty
        yield Knob(parameter.name.rstrip("_"), hint, None if required else parameter.default, required)


def options(kind: type[Options], section: Mapping[str, Any]) -> Options:
    """The dataclass with the values that a section of a study file has for its fields, the others at their defaults."""
    names = {name.rstrip("_"): name for name in inspect.signature(kind).parameters}
    return kind(**{names[key]: value for key, value in section.items() if key in names})
