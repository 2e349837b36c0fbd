"""Errors that are shown as one message, without a traceback."""

import errno
from collections.abc import Iterable
from difflib import get_close_matches

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""How the file system says that there is no room."""


class UserError(Exception):
    """Something given by the user cannot be used. The message says what was given, where and what is allowed. Exit
    status 2."""


class Stopped(Exception):
    """A study had to stop, through no fault of the user's; the message says why and how it goes on. Exit status 1."""


def nearest(word: str, valid: Iterable[str]) -> str:
    """`Did you mean 'x'? ` for the closest valid spelling, or nothing where none is close."""
    matches = get_close_matches(word, list(valid), n=1, cutoff=0.6)
    return f"Did you mean {matches[0]!r}? " if matches else ""
