"""Errors of the Python functions: they name arguments where the commands' own name options."""

import re
from collections.abc import Callable, Container
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

from study.errors import UserError

OPTION = re.compile(
    r"(?P<command>\bstudy [a-z]+ [^.;:\n]*?--.*)"
    r"|--set (?P<key>[\w.]+)=(?P<value>\"(?:[^\"\\]|\\.)*\"|\.\.\.|\S*[^\s:,;.)])"
    r"|--(?P<option>[a-z][a-z-]*)(?: (?!and\b|or\b|\(|--)(?P<given>\.\.\.|\S*[^\s:,;.)]))?"
)
"""A command to type up to the end of its line, a key that is set, or another option with its value."""

OTHERWISE_NAMED = {"file": "column"}
"""Arguments by options of another name."""

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


def naming_arguments(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Let a function's UserErrors name its arguments, `name='mine'`, not the options of a command, `--name mine`.

    Their traceback ends at the caller's line, as the message says what was given and what is allowed; that of a bug is
    whole.
    """

    @wraps(function)
    def named(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        try:
            return function(*args, **kwargs)
        except UserError as error:
            error.args = (with_arguments(str(error), signature(function).parameters),)
            error.__suppress_context__ = True
            raise error.with_traceback(None)  # noqa: B904, it is the same error

    return named


def with_arguments(message: str, arguments: Container[str]) -> str:
    """Return a message whose options are written as these arguments of a function; all else stays.

    Example:
        >>> with_arguments("mine: exists already. Give another name: --name mine-2", ["name"])
        "mine: exists already. Give another name: name='mine-2'"
    """

    def argument(found: re.Match[str]) -> str:
        if found["key"]:
            return f'set={{"{found["key"]}": {found["value"]}}}' if "set" in arguments else found[0]
        name = OTHERWISE_NAMED.get(found["option"], (found["option"] or "").replace("-", "_"))
        if name not in arguments:
            return found[0]
        return name if found["given"] is None else f"{name}={_literal(found['given'])}"

    message = OPTION.sub(argument, message)
    return re.sub(r"study resume [\w.-]*\w", "resume=True", message) if "resume" in arguments else message


def _literal(text: str) -> str:
    """Return an option's value as Python writes it."""
    try:
        return str(int(text))
    except ValueError:
        return text if text == "..." else repr(text)
