"""A training function of the user's own: how it is named, found and checked.

A function is named as MODULE:NAME, or as `pickle:DIGEST` if it was defined in a notebook or a script; then it lies in
the study's folder. A pickle runs code when it is read, so one is read from nowhere else, and only where its digest is
the one that the study was made with.
"""

import gc
import hashlib
import importlib
import importlib.util
import inspect
import os
import pickle
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from study.errors import UserError, error_message
from study.files import FileDigest
from study.knobs import Section
from study.methods.own_function import REUSE_PROCESS_KEY

PICKLE_PREFIX = "pickle:"
PICKLED_FUNCTION_FILE = "function.pkl"
"""File of a pickled function in its study's folder."""

ALLOWED_ARGUMENTS = ("config", "seed", "epochs", "checkpoint", "fold", "folds")
"""Arguments that a function may take, each by its name; it must take `config`, and `fold` with `data.folds`."""

TrainingFunction = Callable[..., Iterator[Section]]


def pickle_digest(content: bytes) -> str:
    """Hash a pickled function, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()[:24]


def function_import_folder(function: str, folder: Path) -> str:
    """Return where other processes find a function: the folder of its module's top, or the study's folder for a pickle.

    Raises:
        UserError: there is no such module here.
    """
    if function.startswith(PICKLE_PREFIX):
        return str(folder)
    top = function.partition(":")[0].partition(".")[0]
    _append_to_module_path(os.getcwd())
    try:
        found = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        found = None
    if found is None:
        raise UserError(
            f"method.function: {function!r}: there is no module {top!r}. It must be installed, or a file of the folder "
            f"from which the study is started, {os.getcwd()}"
        )
    file = next(iter(found.submodule_search_locations or ()), None) or found.origin
    return str(Path(file).parent) if file else os.getcwd()


def function_source_files(function: str, where: str) -> list[FileDigest]:
    """Describe the file that defines a function: `name`, `file` and `sha256`.

    The list is empty for a pickle, whose name is its digest, and for a function that is in no file.

    Args:
        where: as `function_import_folder` returns it.
    """
    if function.startswith(PICKLE_PREFIX):
        return []
    _append_to_module_path(where)
    try:
        found = importlib.util.find_spec(function.partition(":")[0])
        file = Path(found.origin or "") if found else Path()
        content = file.read_bytes()
    except Exception:  # what the user's packages do when they are imported; `load_function` tells of it
        return []
    return [{"name": function, "file": file.name, "sha256": hashlib.sha256(content).hexdigest()}]


def load_function(function: str, where: str) -> TrainingFunction:
    """Load a function and check it.

    Args:
        where: as `function_import_folder` returns it.

    Raises:
        UserError: it cannot be loaded, or is no generator function that takes a configuration.
    """
    is_pickle = function.startswith(PICKLE_PREFIX)
    loaded = _unpickle_function(function, Path(where)) if is_pickle else _import_function(function, where)
    check_training_function(loaded, f"method.function: {function!r}")
    return loaded


def unload_function(function: str, where: str) -> None:
    """Remove a function's modules from this process, so that a later trial imports them anew.

    These are its own module and all that lie in a folder of the user's own: `where`, and the folders in which Python
    looks before its own library (the folder of a script, a working folder, PYTHONPATH). What is installed stays, and so
    does a package with compiled modules, which may be imported only once. The classes of a pickled function are
    removed, too.

    Args:
        where: as `function_import_folder` returns it.
    """
    own = "" if function.startswith(PICKLE_PREFIX) else function.partition(":")[0].partition(".")[0]
    library = os.path.dirname(os.__file__)
    ahead = sys.path[: sys.path.index(library)] if library in sys.path else []
    folders = {os.path.realpath(path) for path in (*ahead, where) if not _is_site_packages(Path(path))}
    tops: dict[str, list[str]] = {}
    for name in sys.modules:
        tops.setdefault(name.partition(".")[0], []).append(name)
    for top, names in tops.items():
        found = _module_files(top) if top in sys.modules else []
        mine = top == own or (bool(found) and _top_package_folder(found[0]) in folders)
        mine = mine and top not in _NEVER_UNLOADED_MODULES
        if mine and not any(file.endswith((".so", ".pyd")) for name in names for file in _module_files(name)):
            for name in names:
                del sys.modules[name]
    gc.collect()  # a module and its functions refer to each other; a class that a pickle made is found as long as it is
    _exclude_libraries_from_gc()


@cache
def _exclude_libraries_from_gc() -> None:
    """Exclude what is there now from Python's search for garbage, which takes tenths of a second, once."""
    gc.freeze()


_NEVER_UNLOADED_MODULES = ("study", "__main__", "__mp_main__")


def _is_site_packages(folder: Path) -> bool:
    """Tell whether packages are installed in a folder."""
    return bool({"site-packages", "dist-packages"} & set(folder.parts)) or any(folder.glob("*.dist-info"))


def _module_files(name: str) -> list[str]:
    """Return the file of a module, or the folders of a package without one."""
    held = getattr(sys.modules[name], "__dict__", {})
    file, path = held.get("__file__"), held.get("__path__")
    return [file] if isinstance(file, str) else [str(one) for one in path or ()]


@cache
def _top_package_folder(file: str) -> str:
    """Return the folder of a file, or of the package that it belongs to, with links resolved."""
    folder, name = os.path.split(file)
    return os.path.realpath(os.path.dirname(folder) if name.startswith("__init__.") else folder)


def needs_process_per_trial(method: Section) -> bool:
    """Tell whether each trial of a `method` section, which names a function, gets a process of its own."""
    return not method.get(REUSE_PROCESS_KEY, False)


def takes_optional_argument(function: TrainingFunction, name: str) -> bool:
    """Tell whether a function takes this one of `ALLOWED_ARGUMENTS`."""
    return name in inspect.signature(function).parameters


class FunctionTrialError(UserError):
    """A function yields something that cannot be used, or stops too early; the message says what."""


class FirstYieldError(FunctionTrialError):
    """A function's first yield lacks a metric that is needed, or is none of metrics: it is so in every trial."""


def check_training_function(function: Any, named: str) -> None:
    """Refuse what is not a training function.

    Args:
        named: what messages call it, as `method.function: 'my_module:train'`.

    Raises:
        UserError: says what it has to be.
    """
    how = "def train(config, seed): ...; yield {'val/accuracy': 0.7} after each epoch"
    if not inspect.isgeneratorfunction(function):
        raise UserError(f"{named}: is no generator function, as in {how}")
    parameters = inspect.signature(function).parameters
    needed = [
        key for key, given in parameters.items() if given.default is given.empty and given.kind not in _VARIADIC_KINDS
    ]
    if unknown := [key for key in needed if key not in ALLOWED_ARGUMENTS or parameters[key].kind is _POSITIONAL_ONLY]:
        raise UserError(f"{named}: takes {', '.join(unknown)}; it may take {', '.join(ALLOWED_ARGUMENTS)}")
    if "config" not in parameters:
        raise UserError(f"{named}: does not take config, as in {how}")


def check_takes_fold(name: str, arguments: Sequence[str], folds: int | None) -> None:
    """Refuse a function with these arguments that is not told which of the folds validates.

    Raises:
        UserError: says what it has to take.
    """
    if folds is not None and "fold" not in arguments:
        raise UserError(
            f"data.folds: {folds} given, but {name} takes no fold: it must be told which one validates, as in "
            "def train(config, seed, fold, folds)"
        )


_VARIADIC_KINDS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_POSITIONAL_ONLY = inspect.Parameter.POSITIONAL_ONLY


def _import_function(function: str, where: str) -> Any:
    module, _, name = function.partition(":")
    if not module or not name:
        raise UserError(f"method.function: {function!r} given, allowed is MODULE:NAME")
    _append_to_module_path(where)
    try:
        found = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # whatever the user's code does when it is imported
        why = f"{type(error).__name__}: {error_message(error)}"
        raise UserError(f"method.function: {module}: cannot be imported ({why}); looked for in {where}, too") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise UserError(f"method.function: {function!r}: {module} has no {name}")
        found = getattr(found, part)
    return found


def _unpickle_function(function: str, folder: Path) -> Any:
    """Load a function of a notebook or a script from its study's folder."""
    file = folder / PICKLED_FUNCTION_FILE
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror}): the function of this study lies there") from None
    if f"{PICKLE_PREFIX}{pickle_digest(content)}" != function:
        raise UserError(f"{file}: is not the function that this study was made with")
    try:
        return pickle.loads(content)
    except Exception as error:  # whatever is not installed, or not as it was
        raise UserError(f"{file}: cannot be read here ({type(error).__name__}: {error_message(error)})") from error


def _append_to_module_path(folder: str) -> None:
    """Add a folder to those in which modules are looked for, after all others."""
    if folder not in sys.path:
        sys.path.append(folder)


def traceback_from_function(error: BaseException) -> TracebackType | None:
    """Return an error's traceback from the frames of the user's training function on, or whole if it has none."""
    at = error.__traceback__
    while at and at.tb_frame.f_code.co_qualname != "FunctionTrial._next_yield":
        at = at.tb_next
    return at.tb_next if at and at.tb_next and not isinstance(error, UserError) else error.__traceback__


def function_error_location(error: BaseException) -> str | None:
    """Return where a training function raised an error, as `train (my_module.py, line 8)`; None: not a function.

    It is the last line of the function's own file that ran.
    """
    frames = traceback_from_function(error)
    if frames is error.__traceback__:
        return None
    first, *others = traceback.extract_tb(frames)
    last = next((one for one in reversed(others) if one.filename == first.filename), first)
    return f"{last.name} ({Path(last.filename).name}, line {last.lineno})"
