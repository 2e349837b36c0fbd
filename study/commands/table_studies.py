"""Studies whose results make one table, a suite's many or a published table's one: what is left of them is run in turn,
those that began with other settings are refused, and the table is written in every form."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from study.commands import run as running
from study.commands.run_end import RunEnd
from study.commands.session import View
from study.files import write_whole, writing
from study.home.folder import Home, StudyFolder
from study.home.record import StudyRecord
from study.spec import StudySpec
from study.sweep.shared_ray import SharedRay
from study.tracking import Tracker

MOST_DIFFERENCES = 20
"""Keys that a refusal names."""


def run_left(
    home: Home,
    specs: Sequence[StudySpec],
    view: View,
    tell: Callable[[int], None] = lambda _: None,
    address: str | None = None,
    shared: SharedRay | None = None,
) -> Iterator[RunEnd]:
    """Run studies in their order, each from where it is, and give their ends; the last is of one that was stopped.

    Args:
        tell: is told the place of each that is not over, from 1.
        address, shared: see `study.commands.run.start`.
    """
    for place, spec in enumerate(specs, 1):
        if is_over(home, spec):
            continue
        tell(place)
        end = running.start_or_resume(home, spec, view, address, shared)
        yield end
        if end.record.state not in ("complete", "failed"):
            return


def is_over(home: Home, spec: StudySpec) -> bool:
    """Return whether a study is complete and all of it in MLflow."""
    folder = StudyFolder(home.path / spec.name)
    if not folder.ledger_file.is_file() or StudyRecord.load(folder.ledger_file).state != "complete":
        return False
    return not Tracker(home, folder, spec).is_behind


def differences(home: Home, specs: Iterable[StudySpec]) -> Iterator[str]:
    """Keys in which studies differ from what they began with, of each key the first study that does."""
    seen = set()
    for spec in specs:
        folder = StudyFolder(home.path / spec.name)
        if not folder.spec_file.is_file() or (there := folder.spec()).hash == spec.hash:
            continue
        before, given = _flat(there.to_document()), _flat(spec.to_document())
        for key in sorted(before.keys() | given.keys()):
            if key not in seen and before.get(key) != given.get(key) and not key.startswith("resources."):
                seen.add(key)
                yield f"{key}: {before.get(key)!r} before, {given.get(key)!r} given ({spec.name})"


def listed(differing: Sequence[str]) -> str:
    """Differences as the lines of a message."""
    more = [f"and {len(differing) - MOST_DIFFERENCES} more"] if len(differing) > MOST_DIFFERENCES else []
    return "\n".join([*differing[:MOST_DIFFERENCES], *more])


def write_forms(folder: Path, name: str, forms: Mapping[str, str]) -> None:
    """Write a table into a folder, a file for each ending.

    Raises:
        UserError: they cannot be written.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for ending, text in forms.items():
            write_whole(folder / f"{name}.{ending}", text)


def _flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Nested values by dotted key."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= _flat(value, f"{above}{key}.") if isinstance(value, dict) and value else {f"{above}{key}": value}
    return found
