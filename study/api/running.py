"""Studies run from Python."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from study.api.notebook import view
from study.api.studies import Study
from study.commands import run as running
from study.errors import UserError
from study.home.folder import Home
from study.spec import load_study


def run(
    spec: str | Path,
    *,
    set: Mapping[str, Any] | None = None,
    profile: str | None = None,
    name: str | None = None,
    resume: bool = False,
    address: str | None = None,
    quiet: bool = False,
) -> Study:
    """Run a study here, or on a Ray cluster, to its end. In a notebook its progress is one line that updates.

    Ctrl-C, or a notebook's stop button, stops it in good order: what is given back is then not complete, and goes on
    with `resume()`.

    Args:
        spec: a shipped study file's name, or the path of a YAML file.
        set: keys to override, by their dotted names.
        profile: a block of overrides of the file.
        name: run under another name.
        resume: go on with the study of this name if it exists already.
        address: of a Ray cluster, from within its network.
        quiet: show no progress.

    Raises:
        UserError: something given cannot be used; nothing was started.
        study.errors.Stopped: the study had to stop, through no fault of the user's.

    Example:
        >>> import study
        >>> mine = study.run("quickstart", set={"search.trials": 8}, name="mine")  # doctest: +SKIP
        >>> mine.best.params  # doctest: +SKIP
        {'method.alpha': 0.03, 'method.lambda': 1.7, 'method.epsilon': 0.25}
    """
    loaded = load_study(str(spec), assignments(set or {}), profile, name)
    home = Home.locate()
    begin = running.start_or_resume if resume else running.start
    return Study(home, begin(home, loaded, view(quiet), address).folder)


def assignments(values: Mapping[str, Any]) -> list[str]:
    """Values by dotted key as `--set` has them; what JSON writes is read as the same value.

    Raises:
        UserError: a value has no form in a study file.
    """
    texts = []
    for key, value in values.items():
        try:
            texts.append(f"{key}={json.dumps(value)}")
        except (TypeError, ValueError):
            allowed = "numbers, text, true or false, lists and mappings"
            raise UserError(f"set: {key}: {type(value).__name__} given, allowed are {allowed}") from None
    return texts
