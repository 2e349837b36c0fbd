"""Training functions of the user's own: found, checked and brought along, before anything starts."""

from pathlib import Path
from typing import TYPE_CHECKING

from study.errors import UserError
from study.home.folder import Home
from study.spec import StudySpec
from study.training.own_function import FILE, PICKLE, digest, load, place

if TYPE_CHECKING:
    from study.training import FunctionTrial


def brought(home: Home, spec: StudySpec, given: bytes | None = None) -> bytes | None:
    """The pickled function that a new study's folder gets, None where its trials need none; any other is checked.

    Args:
        given: the function as this process has pickled it.

    Raises:
        UserError: it is in no study of this home, or cannot be used.
    """
    if spec.function is None:
        return None
    if given is not None and spec.function == f"{PICKLE}{digest(given)}":
        return given
    folder = _folder(home, spec.function)
    load(spec.function, place(spec.function, folder))
    return (folder / FILE).read_bytes() if spec.function_is_pickled else None


def function_trial(home: Home, spec: StudySpec, device: str) -> "FunctionTrial":
    """One trial of the file's own configuration, in this process.

    Raises:
        UserError: as `brought`.
    """
    from study.training import FunctionTrial

    assert spec.function is not None
    where = place(spec.function, _folder(home, spec.function))
    return FunctionTrial(spec.trial_config({}), where, spec.objective.needed, device)


def _folder(home: Home, function: str) -> Path:
    """The folder of the first study of a home that has a pickled function."""
    if not function.startswith(PICKLE):
        return home.path
    for folder in home.studies():
        file = folder.path / FILE
        if file.is_file() and f"{PICKLE}{digest(file.read_bytes())}" == function:
            return folder.path
    raise UserError(
        f"method.function: {function!r}: no study in {home.path} has this function, which was defined in a notebook or "
        "a script. Put it into a module, and name it as MODULE:NAME"
    )
