"""Studies run from Python."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from study.api.functions import Function, function_study
from study.api.notebook import view
from study.api.plain import plain_mapping
from study.api.studies import Study
from study.commands import run as running
from study.errors import UserError
from study.home.folder import Home
from study.spec import load_study


def run(
    spec: str | Path | None = None,
    *,
    train: Function | None = None,
    space: Mapping[str, Any] | None = None,
    metric: str | Sequence[str] = "val/accuracy",
    maximize: bool | Sequence[bool] | None = None,
    epochs: int = 1,
    fixed: Mapping[str, Any] | None = None,
    baseline: Mapping[str, Any] | None = None,
    set: Mapping[str, Any] | None = None,
    profile: str | None = None,
    name: str | None = None,
    resume: bool = False,
    address: str | None = None,
    quiet: bool = False,
) -> Study:
    """Run a study here, or on a Ray cluster, to its end. In a notebook its progress is one line that updates.

    It is that of a study file, or of a training function of one's own: `train`, with the arguments that follow it.

    Ctrl-C, or a notebook's stop button, stops it in good order: what is given back is then not complete, and goes on
    with `resume()`.

    Args:
        spec: a shipped study file's name, or the path of a YAML file.
        train: a generator function of `config` and, where it takes them, `seed`, `epochs` and `checkpoint`, that yields
            a mapping of metrics after each epoch. The page python.md of the guide says what it may do.
        space: what is searched of `config`, by key: a range (low, high), a list of choices, or a domain as a study file
            has it.
        metric: `val/NAME`, which the function must yield in each epoch; or several of them.
        maximize: whether a higher value of the metric is better; of several metrics a list. It may be left out where
            the name says it, as `val/f1` and `val/log_loss` do; it is needed for one that does not, as `val/score`.
        epochs: of a trial.
        fixed: the rest of `config`.
        baseline: values of what is searched that all others are compared with.
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
        >>> def train(config, epochs):
        ...     for epoch in range(1, epochs + 1):
        ...         yield {"val/accuracy": 1 - config["rate"] ** epoch}
        >>> mine = study.run(train=train, name="mine", space={"rate": [0.1, 0.5]}, epochs=2, quiet=True)
        >>> mine.best.params
        {'method.rate': 0.1}
        >>> quickstart = study.run("quickstart", set={"search.trials": 8}, name="eight")  # doctest: +SKIP
    """
    content = None
    if (spec is None) == (train is None):
        raise UserError("study.run: give either a study file or train, a function")
    if train is not None:
        _check_given(name, space, profile)
        loaded, content = function_study(
            train,
            space={} if space is None else space,
            name=name or "",
            metric=metric,
            maximize=maximize,
            epochs=epochs,
            fixed={} if fixed is None else fixed,
            baseline=baseline,
            assignments=assignments({} if set is None else set),
        )
    else:
        of_function = {"space": space, "fixed": fixed, "baseline": baseline, "maximize": maximize}
        if given := [key for key, value in of_function.items() if value not in (None, {})]:
            raise UserError(f"study.run: {', '.join(given)}: goes with train; to change keys of a study file: set")
        loaded = load_study(str(spec), assignments({} if set is None else set), profile, name)
    home = Home.locate()
    begin = running.start_or_resume if resume else running.start
    return Study(home, begin(home, loaded, view(quiet), address, function=content).folder)


def _check_given(name: str | None, space: Mapping[str, Any] | None, profile: str | None) -> None:
    """Refuse a study of a function that lacks its name or its space, or has what goes with a file."""
    if name is None or space is None:
        raise UserError("study.run: with train, a name and a space are needed")
    if profile is not None:
        raise UserError("study.run: profile: goes with a study file")


def assignments(values: Mapping[str, Any]) -> list[str]:
    """Values by dotted key as `--set` has them; what JSON writes is read as the same value.

    Raises:
        UserError: a value has no form in a study file.
    """
    return [f"{key}={json.dumps(value)}" for key, value in plain_mapping(values, "set").items()]
