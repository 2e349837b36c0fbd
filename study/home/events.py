"""The events of a ledger and what each has to hold, so that no reader of an event has to doubt it."""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, get_args
from zlib import crc32

import orjson
from annotated_types import Ge, Lt, MinLen
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from study.home.lease import LATEST
from study.text import quoted, shortened

# A line of the ledger: an event as JSON, numbered, and chained to the line before it by check values.
#
# The last key of each line is `chain`: the number of the event, from 0; the check value of the line before, 0 for the
# first; and the line's own, CRC-32 of all that stands before it in the line. So lines that were lost, doubled, moved
# or edited are told, and so are lines of two drivers, or of two copies of a ledger, that came into one file.
#
# It protects against accidents: of hands, editors, merges, synchronised folders and disks. It does not tell that lines
# are gone from the very end, where a ledger just ends earlier, and it is no signature: whoever wants to deceive can
# make new check values.

Event = dict[str, Any]

_CHAIN = re.compile(rb'"chain"\s*:\s*"(\d{1,18})\s+([0-9a-f]{8})\s+([0-9a-f]{8})"\s*}\s*\Z')
"""Also as an editor may have spaced it, so that what was edited is told as such."""

CHAIN_BYTES = 64
"""More than the key `chain` takes at the end of a line."""

_COUNTED = -len('01234567"}\n')
"""The place of a line's check value, counted from its end; the value is of what stands before it."""
_OWN, _BEFORE = slice(_COUNTED, _COUNTED + 8), slice(_COUNTED - 9, _COUNTED - 1)


def encode(event: Event) -> bytes:
    """An event as JSON. A number that is not finite becomes null, and a surrogate without its other half, from a file's
    name that is no UTF-8, a question mark.

    Raises:
        TypeError: it holds what JSON cannot, or a whole number beyond 64 bits.
    """
    try:
        return orjson.dumps(event)
    except TypeError:  # it takes no such surrogates
        text = json.dumps(event, ensure_ascii=False).encode("utf-8", "replace")
        return orjson.dumps(json.loads(text))


def decode(line: bytes) -> Event:
    """The event of a line, or of what `encode` gives.

    Raises:
        ValueError: it is no JSON, or no event.
        RecursionError: its JSON is nested deeper than any event's.
    """
    event = orjson.loads(line)
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        raise ValueError("no event")
    event.pop("chain", None)
    return event


def own_check(line: bytes) -> str:
    """The check value of a line, or of its end; empty where no line ends so."""
    told = _CHAIN.search(line)
    return told[3].decode() if told and line.endswith(b"\n") else ""


def last_line(ledger: bytes) -> bytes:
    """The last line of whole ones, with its end."""
    return ledger[ledger.rfind(b"\n", 0, -1) + 1 :]


class Chain:
    """The place between two lines of a ledger: what the next one has to be.

    Attributes:
        number: of the next event.
        before: the check value of the line before it, as it is written.
    """

    def __init__(self, number: int = 0, before: bytes = b"00000000") -> None:
        self.number, self.before = number, before

    @classmethod
    def at(cls, line: bytes) -> "Chain":
        """The place before a line, as that line tells it; the beginning, where it tells none."""
        told = _CHAIN.search(line)
        return cls(int(told[1]), told[2]) if told else cls()

    def close(self, event: bytes) -> bytes:
        """The whole line of an event that `encode` gave."""
        start = b'%b,"chain":"%d %b ' % (event[:-1], self.number, self.before)
        return b'%b%08x"}\n' % (start, crc32(start))

    def passes(self, line: bytes) -> bool:
        """Return whether a line belongs here; if so, this becomes the place behind it.

        Its number needs no look: it is among what its check value counts, and is right where that of a line follows.
        """
        own = line[_OWN]
        try:
            passes = line[_BEFORE] == self.before and int(own, 16) == crc32(line[:_COUNTED])
        except ValueError:
            return False
        if passes:
            self.number, self.before = self.number + 1, own
        return passes

    def problem(self, line: bytes) -> str:
        """Return why a line does not pass."""
        told = _CHAIN.search(line)
        if told is None:
            return _without_chain(line)
        if line.endswith(b"\r\n") and Chain(self.number, self.before).passes(line[:-2] + b"\n"):
            return (
                f"the line of event {self.number} ends with CR LF, as an editor or a synchronised folder may have made "
                "it; it is whole once each line ends with LF alone"
            )
        if int(told[3], 16) != crc32(line[:_COUNTED]):
            return f"the line of event {self.number} was changed after it was written"
        return (
            f"event {int(told[1])} does not follow the events before it: lines were lost, moved or doubled, or come "
            "from another driver or another copy of this study"
        )


def _without_chain(line: bytes) -> str:
    """Why a line without number and check values is none."""
    if not line.strip():
        return "a blank line, which was added by hand; the ledger is whole once it is taken out"
    try:
        decode(line)
    except (ValueError, RecursionError):
        return f"no event stands there, but {quoted(line.decode(errors='replace').strip())}"
    return (
        "an event without number and check values, which was added by hand, or by a version from before the first "
        "release, which this one does not read"
    )


# What an event says.

Stage = Literal["baseline", "search", "replicate", "confirm", "rule", "ablation", "final"]
State = Literal["waiting", "running", "complete", "pruned", "failed", "interrupted"]
Kind = Literal["PREEMPTED", "OOM", "DIVERGED", "BUG", "HUNG"]
STATES: tuple[State, ...] = get_args(State)
ENDED: tuple[State, ...] = ("complete", "pruned", "failed")

MOST = 2**63
"""Whole numbers are below."""

LONGEST = 60
"""Characters of a value that a message shows."""

Whole = Annotated[int, Ge(0), Lt(MOST)]
Metrics = dict[str, float | None]
Params = dict[str, bool | int | float | str | None]


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


class DataSet(TypedDict):
    """A data set, as `study.data.inventory` tells of it."""

    title: str
    digest: str
    sources: list[str]
    rows: dict[str, Whole]


class File(TypedDict):
    """A file that trials begin from or run."""

    name: str
    file: str
    sha256: str


class Groups(BaseModel):
    """Samples of each group by split, and names, see `study.data.cells`."""

    model_config = ConfigDict(extra="allow", strict=True)
    __pydantic_extra__: dict[str, list[list[Whole]]]
    classes: list[str] = []
    biases: list[str] = []


WHOLE, WHOLES = TypeAdapter(Whole), TypeAdapter(list[Whole])
TEXT, VERSIONS, FLAG = TypeAdapter(str), TypeAdapter(dict[str, str]), TypeAdapter(bool)
PARAMS, METRICS, KIND = TypeAdapter(Params), TypeAdapter(Metrics), TypeAdapter(Kind)
FILES, STEPS = TypeAdapter(list[File]), TypeAdapter(Annotated[list[Annotated[list[str], MinLen(1)]], MinLen(1)])
ANY_METRICS = TypeAdapter(dict[str, Any])
"""Of a report; `study.home.record.Epoch` looks at the rest, as there are so many."""

Checks = dict[str, TypeAdapter[Any]]

NEEDED: Mapping[str, Checks] = {
    "created": {"id": TEXT},
    "opened": {"owner": TEXT},
    "extended": {"trials": WHOLE},
    "lengthened": {"epochs": WHOLE, "trials": WHOLES},
    "retried": {"trials": WHOLES},
    "confirming": {"top": WHOLE, "seeds": WHOLE},
    "ablating": {"trial": WHOLE, "steps": STEPS, "first": WHOLE, "seeds": WHOLE},
    "evaluated": {"split": TEXT},
    "trial": {"trial": WHOLE, "stage": TypeAdapter(Stage), "params": PARAMS, "seed": WHOLE},
    "started": {"trial": WHOLE},
    "unusable": {"node": TEXT, "reason": TEXT},
    "report": {"trial": WHOLE, "epoch": WHOLE, "metrics": ANY_METRICS},
    "lost": {"trial": WHOLE, "attempt": WHOLE, "kind": KIND, "reason": TEXT},
    "ended": {"trial": WHOLE, "state": TypeAdapter(Literal["complete", "pruned", "failed"])},
    "tested": {"trial": WHOLE, "metrics": METRICS},
    "untested": {"trial": WHOLE, "reason": TEXT},
    "enqueued": {"request": TEXT, "params": PARAMS},
    "stopping": {"request": TEXT, "trial": WHOLE},
    "ending": {"request": TEXT},
    "refused": {"request": TEXT, "reason": TEXT},
    "closed": {"state": TypeAdapter(Literal["complete", "interrupted", "failed"])},
}
"""The fields of each event, beside its time; `study.home.ledger` says what it is."""

FURTHER: Mapping[str, Checks] = {
    "opened": {
        **dict.fromkeys(("version", "commit", "python", "node", "data", "dataset", "spec"), TEXT),
        **{"dirty": FLAG, "libraries": VERSIONS, "gpus": TypeAdapter(list[str]), "groups": TypeAdapter(Groups)},
        **{"datasets": TypeAdapter(dict[str, DataSet]), "weights": FILES, "function": FILES, "placement": PARAMS},
    },
    "confirming": {"rules": FLAG},
    "trial": {"repeats": WHOLE, "enqueued": FLAG},
    "started": {"node": TEXT, "epoch": WHOLE, "note": TEXT, "device": VERSIONS},
    "lost": {"alone": FLAG, "node_died": FLAG},
    "ended": {"kind": KIND, "reason": TEXT},
    "tested": {"note": TEXT},
    "closed": {"enough": TEXT},
}
"""The fields that an event may have."""

ANY: Checks = {"metrics": METRICS}
"""The fields that an event may have and that are not listed there."""

EVENTS = frozenset(NEEDED)
"""Events that a record is folded from: all that this version writes."""


def problem(event: Event) -> str | None:
    """Return what is wrong with an event's fields, each by itself; None: nothing. Of events that it does not know, a
    version looks at no more than it shows."""
    name, time = event["event"], event.get("time")
    if time is None or type(time) not in (int, float) or not 0 <= time < LATEST:
        return f"its time is {shortened(repr(time), LONGEST)}"
    asleep = event.get("asleep", 0.0)
    if type(asleep) not in (int, float) or not 0 <= asleep < LATEST:
        return f"its asleep is {shortened(repr(asleep), LONGEST)}"
    if name == "report" and type(event.get("trial")) is type(event.get("epoch")) is int:
        return None if isinstance(event.get("metrics"), dict) else "its metrics are none"  # nearly all are such events
    if missing := NEEDED.get(name, {}).keys() - event.keys():
        return f"it has no {min(missing)}"
    for field, kind in (NEEDED.get(name, {}) | FURTHER.get(name, ANY)).items():
        if field in event and not _is(kind, event[field]):
            return f"its {field} is {shortened(repr(event[field]), LONGEST)}"
    return None


def _is(kind: TypeAdapter[Any], value: Any) -> bool:
    try:
        kind.validate_python(value, strict=True)
    except ValidationError:
        return False
    return True
