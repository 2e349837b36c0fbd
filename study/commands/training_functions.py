"""The user's own training functions: checked in a separate process, where what they do can do no harm, and run."""

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from study.data.folds import check_fold_exists
from study.errors import UserError
from study.home.folder import Home
from study.knobs import Value, text_list
from study.spec import StudySpec
from study.training.function_loading import (
    PICKLE_PREFIX,
    PICKLED_FUNCTION_FILE,
    check_takes_fold,
    function_import_folder,
    pickle_digest,
)
from study.upstream.child_process import python_command
from study.upstream.environment import ProcessKind, variables_of_processes

if TYPE_CHECKING:
    from study.training.function_trial import FunctionTrial

FUNCTION_CHECK_PROGRAM = """
import os
function, where, answer = json.loads(sys.argv[1])
from study.errors import UserError
from study.training.function_loading import ALLOWED_ARGUMENTS, takes_optional_argument, load_function
try:
    loaded = load_function(function, where)
    told = {"takes": [name for name in ALLOWED_ARGUMENTS if takes_optional_argument(loaded, name)]}
except UserError as error:
    told = {"error": str(error)[:5000]}  # a pipe that nobody reads meanwhile takes 64 KiB
os.write(answer, json.dumps(told).encode())
os._exit(0)
"""


def accepted_arguments(function: str, where: str) -> list[str]:
    """Return which of `study.training.function_loading.ALLOWED_ARGUMENTS` a function takes.

    It is loaded and checked in a separate process: importing its module may change anything in the process that does
    it, and log to MLflow.

    Args:
        where: as `study.training.function_loading.function_import_folder` gives it.

    Raises:
        UserError: see `study.training.function_loading.load_function`.
    """
    answers, answer = os.pipe()
    with open(answers, "rb") as told, tempfile.TemporaryDirectory() as folder:
        try:
            command = python_command(FUNCTION_CHECK_PROGRAM, json.dumps([function, where, answer]))
            runs = variables_of_processes(ProcessKind.FUNCTION) | {"MLFLOW_TRACKING_URI": Path(folder).as_uri()}
            ended = subprocess.run(command, pass_fds=[answer], env=os.environ | runs)
        finally:
            os.close(answer)
        found: dict[str, Value] = json.loads(told.read() or "{}")
    if "takes" not in found:
        why = f"its process ended with status {ended.returncode} while it was imported"
        raise UserError(str(found.get("error", f"method.function: {function!r}: {why}")))
    return text_list(found, "takes")


def check_and_pickle_function(home: Home, spec: StudySpec, given: bytes | None = None) -> bytes | None:
    """Check a study's own training function, and return the pickled one that its folder gets; None: it needs none.

    Args:
        given: the function as this process has pickled it.

    Raises:
        UserError: it is in no study of this home, or cannot be used.
    """
    if spec.training_function is None:
        return None
    if given is not None and spec.training_function == f"{PICKLE_PREFIX}{pickle_digest(given)}":
        return given
    folder = _study_folder_with_function(home, spec.training_function)
    accepted = accepted_arguments(spec.training_function, function_import_folder(spec.training_function, folder))
    check_takes_fold(spec.training_function, accepted, spec.folds)
    return (folder / PICKLED_FUNCTION_FILE).read_bytes() if spec.is_function_pickled else None


def build_function_trial(home: Home, spec: StudySpec, device: str, fold: int | None = None) -> "FunctionTrial":
    """Return a trial of the file's own configuration and training function, to be run in this process.

    Args:
        fold: on which it is validated; None: the first, where there are folds.

    Raises:
        UserError: see `check_and_pickle_function`.
    """
    from study.training.function_trial import FunctionTrial

    assert spec.training_function is not None
    where = function_import_folder(spec.training_function, _study_folder_with_function(home, spec.training_function))
    if fold is not None:
        check_fold_exists(fold, spec.folds)
    fold = 0 if fold is None and spec.folds else fold
    return FunctionTrial(spec.trial_config({}), where, spec.objective.needed_metrics, device, fold=fold)


def _study_folder_with_function(home: Home, function: str) -> Path:
    """Return the folder of the first study of a home that has a pickled function."""
    if not function.startswith(PICKLE_PREFIX):
        return home.path
    for folder in home.list_studies():
        file = folder.path / PICKLED_FUNCTION_FILE
        if file.is_file() and f"{PICKLE_PREFIX}{pickle_digest(file.read_bytes())}" == function:
            return folder.path
    raise UserError(
        f"method.function: {function!r}: no study in {home.path} has this function, which was defined in a notebook or "
        "a script. Put it into a module, and name it as MODULE:NAME"
    )
