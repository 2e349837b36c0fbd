"""The token of a Ray cluster: found, passed to Ray, or made anew for a Ray of one's own."""

import os
import secrets
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from study.errors import UserError
from study.files import PRIVATE_FILE_MODE, write_atomically
from study.upstream.environment import restore_variables_after

MIN_TOKEN_CHARACTERS = 16
"""Fewest characters of a token; Ray's own have 64."""


TOKEN_PATH_VARIABLE = "RAY_AUTH_TOKEN_PATH"
"""Ray's variable that names the file of a token; where it is not set, Ray takes `~/.ray/auth_token`."""


def token_refused_error(address: str) -> UserError:
    """Return the error for a cluster that does not accept the token."""
    how = "Put the cluster's token into a file of mode 0600 and set RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=FILE"
    return UserError(f"--address {address}: refuses the token, or none was given. {how}")


def pass_token_to_ray() -> None:
    """Make Ray use the token whose file it was given; by itself it does not do so everywhere.

    The file in the user's home counts only where Ray's mode is `token`: each local `ray.init()` of another program
    leaves one there that others can read.

    Raises:
        UserError: others can read the file, or it cannot be read.
    """
    named, default = _token_file_from_environment(), _default_token_file()
    is_asked_for = os.environ.get("RAY_AUTH_MODE") == "token" and not os.environ.get("RAY_AUTH_TOKEN")
    if named is None and not (is_asked_for and os.path.exists(default)):
        return
    path = named or default
    try:
        if path.stat().st_mode & 0o077:
            raise UserError(f"{path}: others can read this token: chmod 600 {shlex.quote(str(path))}")
        path.read_bytes()
    except OSError as error:
        gone = ". If its cluster is down: unset RAY_AUTH_TOKEN_PATH STUDY_ADDRESS" if named else ""
        raise UserError(f"RAY_AUTH_TOKEN_PATH: {path}: {error.strerror}{gone}") from None
    if named:
        os.environ.setdefault("RAY_AUTH_MODE", "token")


@cache
def _generate_token() -> str:
    return secrets.token_hex(32)


@contextmanager
def use_new_ray_token(folder: Path) -> Iterator[None]:
    """Make the own Ray that is started in the block use a token of its own, from a file in a private folder.

    So it is neither a cluster's token nor one in the user's home, which may be missing. All Rays of a process use the
    same one, as Ray keeps the first that it reads.
    """
    file = folder / "token"
    write_atomically(file, _generate_token(), PRIVATE_FILE_MODE)
    with restore_variables_after(("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", TOKEN_PATH_VARIABLE)):  # Ray sets the first, too
        os.environ.pop("RAY_AUTH_TOKEN", None)  # which Ray would take first
        os.environ[TOKEN_PATH_VARIABLE] = str(file)
        yield


def _token_file_from_environment() -> Path | None:
    path = os.environ.get(TOKEN_PATH_VARIABLE)
    return Path(path) if path else None


def _default_token_file() -> Path:
    return Path(os.path.expanduser("~"), ".ray", "auth_token")


def find_token() -> str | None:
    """Return the token that Ray would send, wherever it finds it."""
    path = _token_file_from_environment() or _default_token_file()
    if token := os.environ.get("RAY_AUTH_TOKEN"):
        return token.strip()
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return None
