"""Paths from names that come from elsewhere: a cluster, a server, a list in a file."""

from pathlib import Path

from study.errors import UserError

LONGEST = 255
"""Bytes that a part of a name may have on the file systems in use."""


def is_plain(part: str) -> bool:
    """Whether a text can be the name of one visible file: it can be printed and holds no separator."""
    too_long = len(part.encode(errors="surrogatepass")) > LONGEST
    return bool(part) and part[0] != "." and part.isprintable() and not {"/", "\\"} & {*part} and not too_long


def below(folder: Path, name: str) -> Path:
    """The path of `name` below a folder.

    Args:
        name: its parts are separated by `/`.

    Raises:
        UserError: the name could lead out of the folder, is hidden, or is none.
    """
    if not all(is_plain(part) for part in name.split("/")):
        raise UserError(
            f"{name[:LONGEST]!r}: cannot be the name of a file in {folder}; it leads out of it or is hidden"
        )
    return folder / name
