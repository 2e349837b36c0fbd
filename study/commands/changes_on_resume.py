"""What may change when a study goes on: where its trials run and how many at once, not what they compute."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from study.errors import UserError
from study.home.folder import Home, StudyFolder
from study.home.record import StudyRecord
from study.knobs import Scalar, Value
from study.ranking import Results
from study.spec.load import check_and_complete_document
from study.spec.study_spec import PLACEMENT_KEYS, StudySpec
from study.spec.yaml_document import apply_profile, parse_assignment, read_study_file
from study.text import flatten_mapping, format_parameter, shorten_text

REMEDY_BY_UNCHANGEABLE_KEY = {
    "search.trials": "More configurations: study resume {name} --trials +50",
    "train.epochs": "Trials of more epochs are another study: study run FILE --set train.epochs=40 --name NEW",
    "train.threads": "Trials are bit for bit the same only on as many threads",
    "search.confirm": "More fresh seeds: study confirm {name}",
}
"""What to do instead of changing a key, by the key or its section."""


def placement_on_resume(folder: StudyFolder, record: StudyRecord, assignments: Iterable[str]) -> dict[str, Scalar]:
    """Return the placement of a study's next driver: that of its last one, with these assignments.

    Args:
        assignments: each `key=value`.

    Raises:
        UserError: a key may not change or its value is not valid, or trials would move between CPU and GPU.
    """
    changed = [parse_assignment(assignment) for assignment in assignments]
    if not changed:
        return dict(record.placement)
    for key, _, place in changed:
        if key not in PLACEMENT_KEYS:
            raise UserError(f"{place}: {_unchangeable_key_message(key, folder.name)}")
    spec, document = folder.load_spec(), read_study_file(folder.spec_file)
    last = [(key, value, f"{key} of the last session") for key, value in record.placement.items()]
    for key, value, place in [*last, *changed]:
        document.override_key(key, value, place)
    apply_profile(document, None)
    changed_spec = check_and_complete_document(document, has_begun=True)
    if (changed_spec.resources.gpu > 0) is not (spec.resources.gpu > 0):
        one, other = ("a GPU", "the CPU") if spec.resources.gpu else ("the CPU", "a GPU")
        raise UserError(
            f"--set resources.gpu={changed_spec.resources.gpu:g}: the trials of {folder.name} run on {one}; on {other} "
            "the same trial has other numbers, and they would not compare. Run it anew: study run FILE --name OTHER"
        )
    return spec.replace_placement(changed_spec.placement_values).placement_overrides


@dataclass(frozen=True)
class PlacementChange:
    """Value of a key that a study's last driver had, and the one in its file."""

    now: str | float | None
    file: str | float | None


def placement_changes(results: Results) -> dict[str, PlacementChange]:
    """Return the keys whose value a study's last driver had otherwise than its file says."""
    own = results.spec.replace_placement(results.record.placement)
    return {
        key: PlacementChange(value, results.spec.placement_values[key])
        for key, value in own.placement_overrides.items()
    }


def placement_change_lines(changes: Mapping[str, PlacementChange]) -> list[str]:
    """Return the line that tells a user of changed keys; empty where none was changed."""
    words = [f"{key} {_value_text(one.now)} (in its file {_value_text(one.file)})" for key, one in changes.items()]
    return [f"placement {', '.join(words)}"] if words else []


MAX_NAMED_CHANGES = 6
"""Largest number of keys that a message names as changed."""


def study_file_changes_text(folder: StudyFolder, spec: StudySpec) -> str:
    """Return what differs in a study file from what its study began with: `train.epochs 200 -> 7`; empty: nothing."""
    began, now = (flatten_mapping(each.to_document()) for each in (folder.load_spec(), spec))
    keys = [key for key in dict.fromkeys([*began, *now]) if began.get(key) != now.get(key)]
    changes = [f"{key} {_value_or_not_given(began, key)} -> {_value_or_not_given(now, key)}" for key in keys]
    more = f" and {len(changes) - MAX_NAMED_CHANGES} more" if len(changes) > MAX_NAMED_CHANGES else ""
    return f"{', '.join(changes[:MAX_NAMED_CHANGES])}{more}"


def check_study_is_new(home: Home, spec: StudySpec) -> None:
    """Refuse a name that is taken, and say what differs where it is that of a study that began otherwise.

    Raises:
        UserError: see `study.home.folder.Home.check_name_is_free`.
    """
    folder, changed = home.study_or_none(spec.name), ""
    if folder is not None:
        with suppress(UserError):  # a study that cannot be read, whose name is refused all the same
            changed = study_file_changes_text(folder, spec)
    home.check_name_is_free(spec.name, changed)


def _value_or_not_given(values: Mapping[str, Value], key: str) -> str:
    return shorten_text(format_parameter(values[key])) if key in values else "not given"


def _unchangeable_key_message(key: str, name: str) -> str:
    section = ".".join(key.split(".")[:2])
    instead = REMEDY_BY_UNCHANGEABLE_KEY.get(key) or REMEDY_BY_UNCHANGEABLE_KEY.get(section)
    if instead is None:
        instead = "It decides what trials compute or are compared by. Another study: study run FILE --name OTHER"
    return f"cannot change while {name} goes on. {instead.format(name=name)}. What can: {', '.join(PLACEMENT_KEYS)}"


def _value_text(value: str | float | None) -> str:
    return "null" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
