"""What several tests share: studies made from the shipped file, and ledgers written from a compact description."""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from study.errors import UserError
from study.home.events import EVENT_CLASSES
from study.home.ledger import Ledger
from study.home.ledger_line import Entry, LineChainState, encode_entry, last_line
from study.home.record import StudyRecord
from study.spec import StudySpec, load_study
from study.spec.load import check_and_complete_document
from study.spec.yaml_document import YamlDocument, apply_overrides

ROOT = Path(__file__).parents[2]
SEARCH = {
    "search.sampler": "tpe",
    "search.trials": 24,
    "search.early_stopping": {"name": "asha", "grace": 4, "reduction": 3},
}
"""A search long enough for tests of it, with rungs at 4 and 12 epochs; the shipped one may change as it is measured."""


def _with_search(text: str) -> str:
    """The shipped `fairkl_digits`, called quickstart, with this search, a line for each key."""
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("  # ")]
    for key, value in SEARCH.items():
        name = key.removeprefix("search.")
        (place,) = (place for place, line in enumerate(lines) if line.startswith(f"  {name}: "))
        flow = yaml.safe_dump(value, default_flow_style=True, sort_keys=False).removesuffix("...\n").strip()
        lines[place] = f"  {name}: {flow}\n"
    return "".join(lines)


QUICKSTART = _with_search(
    (ROOT / "search_spaces" / "fairkl_digits.yaml")
    .read_text(encoding="utf-8")
    .replace("name: fairkl_digits", "name: quickstart")
)


def quickstart(*assignments: str) -> StudySpec:
    """The shipped `fairkl_digits`, called quickstart, with `SEARCH` and overrides."""
    changes = [f"{key}={json.dumps(value)}" for key, value in SEARCH.items()]
    return load_study("fairkl_digits", ["name=quickstart", *changes, *assignments])


def searching(space: str, *others: str) -> StudySpec:
    """The quickstart with this space, and nothing enqueued unless others say so."""
    return quickstart("search.baseline=null", "search.trials=50", f"search.space={space}", *others)


def refused(*given: str, of: Callable[..., StudySpec] = quickstart) -> str:
    """What the quickstart with these overrides is refused with; `searching`: with this space."""
    with pytest.raises(UserError) as caught:
        of(*given)
    return str(caught.value)


def named(name: str) -> StudySpec:
    """The shipped `fairkl_digits`, called quickstart, by another name, whatever that is."""
    return replace(quickstart(), name=name)


def reread(spec: StudySpec) -> StudySpec:
    """The study that the resolved file of a study stands for."""
    document = YamlDocument("memory", {})
    apply_overrides(document, [f"all={spec.to_yaml()}"])
    return check_and_complete_document(YamlDocument("memory", document.values["all"]))


@dataclass
class Told:
    """A trial as a test tells it: one value of the metric per reported epoch.

    `further` metrics are the same at each epoch. `state` waiting: decided on; running: started; any other: ended so.
    """

    stage: str
    values: list[float | None]
    state: str = "complete"
    params: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    repeats: int | None = None
    tested: dict[str, float] = field(default_factory=dict)
    metric: str = "val/accuracy"
    further: dict[str, float] = field(default_factory=dict)
    fold: int | None = None


def events(*trials: Told) -> Iterator[tuple[str, dict[str, Any]]]:
    """Ledger events of a session in which these trials, numbered from 0, ran one after the other."""
    yield "opened", {"owner": "ada", "version": "1", "data": "d", "spec": "s", "libraries": {}}
    for number, one in enumerate(trials):
        decided = {"stage": one.stage, "params": one.params, "seed": one.seed, "repeats": one.repeats}
        decided |= {} if one.fold is None else {"fold": one.fold}
        yield "trial", {"trial": number, **decided}
        if one.state == "waiting":
            continue
        yield "started", {"trial": number, "node": "here"}
        for epoch, value in enumerate(one.values, start=1):
            yield (
                "report",
                {"trial": number, "epoch": epoch, "metrics": {one.metric: value, "train/loss": 1.0, **one.further}},
            )
        if one.state != "running":
            yield "ended", {"trial": number, "state": one.state}
        if one.tested:
            yield "tested", {"trial": number, "metrics": one.tested}


def record(*trials: Told) -> StudyRecord:
    """The record of a study in which these trials ran."""
    found: list[Entry] = [{"event": "created", "id": "study", "time": 0.0}]
    for at, (name, fields) in enumerate(events(*trials), 1):
        known = {key: value for key, value in fields.items() if value is not None}
        found.append({"event": name, "time": float(at), **known})
    return StudyRecord.from_entries(found)


def write_ledger(path: Path, *trials: Told) -> None:
    """Append the same to the ledger on disk, which begins here if it does not exist.

    Each event is a millisecond, which is as fine as a ledger's clock, after the one before it.
    """
    if not path.exists():
        Ledger.create(path)
    ledger, began = Ledger(path), time.time()
    for at, (name, fields) in enumerate(events(*trials)):
        ledger.append(EVENT_CLASSES[name](time=round(began + at / 1000, 3), **fields))
    ledger.close()


def append_event(path: Path, event: str, **fields: Any) -> None:
    """Append one event, of whatever version, to a ledger that nobody has open."""
    lines = path.read_bytes()
    chain = LineChainState.before_line(last := last_line(lines))
    assert chain.advance_if_next(last)
    path.write_bytes(
        lines + chain.complete_line(encode_entry({"event": event, "time": round(time.time(), 3), **fields}))
    )


COST = ("time/", "speed/", "memory/")


def timeless(epochs: Iterable[dict[str, float]]) -> list[dict[str, float]]:
    """The metrics of each epoch without what it cost, which no two runs share."""
    return [{name: value for name, value in one.items() if not name.startswith(COST)} for one in epochs]


def computed(record: StudyRecord) -> list[dict[str, Any]]:
    """All that a study computed, times aside."""
    return [
        {
            "stage": trial.stage,
            "params": trial.params,
            "seed": trial.seed,
            "state": trial.state,
            "reports": timeless(trial.reports),
            "tested": trial.test_metrics,
        }
        for trial in record.trials.values()
    ]
