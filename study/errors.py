"""Errors that are shown as one message, without a traceback."""

import errno
import re
from collections.abc import Iterable
from difflib import get_close_matches

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""How the file system says that there is no room."""


class UserError(Exception):
    """Something given by the user cannot be used. The message says what was given, where and what is allowed. Exit
    status 2.

    Example:
        >>> import study
        >>> study.loss("fairkl")
        Traceback (most recent call last):
        study.errors.UserError: 'fairkl': no such loss. Did you mean 'fair_kl'? There are: ...
    """

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows of it: the message alone."""
        return [f"error: {self}"]


class Stopped(Exception):
    """A study had to stop, through no fault of the user's; the message says why and how it goes on. Exit status 1."""


class Interrupted(Exception):
    """Ctrl-C or a signal came before a study ran; the message says what there is now. Exit status 130."""


def nearest(word: str, valid: Iterable[str]) -> str:
    """`Did you mean 'x'? ` for the closest valid spelling, or nothing where none is close.

    Words of two parts, as `method.alpha` or `val/accuracy`, share their first part with many: where it is right, the
    second parts alone are compared; the same second part behind another first one is close, too.
    """
    words = list(valid)
    first, second = _parts(word)
    by_second = {_parts(other)[1]: other for other in words if _parts(other)[0] == first}
    if first and by_second:
        longer = [other for other in by_second if second and other.startswith(second)]
        close = longer or get_close_matches(second, by_second, n=1, cutoff=0.5)
        matches = [by_second[near] for near in close] or [other for other in words if _parts(other)[1] == second]
    else:
        matches = get_close_matches(word, words, n=1, cutoff=0.6)
    return f"Did you mean {matches[0]!r}? " if matches else ""


def _parts(word: str) -> tuple[str, str]:
    """A word's first part with its `.` or `/`, empty for a word of one part, and the rest."""
    parts = re.fullmatch(r"(\w+[./])?(.*)", word, re.DOTALL)
    assert parts is not None  # the pattern takes every text
    return parts[1] or "", parts[2]
