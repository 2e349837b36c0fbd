"""How far a suite is, what is left of it, and how long that would take."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from study.analysis.statistics import formatting
from study.analysis.statistics.suite_table import NOT_YET
from study.commands import estimate
from study.commands.plan import rule_trials
from study.commands.suite import load
from study.home.folder import Home
from study.home.record import StudyRecord
from study.spec import StudySpec, rungs
from study.spec.suite import Suite
from study.text import rows_as_markdown

HOUR = 3600.0


def plan(home: Home, suite: Suite, measure: bool) -> dict[str, Any]:
    """How far each place of the table is, the epochs that are left of it, and their time at the pace of what has run.

    Args:
        measure: run an epoch of each method on the first data set here, for those of which nothing has run.

    Raises:
        UserError: a configuration diverges, or its data are not there.
    """
    from study.sweep.ray_session import fitting

    studies = {cell.spec.name: load(home, cell) for cell in suite.cells}
    records = {
        place: [study[1] if (study := studies[cell.spec.name]) else None for cell in cells]
        for place, cells in suite.by_place.items()
    }
    paces = {}
    for method in suite.methods:
        begun = [one for (of, _), here in records.items() if of == method for one in here if one is not None]
        if epochs := _epochs(begun):
            paces[method] = sum(record.busy for record in begun) / epochs
        elif measure:
            paces[method] = estimate.measured_pace(suite.by_place[method, suite.data[0]][0].spec).seconds
    places: list[dict[str, Any]] = []
    for (method, label), here in records.items():
        each = _of_one_search(suite.by_place[method, label][0].spec)
        open_ones = [record for record in here if record is None or record.state != "complete"]
        half = _epochs(record for record in open_ones if record is not None)
        epochs_left = {kind: max(0, len(open_ones) * count - half) for kind, count in each["epochs"].items()}
        pace = paces.get(method)
        places.append(
            {
                "method": method,
                "data": label,
                "states": _states(here),
                "searches_left": len(open_ones),
                "trials_per_search": each["trials"],
                "epochs_done": _epochs(record for record in here if record is not None),
                "epochs_left": epochs_left,
                "trial_hours_left": None
                if pace is None
                else {kind: count * pace / HOUR for kind, count in epochs_left.items()},
            }
        )
    first = suite.cells[0].spec
    return {
        "name": suite.name,
        "searches": len(suite.cells),
        "states": _states(record for here in records.values() for record in here),
        "epochs_per_trial": first.epochs,
        "places": places,
        "seconds_per_epoch": paces,
        "trials_at_once_here": fitting(first.resources, first.search.concurrency),
    }


def text(document: Mapping[str, Any]) -> str:
    """The same for people."""
    rows = [
        [
            place["method"],
            place["data"],
            _told(place["states"]),
            f"{place['trials_per_search']['search']} + at most {place['trials_per_search']['fresh']}",
            str(place["epochs_done"]),
            f"{place['epochs_left']['expected']}, at most {place['epochs_left']['most']}",
            formatting.MISSING if (hours := place["trial_hours_left"]) is None else _duration(hours["expected"]),
        ]
        for place in document["places"]
    ]
    heads = ["method", "data", "searches", "trials of each (search + fresh)", "epochs", "epochs left", "time of trials"]
    head = (
        f"suite {document['name']}: {document['searches']} searches ({_told(document['states'])}); nothing is started"
    )
    return "\n".join([head, "", rows_as_markdown(heads, rows), "", _time(document)])


def _time(document: Mapping[str, Any]) -> str:
    """How long what is left would take."""
    left = [place for place in document["places"] if place["searches_left"]]
    if not left:
        return "nothing is left to run"
    epochs = sum(place["epochs_left"]["expected"] for place in left)
    hours = [place["trial_hours_left"] for place in left]
    if None in hours:
        return f"about {epochs} epochs are left; how long they take: --measure"
    at_once, expected = document["trials_at_once_here"], sum(each["expected"] for each in hours)
    here = f", about {_duration(expected / at_once)} on this machine ({at_once} at once)" if at_once else ""
    return (
        f"about {epochs} epochs are left: {_duration(expected)} of trials{here}; the start of each study, "
        "some seconds, comes on top"
    )


def _of_one_search(spec: StudySpec) -> dict[str, Any]:
    """Trials and epochs of one search: `most` if none were pruned and all rules picked others, and `expected`."""
    stopping, plan = spec.search.early_stopping, spec.search.confirm
    reported = [f"val/{name}" for name in spec.available[0]]
    complete = round(spec.trials * rungs.expected_complete(stopping, spec.epochs))
    most, expected = (rule_trials(spec, plan, count, reported) for count in (spec.trials, complete))
    searched = spec.trials * rungs.expected_epochs(stopping, spec.epochs)
    return {
        "trials": {"search": spec.trials, "fresh": most},
        "epochs": {
            "most": (spec.trials + most) * spec.epochs,
            "expected": round(searched + expected * spec.epochs),
        },
    }


def _epochs(records: Iterable[StudyRecord]) -> int:
    return sum(trial.epochs for record in records for trial in record.trials.values())


def _states(records: Iterable[StudyRecord | None]) -> dict[str, int]:
    """How many searches are in which state."""
    return dict(Counter(record.state if record else NOT_YET for record in records))


def _told(states: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in states.items())


def _duration(hours: float) -> str:
    return formatting.duration(hours * HOUR)
