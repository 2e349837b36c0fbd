"""Run a study from Python: that of a study file, or one of a training function of one's own."""

import enum
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from study.api.argument_names import name_arguments_in_errors
from study.api.notebook import create_progress_view
from study.api.study_object import Study, warn_if_failed
from study.commands.check_metrics import misspelt_metric_warnings
from study.driver.driver_process import run_in_driver_process
from study.driver.run import StudyFileRequest, run_from_file
from study.errors import UserError
from study.home.folder import Home
from study.knobs import Value
from study.methods import OWN_FUNCTION_NAME
from study.spec import StudySpec
from study.spec.load import check_and_complete_document
from study.spec.yaml_document import YamlDocument, apply_overrides
from study.text import print_text, shorten_text
from study.training.function_loading import PICKLE_PREFIX, check_training_function, pickle_digest

ALLOWED_VALUE_TYPES = "numbers, text, true or false, None, paths, lists and mappings, and NumPy's numbers and arrays"


def to_study_file_value(value: object, place: str) -> Value:
    """Convert a value from Python to what a study file can have.

    NumPy's numbers become Python's, arrays and tuples lists, and paths text.

    Args:
        place: what messages call it: `fixed: rate`.

    Raises:
        UserError: it, or something within it, has no form in a study file.
    """
    numpy = sys.modules.get("numpy")  # a value of NumPy's cannot be there before it is imported
    if numpy and isinstance(value, numpy.generic | numpy.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return to_study_file_mapping(value, place, ".")
    if isinstance(value, list | tuple):
        return [to_study_file_value(one, f"{place}[{number}]") for number, one in enumerate(value)]
    if isinstance(value, PurePath):
        return str(value)
    if value is None or isinstance(value, bool):
        return value
    for kind in () if isinstance(value, enum.Enum) else (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    raise UserError(f"{place}: {_value_and_type(value)} given. Allowed are {ALLOWED_VALUE_TYPES}")


def to_study_file_mapping(values: object, place: str, joint: str = ": ") -> dict[str, Value]:
    """Convert a mapping of names to one of plain values.

    Args:
        place: what messages call it; they name a value of it by `place`, `joint` and its key.

    Raises:
        UserError: it is no mapping, a key is no text, or as `to_study_file_value`.
    """
    if not isinstance(values, Mapping):
        raise UserError(f"{place}: {_value_and_type(values)} given, a mapping of names to values is needed")
    for key in values:
        if not isinstance(key, str):
            raise UserError(f"{place}: the key {_value_and_type(key)} given, allowed are names, which are text")
    return {str(key): to_study_file_value(value, f"{place}{joint}{key}") for key, value in values.items()}


def _value_and_type(value: object) -> str:
    return f"{shorten_text(repr(value))} of type {type(value).__name__}"


TrainingFunction = Callable[..., Iterator[Mapping[str, object]]]


def build_function_study(
    train: TrainingFunction,
    *,
    space: Mapping[str, object],
    name: str,
    metric: str | Sequence[str],
    maximize: bool | Sequence[bool] | None,
    epochs: int,
    fixed: Mapping[str, object],
    baseline: Mapping[str, object] | None,
    assignments: list[str],
) -> tuple[StudySpec, bytes | None]:
    """Return the study of a function, checked, and the pickled function where no other process could import it.

    Raises:
        UserError: something given cannot be used.
    """
    check_training_function(train, f"train: {getattr(train, '__qualname__', repr(train))}")
    named, content = function_reference(train)
    domains = space_to_domains(space)
    plain_fixed = to_study_file_mapping(fixed, "fixed")
    values = to_study_file_mapping({} if baseline is None else baseline, "baseline")
    _check_space_and_fixed_keys(space=domains, fixed=plain_fixed, baseline=values)
    names = to_study_file_value(metric, "metric")
    direction = None if maximize is None else _maximize_to_direction(maximize)
    lengths = [len(given) if isinstance(given, list) else None for given in (direction, names)]
    if direction and lengths[0] != lengths[1]:
        raise UserError(f"maximize: {maximize!r} given, allowed is True or False for each metric of {names}")
    search: dict[str, Value] = {"metric": names, "space": {f"method.{key}": domains[key] for key in domains}}
    if direction is not None:
        search["direction"] = direction
    if baseline is not None:
        search["baseline"] = {f"method.{key}": value for key, value in values.items()}
    method = {"name": OWN_FUNCTION_NAME, "function": named, **plain_fixed}
    sections: dict[str, Value] = {"name": name, "method": method, "train": {"epochs": epochs}, "search": search}
    document = YamlDocument("study.run", sections)
    apply_overrides(document, assignments)
    try:
        spec = check_and_complete_document(document)
    except UserError as error:
        error.args = ("\n".join(map(_keys_to_arguments, str(error).splitlines())),)
        raise
    if outside := spec.space.values_outside(spec.search.baseline or {}):
        print_text(f"baseline: {', '.join(outside)}: outside the space, so the search tries no such value", sys.stderr)
    for warning in misspelt_metric_warnings(spec):
        print_text(f"warning: {warning}", sys.stderr)
    return spec, content


ARGUMENT_BY_KEY = {
    "search.space.method.": "space: ",
    "search.baseline.method.": "baseline: ",
    "search.baseline": "baseline",
    "search.direction": "maximize",
    "search.metric": "metric",
    "train.epochs": "epochs",
    "method.": "fixed: ",
    "name": "name",
}
"""What `run` calls the keys, or beginnings of keys, of a function's study."""

FUNCTION_STUDY_KEY_PATTERN = re.compile(rf"study\.run: ({'|'.join(map(re.escape, ARGUMENT_BY_KEY))})")


def _keys_to_arguments(line: str) -> str:
    """Return a line of a message about a function's study, with the user's own names for arguments and their keys."""
    found = FUNCTION_STUDY_KEY_PATTERN.match(line)
    if found is None:
        return line
    problem = line[found.end() :].replace("method.function, ", "").replace("method.", "")
    return f"{ARGUMENT_BY_KEY[found[1]]}{problem}"


def space_to_domains(space: Mapping[str, object]) -> dict[str, Value]:
    """Return the search space, by key, as a study file has it.

    Raises:
        UserError: it is no mapping of names to domains.
    """
    kept = dict.fromkeys(space) if isinstance(space, Mapping) else space
    return {key: to_domain(key, space[key]) for key in to_study_file_mapping(kept, "space")}


def to_domain(key: str, given: object) -> Value:
    """Return the domain of a key as a study file has it.

    A list or array is choices, a pair (low, high) a range, and (low, high, "log") a range on a log scale.

    Raises:
        UserError: it is none of these, or holds what a study file cannot.
    """
    is_domain = isinstance(given, Mapping | list | tuple) or hasattr(given, "tolist")
    values = to_study_file_value(given, f"space: {key}") if is_domain else None
    if isinstance(values, dict):
        return values
    if isinstance(values, list) and not isinstance(given, tuple):
        return {"choices": values}
    if isinstance(values, list) and (len(values) == 2 or values[2:] == ["log"]):
        return {"low": values[0], "high": values[1], **({"log": True} if values[2:] else {})}
    raise UserError(
        f"space: {key}: {given!r} given; a range is (low, high), one on a log scale (low, high, 'log'), choices "
        "are a list. A value that stays as it is goes into fixed"
    )


def function_reference(train: TrainingFunction) -> tuple[str, bytes | None]:
    """Return how a study file names a function, and its pickle where that is the only way.

    Raises:
        UserError: it can neither be imported by others nor pickled.
    """
    module, name = getattr(train, "__module__", "__main__"), getattr(train, "__qualname__", "<lambda>")
    if module != "__main__" and _find_in_module(module, name) is train:
        return f"{module}:{name}", None
    import cloudpickle

    try:
        content: bytes = cloudpickle.dumps(train)
    except Exception as error:  # whatever an object that it refers to does
        raise UserError(
            f"train: {name} cannot be pickled ({type(error).__name__}: {error}): it refers to something that cannot be "
            "sent to another process. Make that within the function, or put the function into a module"
        ) from None
    return f"{PICKLE_PREFIX}{pickle_digest(content)}", content


def _find_in_module(module: str, name: str) -> object:
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _check_space_and_fixed_keys(**given: Mapping[str, object]) -> None:
    for argument, values in given.items():
        if taken := [key for key in ("name", "function") if key in values]:
            raise UserError(f"{argument}: {taken[0]}: is taken, the study file has the function there. Another key")
    if both := sorted(given["space"].keys() & given["fixed"].keys()):
        raise UserError(f"fixed: {', '.join(both)}: in space, too; a value to compare with goes into baseline")


def _maximize_to_direction(maximize: object) -> str | list[str]:
    """Return `maximize` as `search.direction`."""
    given = [maximize] if isinstance(maximize, bool) else maximize
    if not isinstance(given, list | tuple) or not all(isinstance(one, bool) for one in given):
        raise UserError(f"maximize: {maximize!r} given, allowed are True, False, or a list of them for several metrics")
    words = ["max" if one else "min" for one in given]
    return words[0] if isinstance(maximize, bool) else words


@name_arguments_in_errors
def run(
    spec: str | Path | None = None,
    *,
    train: TrainingFunction | None = None,
    space: Mapping[str, object] | None = None,
    metric: str | Sequence[str] | None = None,
    maximize: bool | Sequence[bool] | None = None,
    epochs: int | None = None,
    trials: int | None = None,
    fixed: Mapping[str, object] | None = None,
    baseline: Mapping[str, object] | None = None,
    set: Mapping[str, object] | None = None,
    profile: str | None = None,
    name: str | None = None,
    resume: bool = False,
    address: str | None = None,
    quiet: bool = False,
) -> Study:
    """Run a study to its end, here or on a Ray cluster. In a notebook its progress is one line that updates.

    The study is that of a study file, or of a training function of one's own: `train`, with the arguments after it.

    Ctrl-C, or a notebook's stop button, stops it cleanly: the study that is returned is then not complete, and
    goes on with `resume()`. It runs in a separate process, which stops in the same way when this process ends.

    Args:
        spec: a shipped study file's name, or the path of a YAML file.
        train: a generator function of `config` and, where it takes them, `seed`, `epochs` and `checkpoint`, that yields
            a mapping of metrics after each epoch. The page python.md of the guide says what it may do.
        space: what is searched of `config`, by key: a range (low, high), a list of choices, or a domain as a study file
            has it.
        metric: `val/NAME`, which the function must yield in each epoch; or several of them. By default `val/accuracy`.
        maximize: whether a higher value of the metric is better; for several metrics a list. It may be left out for the
            metrics of this software, as `val/accuracy` and `val/loss`; any other, as `val/f1` or `val/score`, needs it.
        epochs: of a trial; by default 1.
        trials: number of configurations, for a study file too; takes precedence over `search.trials` in `set`.
        fixed: the rest of `config`.
        baseline: a value for every searched key, a configuration that all others are compared with.
        set: keys to override, by their dotted names.
        profile: a block of overrides of the file.
        name: run under another name.
        resume: go on with the study of this name if it exists already.
        address: of a Ray cluster, from within its network.
        quiet: show no progress.

    Returns:
        The study. Its `state` is `failed`, and its `best` None, where no trial could be completed.

    Raises:
        UserError: something given cannot be used, or the function's first yield lacks a metric that is named; no study
            is left behind.
        study.errors.StudyStoppedError: the study had to stop, through no fault of the user's.

    Example:
        >>> import study
        >>> def train(config, epochs):
        ...     for epoch in range(1, epochs + 1):
        ...         yield {"val/accuracy": 1 - config["rate"] ** epoch}
        >>> mine = study.run(train=train, name="mine", space={"rate": [0.1, 0.5]}, epochs=2, quiet=True)
        >>> mine.best.params
        {'method.rate': 0.1}
        >>> quickstart = study.run("quickstart", trials=8, name="eight")  # doctest: +SKIP
    """
    given: StudySpec | StudyFileRequest
    content = None
    if callable(spec):
        raise UserError("spec: a function given. A training function is the argument train: study.run(train=...)")
    if (spec is None) == (train is None):
        raise UserError("study.run: give either a study file or train, a function")
    assignments = to_assignments({} if set is None else set)
    assignments += [] if trials is None else to_assignments({"search.trials": trials})
    if train is not None:
        _check_function_arguments(name, space, profile)
        given, content = build_function_study(
            train,
            space={} if space is None else space,
            name=name or "",
            metric="val/accuracy" if metric is None else metric,
            maximize=maximize,
            epochs=1 if epochs is None else epochs,
            fixed={} if fixed is None else fixed,
            baseline=baseline,
            assignments=assignments,
        )
    else:
        of_function: dict[str, object] = {"space": space, "fixed": fixed, "baseline": baseline, "maximize": maximize}
        of_function |= {"metric": metric, "epochs": epochs}
        if without := [key for key, value in of_function.items() if value is not None]:
            keys = {key: KEY_BY_ARGUMENT[key] for key in without if key in KEY_BY_ARGUMENT}
            as_set = f", as set={{{', '.join(f'{name!r}: ...' for name in keys.values())}}}" if keys else ""
            told = f"{', '.join(without)}: goes with train"
            raise UserError(f"study.run: {told}; to change keys of a study file: set{as_set}")
        given = StudyFileRequest(str(spec), tuple(assignments), profile, name)
    home, view = Home.locate(), create_progress_view(quiet)
    options = {"address": address, "function": content, "or_resume": resume}
    ended = run_in_driver_process(view, home, run_from_file, given, **options)
    return warn_if_failed(Study(home, ended))


KEY_BY_ARGUMENT = {
    "metric": "search.metric",
    "epochs": "train.epochs",
    "baseline": "search.baseline",
    "space": "search.space",
}
"""Keys of a study file that correspond to arguments beside `train`."""


def _check_function_arguments(name: str | None, space: Mapping[str, object] | None, profile: str | None) -> None:
    """Refuse a study of a function without a name or a space, or with a profile."""
    if name is None or space is None:
        raise UserError("study.run: with train, a name and a space are needed")
    if profile is not None:
        raise UserError("study.run: profile: goes with a study file")


def to_assignments(values: Mapping[str, object]) -> list[str]:
    """Return values by dotted key as `--set` takes them; what JSON writes is read as the same value.

    Raises:
        UserError: a value has no form in a study file, or is a whole section.
    """
    plain = to_study_file_mapping(values, "set")
    if section := next((key for key, value in plain.items() if isinstance(value, dict) and "." not in key), None):
        raise UserError(f"set: {section}: would replace the whole section. Allowed are dotted names: '{section}.KEY'")
    return [f"{key}={json.dumps(value)}" for key, value in plain.items()]
