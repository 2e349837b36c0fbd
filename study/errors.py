"""Errors that are shown as one message, without a traceback.

Each has a `code`, which tells it from others across processes, and the `exit_status` of a command that ends by it.
"""

import errno
import os
import re
import shlex
from collections.abc import Container, Iterable
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar

from study.text import MAX_SHOWN_NAMES, list_few_names, shorten_text

DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error numbers of the file system for no room."""

DISK_FAILURE_ERRNOS = (errno.EIO, errno.EROFS)
"""Error numbers of the file system for a failure, or for having become read-only."""

ERRNO_BY_SQLITE_CODE = {10: errno.EIO, 13: errno.ENOSPC}
"""SQLite's codes of a disk that fails or is full, with the error numbers that they stand for."""

RAY_DISK_FULL_CLASS = "OutOfDiskError"
"""Ray's class for data that it has to keep on disk, where there is no room in its folder; named, so that Ray need not
be imported."""


MAX_MESSAGE_CHARACTERS = 2**16
"""Most characters of a message that are kept."""


class UserError(Exception):
    """Something given by the user cannot be used. The message says what was given, where and what is allowed.

    Example:
        >>> import study
        >>> study.loss("fairkl")
        Traceback (most recent call last):
        study.errors.UserError: 'fairkl': no such loss. Did you mean 'fair_kl'? There are: ...
    """

    code: ClassVar[str] = "unusable"
    exit_status: ClassVar[int] = 2

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows of the error: the message alone."""
        return [f"error: {self}"]


class StudyNotFoundError(UserError):
    """A home, or a cluster, has no study of the name that was given."""

    code = "no_such_study"


class UnusableFunctionError(UserError):
    """What the user's function yields first cannot be used: no trial of the study could run."""


class StudyStoppedError(Exception):
    """A study had to stop, through no fault of the user's; the message says why and how it goes on."""

    code: ClassVar[str] = "stopped"
    exit_status: ClassVar[int] = 1


class StartInterruptedError(Exception):
    """Ctrl-C or a signal came before a study ran; the message says what there is now."""

    code: ClassVar[str] = "interrupted"
    exit_status: ClassVar[int] = 130


def find_disk_error(error: BaseException | None) -> OSError | None:
    """Return the disk's own error that an error is or comes from: no room, a failure, or read-only; None for others.

    Libraries turn it into their own errors, and keep what the system said only as the cause or context of these, which
    Ray does not pass from one process to another. This package's own errors say already what is wrong.
    """
    seen: list[BaseException] = []
    while isinstance(error, Exception) and not isinstance(error, UserError | StudyStoppedError | StartInterruptedError):
        if any(error is one for one in seen):
            break
        seen.append(error)
        if isinstance(error, OSError) and error.errno in (*DISK_FULL_ERRNOS, *DISK_FAILURE_ERRNOS):
            return error
        code = _read_attribute(error, "sqlite_errorcode")
        if number := ERRNO_BY_SQLITE_CODE.get(code & 0xFF if isinstance(code, int) else 0):
            return OSError(number, os.strerror(number))
        if type(error).__name__ == RAY_DISK_FULL_CLASS:
            from tempfile import gettempdir  # its import takes a while

            return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), gettempdir())
        cause = _read_attribute(error, "cause")
        error = cause if isinstance(cause, BaseException) else error.__cause__ or error.__context__
    return None


def _read_attribute(error: BaseException, name: str) -> Any:
    """Return an attribute of an exception, None where it has none, or where a user's class raises instead."""
    try:
        return getattr(error, name, None)
    except Exception:
        return None


def error_message(error: BaseException) -> str:
    """Return an exception's message, whatever its class raises instead, with the middle of a very long one left out."""
    try:
        return shorten_text(str(error), MAX_MESSAGE_CHARACTERS)
    except BaseException as trouble:
        return f"its message cannot be had ({type(trouble).__name__})"


def disk_remedy(problem: OSError) -> str:
    """Return what to do about an error that `find_disk_error` returned, without a full stop."""
    return "Make room there" if problem.errno in DISK_FULL_ERRNOS else "See that it can be written again"


NAMES_BY_PAPER_WORD = {
    "fairkl": "eps_sup_info_nce+fair_kl",
    "epssupinfonce": "eps_sup_info_nce",
    "dcl": "debiased_info_nce",
    "hcl": "hard_negative_info_nce",
    "cclk": "fair_cclk",
    "fscl": "fair_sup_con",
    "simclr": "info_nce",
    "biasbal": "bias_balanced_cross_entropy",
    "lff": "learning_from_failure",
    "jtt": "just_train_twice",
    "gce": "generalized_cross_entropy",
    "bayes": "tpe gp",
    "bayesian": "tpe gp",
    "bayesianoptimization": "tpe gp",
    "bayesianoptimisation": "tpe gp",
    "gaussianprocess": "gp",
    "sobol": "qmc",
}
"""What papers call methods and samplers, in small letters without signs, and their names here, with blanks between."""


def _normalise_spelling(word: str) -> str:
    return re.sub(r"[\W_]", "", word).lower()


def did_you_mean(word: str, valid: Iterable[str], before: str = "") -> str:
    """Return `Did you mean 'x'? ` for the closest valid spelling, or an empty text where none is close.

    Args:
        before: what is typed before each of these spellings.
    """
    close = [f"{before}{name}" for name in closest_spellings(word, valid)]
    return f"Did you mean {' or '.join(map(repr, close))}? " if close else ""


def closest_spellings(word: str, valid: Iterable[str]) -> list[str]:
    """Return the valid spellings that a word may mean: mostly one, or none.

    A word that differs by capitals and signs alone is the closest, then what papers call a method
    (`NAMES_BY_PAPER_WORD`). Words of two parts, as `method.alpha` or `val/accuracy`, share their first part with many:
    where it is right, the second parts alone are compared; the same second part after another first one, or after none,
    is close, too.
    """
    words = list(valid)
    plain = _normalise_spelling(word)
    alike = [other for other in words if plain == _normalise_spelling(other)][:1]
    same = alike or NAMES_BY_PAPER_WORD.get(plain, "").split()
    if not {*same, *(name.partition("+")[0] for name in same)}.isdisjoint(words):
        return same if all(name in words for name in same) else []  # what a paper calls so, not what is spelt nearly so
    first, second = _split_first_part(word)
    by_second = {_split_first_part(other)[1]: other for other in words if _split_first_part(other)[0] == first}
    if first and by_second:
        longer = [other for other in by_second if second and other.startswith(second)]
        close = longer or get_close_matches(second, by_second, n=1, cutoff=0.5)
        with_second = (other for other in words if _split_first_part(other)[1] == second)
        matches = [by_second[near] for near in close] or list(with_second)
    else:
        after_first = [other for other in words if word and other.endswith((f".{word}", f"/{word}"))]
        matches = after_first or get_close_matches(word, words, n=1, cutoff=0.6)
        if not matches and not first:
            behind = {_split_first_part(other)[1]: other for other in words}
            matches = [behind[near] for near in get_close_matches(word, behind, n=1, cutoff=0.7)]
    return matches[:1]


def _split_first_part(word: str) -> tuple[str, str]:
    """Return a word's first part with its `.` or `/`, empty for a word of one part, and the rest."""
    parts = re.fullmatch(r"(\w+[./])?(.*)", word, re.DOTALL)
    assert parts is not None  # the pattern takes every text
    return parts[1] or "", parts[2]


KEYS_COMMAND, NAMES_COMMAND = "study guide keys", "study spaces"
"""Commands that list the keys and metrics, and the names of data sets, networks and methods."""

MAX_NAMES_BESIDE_SUGGESTION = 6
"""Most names that are listed after one that is meant."""


def suggest_or_list(
    word: str, valid: Iterable[str], label: str = "Allowed", command: str | None = None, before: str = ""
) -> str:
    """Return what is meant by a word, or else what there is: `Did you mean 'x'?`, `Allowed: x, y`.

    A long list is cut, and left out after a suggestion if a command shows it.

    Args:
        label: what the names are.
        command: lists all of them where the message does not; None: there is no such command.
        before: what is typed before the one that is meant.
    """
    names = list(valid)
    meant = did_you_mean(word, names, before)
    if meant and command and len(names) > MAX_NAMES_BESIDE_SUGGESTION:
        return f"{meant}All: {command}"
    more = f". All: {command}" if command and len(names) > MAX_SHOWN_NAMES else ""
    return f"{meant}{label}: {list_few_names(names) or 'none'}{more}"


def did_you_mean_path(path: Path, suffixes: Container[str] | None = None) -> str:
    """Return `Did you mean x? ` for what `closest_path` finds, or an empty text."""
    near = closest_path(path, suffixes)
    return f"Did you mean {shlex.quote(str(near))}? " if near else ""


def closest_path(path: Path, suffixes: Container[str] | None = None) -> Path | None:
    """Return the file or folder beside a path, which is not there, that may be meant; None: there is none.

    Args:
        suffixes: of the files that may be meant, in small letters; None: any file or folder.
    """
    beside: dict[str, Path] = {}
    with suppress(OSError, ValueError):  # no such folder, or an impossible path
        for other in sorted(path.parent.iterdir()):
            if not other.name.startswith(".") and (suffixes is None or other.suffix.lower() in suffixes):
                beside.setdefault(other.stem.lower(), other)
    near = get_close_matches(path.stem.lower(), beside, n=1, cutoff=0.6)
    return beside[near[0]] if near else None
