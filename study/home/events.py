"""The events of a ledger and what each has to hold, so that no reader of an event has to doubt it."""

from collections.abc import Callable, Container, Mapping
from typing import Any, Literal, NamedTuple, Protocol, get_args

from study.home.line import Event

Stage = Literal["baseline", "search", "replicate", "confirm", "rule", "ablation", "final"]
State = Literal["waiting", "running", "complete", "pruned", "failed", "interrupted"]
Kind = Literal["PREEMPTED", "OOM", "DIVERGED", "BUG", "HUNG"]
STATES: tuple[State, ...] = get_args(State)
ENDED: tuple[State, ...] = ("complete", "pruned", "failed")

LATEST = 253_402_300_800.0
"""The end of the year 9999, in seconds since the epoch: the last time that can be shown."""

MOST = 2**63
"""Whole numbers are below."""

_NUMBERS = (int, float)


class Lengthened(NamedTuple):
    """The trials that go on beyond their end, and to which epoch.

    Attributes:
        epochs: the last one of each of them from now on.
        trials: their numbers.
    """

    epochs: int
    trials: tuple[int, ...]


class Ablating(NamedTuple):
    """Whose way from the baseline is to be measured, see `study.ranking.ablation`.

    Attributes:
        trial: the number of the trial whose configuration it leads to.
        steps: the keys that each step moves, in order.
        first, seeds: its training seeds: `seeds` of them, from `first` on.
    """

    trial: int
    steps: tuple[tuple[str, ...], ...]
    first: int
    seeds: int


def _whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < MOST


def _wholes(value: Any) -> bool:
    return isinstance(value, list) and all(map(_whole, value))


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _among(names: Container[Any]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in names


def _number(value: Any) -> bool:
    return value is None or type(value) in _NUMBERS


def _metrics(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_number, value.values()))


def _mapping(value: Any) -> bool:
    """Return whether a value is a mapping; `study.home.record.Epoch` looks at the rest, as there are so many."""
    return isinstance(value, dict)


def _params(value: Any) -> bool:
    return isinstance(value, dict) and not any(isinstance(param, dict | list) for param in value.values())


def _lessons(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(lesson, dict) and _params(lesson.get("params")) and _metrics(lesson.get("values"))
        for lesson in value
    )


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _steps(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(step and _texts(step) for step in value)


def _versions(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_text, value.values()))


def _groups(value: Any) -> bool:
    """Samples of each group by split, and names, see `study.data.cells`."""
    return isinstance(value, dict) and all(
        _texts(part) if name in ("classes", "biases") else _table(part) for name, part in value.items()
    )


def _inventory(value: Any) -> bool:
    """Data sets by key, see `study.data.inventory`."""
    return isinstance(value, dict) and all(isinstance(one, dict) and _told_of(one) for one in value.values())


def _told_of(one: Mapping[str, Any]) -> bool:
    rows = one.get("rows")
    return (
        _text(one.get("title"))
        and _text(one.get("digest"))
        and _texts(one.get("sources"))
        and isinstance(rows, dict)
        and all(map(_whole, rows.values()))
    )


def _files(value: Any) -> bool:
    """Return whether a value lists files that trials begin from or run, each with name, file and SHA-256."""
    return isinstance(value, list) and all(
        isinstance(one, dict) and all(_text(one.get(key)) for key in ("name", "file", "sha256")) for one in value
    )


def _table(value: Any) -> bool:
    return isinstance(value, list) and all(map(_wholes, value))


Checks = Mapping[str, Callable[[Any], bool]]

NEEDED: Mapping[str, Checks] = {
    "created": {"id": _text},
    "opened": {"owner": _text},
    "extended": {"trials": _whole},
    "lengthened": {"epochs": _whole, "trials": _wholes},
    "retried": {"trials": _wholes},
    "confirming": {"top": _whole, "seeds": _whole},
    "ablating": {"trial": _whole, "steps": _steps, "first": _whole, "seeds": _whole},
    "learned": {"source": _text, "trials": _lessons, "left_out": _whole},
    "evaluated": {"split": _text},
    "trial": {"trial": _whole, "stage": _among(get_args(Stage)), "params": _params, "seed": _whole},
    "started": {"trial": _whole},
    "unusable": {"node": _text, "reason": _text},
    "report": {"trial": _whole, "epoch": _whole, "metrics": _mapping},
    "lost": {"trial": _whole, "attempt": _whole, "kind": _among(get_args(Kind)), "reason": _text},
    "ended": {"trial": _whole, "state": _among(ENDED)},
    "tested": {"trial": _whole, "metrics": _metrics},
    "untested": {"trial": _whole, "reason": _text},
    "enqueued": {"request": _text, "params": _params},
    "stopping": {"request": _text, "trial": _whole},
    "ending": {"request": _text},
    "refused": {"request": _text, "reason": _text},
    "closed": {"state": _among(("complete", "interrupted", "failed"))},
}
"""What each event has, beside its time; `study.home.ledger` says what it is."""

FURTHER: Mapping[str, Checks] = {
    "opened": {
        **dict.fromkeys(("version", "commit", "python", "node", "data", "dataset", "spec"), _text),
        **{"dirty": _flag, "libraries": _versions, "gpus": _texts, "groups": _groups, "datasets": _inventory},
        **{"weights": _files, "function": _files, "placement": _params},
    },
    "confirming": {"rules": _flag},
    "trial": {"repeats": _whole, "enqueued": _flag},
    "started": {"node": _text, "epoch": _whole, "note": _text, "device": _versions},
    "lost": {"alone": _flag, "node_died": _flag},
    "ended": {"kind": _among(get_args(Kind)), "reason": _text},
    "closed": {"enough": _text},
}
"""What an event may have."""

ANY: Checks = {"metrics": _metrics}
"""What an event may have that is not listed there."""

EVENTS = frozenset(NEEDED)
"""Events that a record is folded from: all that this version writes."""


def problem(event: Event) -> str | None:
    """Return what is wrong with an event's fields, each by itself; None: nothing. Of events that it does not know, a
    version looks at no more than it shows."""
    name, time = event["event"], event.get("time")
    if time is None or type(time) not in _NUMBERS or not 0 <= time < LATEST:
        return f"its time is {_told(time)}"
    if name == "report" and type(event.get("trial")) is type(event.get("epoch")) is int:
        return None if isinstance(event.get("metrics"), dict) else "its metrics are none"  # nearly all are such events
    for field, holds in NEEDED.get(name, {}).items():
        if field not in event:
            return f"it has no {field}"
        if not holds(event[field]):
            return f"its {field} is {_told(event[field])}"
    for field, holds in FURTHER.get(name, ANY).items():
        if field in event and not holds(event[field]):
            return f"its {field} is {_told(event[field])}"
    return None


class Trained(Protocol):
    """A trial, as far as its events depend on one another."""

    @property
    def epochs(self) -> int: ...

    @property
    def state(self) -> State: ...


def misplaced(event: Event, created: bool, trials: Mapping[int, Trained]) -> str | None:
    """Why an event without a `problem` cannot follow those before it; None: it can.

    Args:
        created: whether one of them created the study.
        trials: that they tell of.
    """
    name, number = event["event"], event.get("trial")
    if (name == "created") is created:
        return "a study is created once, by its first event"
    if name in ("lengthened", "retried") and (unknown := [one for one in event["trials"] if one not in trials]):
        return f"there is no trial {unknown[0]} yet"
    if name == "retried" and (odd := [one for one in event["trials"] if trials[one].state not in ("failed", "pruned")]):
        return f"trial {odd[0]} is {trials[odd[0]].state}"
    if number is None or name == "evaluated":
        return None
    trial = trials.get(number)
    if (name == "trial") is (trial is not None):
        return f"trial {number} was decided on before" if trial else f"there is no trial {number} yet"
    if name == "report" and trial and event["epoch"] != trial.epochs + 1:
        return f"epoch {event['epoch']} follows epoch {trial.epochs}"
    if name == "trial" and "repeats" in event and event["repeats"] not in trials:
        return f"there is no trial {event['repeats']} to repeat"
    return None


def _told(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]} ..."
