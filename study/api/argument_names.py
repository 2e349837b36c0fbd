"""Errors of the Python functions: they name arguments where the commands' own name options."""

import re
from collections.abc import Callable, Container
from functools import wraps
from inspect import Parameter, signature
from typing import ParamSpec, TypeVar

from study.errors import UserError, did_you_mean

OPTION_PATTERN = re.compile(
    r"(?P<command>\bstudy [a-z]+ [^.;:\n]*?--.*)"
    r"|--set (?P<key>[\w.]+)="
    r"(?P<value>\"(?:[^\"\\]|\\.)*\"|[\[{](?:\"(?:[^\"\\]|\\.)*\"|[^\"\n])*?[\]}](?=[:;.)\s]|$)|\.\.\.|\S*[^\s:,;.)])"
    r"|--(?P<option>[a-z][a-z-]*)(?: (?!and\b|or\b|\(|--)(?P<given>\.\.\.|\S*[^\s:,;.)]))?"
)
"""A command to type up to the end of its line, a key that is set, or another option with its value."""

ARGUMENT_BY_OPTION = {"file": "column"}
"""Arguments by options of another name."""

ARGUMENT_BY_OPTUNA_OR_RAY_NAME = {
    "direction": "maximize",
    "directions": "maximize",
    "mode": "maximize",
    "num_samples": "trials",
    "objective": "train",
    "param_space": "space",
    "study_name": "name",
    "trainable": "train",
}
"""Arguments by what Optuna and Ray Tune call them."""

ParamsP = ParamSpec("ParamsP")
ReturnT = TypeVar("ReturnT")


def name_arguments_in_errors(function: Callable[ParamsP, ReturnT]) -> Callable[ParamsP, ReturnT]:
    """Let a function's errors name its arguments: a UserError not a command's options, a TypeError the nearest one.

    Their traceback ends at the caller's line, as the message says what was given and what is allowed; that of a bug is
    whole.
    """
    parameters = signature(function).parameters.values()
    names = [parameter.name for parameter in parameters if parameter.name != "self"]
    named_only = [parameter.name for parameter in parameters if parameter.kind is Parameter.KEYWORD_ONLY]
    n_positional = len(parameters) - len(named_only)
    takes_any_number = any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in parameters)

    @wraps(function)
    def named(*args: ParamsP.args, **kwargs: ParamsP.kwargs) -> ReturnT:
        if unknown := next((name for name in kwargs if name not in names), None):
            meant = _suggest_argument(unknown, names)
            told = f"{function.__name__}() got an unexpected keyword argument {unknown!r}. {meant}"
            raise TypeError(f"{told}There are: {', '.join(names)}")
        if len(args) > n_positional and named_only and not takes_any_number:
            told = f"{function.__name__}(): too many arguments without a name"
            raise TypeError(f"{told}. Name the others: {', '.join(f'{name}=...' for name in named_only)}")
        try:
            return function(*args, **kwargs)
        except UserError as error:
            error.args = (options_to_arguments(str(error), names),)
            error.__suppress_context__ = True
            raise error.with_traceback(None)  # noqa: B904, it is the same error

    return named


def _suggest_argument(unknown: str, names: list[str]) -> str:
    """Return what is meant by an argument that there is not: another argument, or a key of the study file."""
    plural = (name for name in names if unknown in (f"{name}s", name.removesuffix("s")))
    if (meant := ARGUMENT_BY_OPTUNA_OR_RAY_NAME.get(unknown) or next(plural, None)) in names:
        return f"Did you mean {meant!r}? "
    if "set" in names:
        from study.spec.key_errors import dotted_keys_ending_in

        if keys := dotted_keys_ending_in(unknown) or dotted_keys_ending_in(f"{unknown}s"):
            return f"It is a key of the study file: set={{{keys[0]!r}: ...}}. "
    return did_you_mean(unknown, names)


def options_to_arguments(message: str, arguments: Container[str]) -> str:
    """Return a message whose options are written as these arguments of a function; all else stays.

    Example:
        >>> options_to_arguments("mine: exists already. Give another name: --name mine-2", ["name"])
        "mine: exists already. Give another name: name='mine-2'"
    """

    def argument(found: re.Match[str]) -> str:
        if found["key"]:
            return f'set={{"{found["key"]}": {found["value"]}}}' if "set" in arguments else found[0]
        name = ARGUMENT_BY_OPTION.get(found["option"], (found["option"] or "").replace("-", "_"))
        if name not in arguments:
            return found[0]
        return name if found["given"] is None else f"{name}={_python_literal(found['given'])}"

    message = OPTION_PATTERN.sub(argument, message)
    return re.sub(r"study resume [\w.-]*\w", "resume=True", message) if "resume" in arguments else message


def _python_literal(text: str) -> str:
    """Return an option's value as Python writes it."""
    try:
        return str(int(text))
    except ValueError:
        return text if text == "..." else repr(text)
