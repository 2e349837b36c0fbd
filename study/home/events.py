"""The events of a ledger and what each has to hold, so that no reader of an event has to doubt it."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, get_args

from annotated_types import Ge, Lt, MinLen
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from study.home.lease import LATEST
from study.home.line import Event
from study.text import shortened

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
"""What each event has, beside its time; `study.home.ledger` says what it is."""

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
    "closed": {"enough": TEXT},
}
"""What an event may have."""

ANY: Checks = {"metrics": METRICS}
"""What an event may have that is not listed there."""

EVENTS = frozenset(NEEDED)
"""Events that a record is folded from: all that this version writes."""


def problem(event: Event) -> str | None:
    """Return what is wrong with an event's fields, each by itself; None: nothing. Of events that it does not know, a
    version looks at no more than it shows."""
    name, time = event["event"], event.get("time")
    if time is None or type(time) not in (int, float) or not 0 <= time < LATEST:
        return f"its time is {shortened(repr(time), LONGEST)}"
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
