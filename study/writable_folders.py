"""Folders to write to besides studies: the home, caches, and temporary folders, with fallbacks.

Fallbacks are needed where the user's home or the system's temporary folder cannot be written, as in a container whose
user has no name.
"""

import errno
import getpass
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from study.errors import UserError

CACHE_FOLDER_NAME = ".cache"
"""Name of the folder of caches in the home of a user, and in that of studies where the user's cannot be written."""


def study_home_path() -> Path:
    """Return the folder that `STUDY_HOME` names, else `studies` in the working folder; it need not exist yet."""
    given = Path(os.environ.get("STUDY_HOME") or "studies")
    with suppress(FileNotFoundError):  # the working folder was removed
        return given.absolute()
    return given


def why_unwritable(path: Path, is_file: bool = False) -> str | None:
    """Return why no file can be written into a folder, or why the file cannot be; None where nothing is known.

    Neither needs to exist yet.
    """
    place = next(one for one in (path, *path.parents) if os.path.lexists(one) or one == one.parent)
    is_file = is_file and place == path
    if not is_file and not os.path.isdir(place):
        return os.strerror(errno.ENOTDIR if os.path.exists(place) else errno.ENOENT)
    if os.access(place, os.W_OK if is_file else os.W_OK | os.X_OK):
        return None
    with suppress(OSError):
        return os.strerror(errno.EROFS if os.statvfs(place).f_flag & os.ST_RDONLY else errno.EACCES)
    return os.strerror(errno.EACCES)


def set_library_folders() -> None:
    """Set variables that tell libraries where to write, if the user's home or the temporary folder cannot be written.

    To be called before they are imported. What the user has set stays. Without a home at all, or a user's name, they
    would raise errors; with a home that cannot be written they would warn and do their work anew each time.
    """
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    if os.path.expanduser("~") == "~":  # no variable, and no entry among the system's users
        os.environ["HOME"] = "/"  # as containers have it
    try:
        getpass.getuser()
    except (OSError, KeyError):  # by Python's version
        os.environ["LOGNAME"] = f"uid {os.getuid()}"
    caches = study_home_path() / CACHE_FOLDER_NAME
    if why_unwritable(Path(os.path.expanduser("~"), CACHE_FOLDER_NAME)) and not why_unwritable(caches):
        os.environ.setdefault("XDG_CACHE_HOME", str(caches))
        for name in ("MPLCONFIGDIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_HOME"):
            os.environ.setdefault(name, str(caches / name.partition("_")[0].lower()))
    temporary = [os.environ.get("TMPDIR"), os.environ.get("TEMP"), os.environ.get("TMP"), "/tmp", "/var/tmp"]
    if not any(map(_is_writable_folder, temporary)):
        with suppress(OSError):
            study_home_path().mkdir(parents=True, exist_ok=True)
        for place in filter(_is_writable_folder, _runtime_folder_candidates()):
            os.environ["TMPDIR"] = tempfile.tempdir = place
            return


def ray_socket_folder(max_path_characters: int) -> str:
    """Return the folder in which that of Ray's processes is made.

    It is the temporary one, /tmp, else `XDG_RUNTIME_DIR` or the home of studies. The first two come first because Ray
    puts data there that do not fit into memory.

    Args:
        max_path_characters: most characters of its path, as paths of sockets are limited.

    Raises:
        UserError: none of them can be used; says why not.
    """
    reasons = dict[str, str]()
    for place in temporary_folder_candidates():
        if len(place) > max_path_characters:
            reasons[place] = f"its path has more than {max_path_characters} characters"
        elif _is_writable_folder(place):
            return place
        else:
            reasons[place] = why_unwritable(Path(place)) or os.strerror(errno.ENOENT)
    told = "; ".join(f"{place}: {reason}" for place, reason in reasons.items())
    raise UserError(f"no folder for what Ray's processes need while they live ({told}). Name one: TMPDIR=/FOLDER")


SHARED_MEMORY_FOLDER = "/dev/shm"
"""Folder in memory that Linux has, through which Ray's processes share data."""


def check_shared_memory() -> None:
    """Refuse a Linux without shared memory, where Ray would start and end again and again.

    Raises:
        UserError: says how to have it.
    """
    if sys.platform == "linux" and not _is_writable_folder(SHARED_MEMORY_FOLDER):
        why = why_unwritable(Path(SHARED_MEMORY_FOLDER)) or os.strerror(errno.ENOENT)
        raise UserError(
            f"{SHARED_MEMORY_FOLDER}: {why}. Ray's processes share data there; in a container: --shm-size=2g or more"
        )


def temporary_folder_candidates() -> Iterator[str]:
    """Yield the folders for what lives as long as a process, the best first."""
    with suppress(OSError):  # Python finds none
        yield tempfile.gettempdir()
    yield "/tmp"
    yield from _runtime_folder_candidates()


def _runtime_folder_candidates() -> Iterator[str]:
    if given := os.environ.get("XDG_RUNTIME_DIR"):
        yield given
    yield str(study_home_path())


def _is_writable_folder(place: str | None) -> bool:
    """Return whether there is such a folder to write into."""
    return place is not None and os.path.isdir(place) and not why_unwritable(Path(place))
