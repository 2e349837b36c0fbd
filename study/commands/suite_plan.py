"""What is left of a suite, and how long that would take; and how far it is."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from study.analysis.statistics import formatting
from study.analysis.statistics.suite_table import NOT_YET
from study.commands import estimate
from study.commands.plan import rule_trials
from study.commands.suite import load
from study.home.folder import Home
from study.spec import StudySpec, rungs
from study.spec.suite import Suite
from study.text import markdown

HOUR = 3600.0


def status(home: Home, suite: Suite) -> dict[str, Any]:
    """How far each place of the table is, as plain values."""
    places: list[dict[str, Any]] = []
    for (method, label), cells in suite.by_place.items():
        studies = {cell.spec.name: study[1] if (study := load(home, cell)) else None for cell in cells}
        searches: list[dict[str, Any]] = [
            {
                "name": name,
                "state": record.state if record else NOT_YET,
                "epochs": sum(trial.epochs for trial in record.trials.values()) if record else 0,
                "seconds": record.busy if record else 0.0,
            }
            for name, record in studies.items()
        ]
        places.append({"method": method, "data": label, "searches": searches})
    states = Counter(search["state"] for place in places for search in place["searches"])
    return {"name": suite.name, "states": dict(states), "places": places}


def status_text(document: Mapping[str, Any]) -> str:
    """The same for people."""
    rows = []
    for place in document["places"]:
        states = Counter(search["state"] for search in place["searches"])
        epochs = sum(search["epochs"] for search in place["searches"])
        seconds = sum(search["seconds"] for search in place["searches"])
        told = ", ".join(f"{count} {state}" for state, count in states.items())
        rows.append([place["method"], place["data"], told, str(epochs), formatting.duration(seconds)])
    total = ", ".join(f"{count} {state}" for state, count in document["states"].items())
    table = markdown.table(["method", "data", "searches", "epochs", "time of trials"], rows)
    return f"suite {document['name']}: {total}\n\n{table}"


def plan(home: Home, suite: Suite, measure: bool) -> dict[str, Any]:
    """The trials and epochs of each place, what is left of them, and the time of that at the pace of what has run.

    Args:
        measure: run an epoch of each method on the first data set here, for those of which nothing has run.

    Raises:
        UserError: a configuration diverges, or its data are not there.
    """
    from study.sweep.ray_session import fitting

    state = status(home, suite)
    paces = _paces(suite, state, measure)
    places: list[dict[str, Any]] = []
    for place in state["places"]:
        spec = suite.by_place[place["method"], place["data"]][0].spec
        each = _epochs(spec)
        done = sum(search["epochs"] for search in place["searches"])
        left = sum(search["state"] != "complete" for search in place["searches"])
        half = sum(search["epochs"] for search in place["searches"] if search["state"] != "complete")
        epochs = {kind: max(0, left * count - half) for kind, count in each["epochs"].items()}
        pace = paces.get(place["method"])
        hours = None if pace is None else {kind: count * pace / HOUR for kind, count in epochs.items()}
        places.append(
            {
                "method": place["method"],
                "data": place["data"],
                "searches_left": left,
                "trials_per_search": each["trials"],
                "epochs_done": done,
                "epochs_left": epochs,
                "trial_hours_left": hours,
            }
        )
    first = suite.cells[0].spec
    return {
        "name": suite.name,
        "searches": len(suite.cells),
        "states": state["states"],
        "epochs_per_trial": first.epochs,
        "places": places,
        "seconds_per_epoch": paces,
        "trials_at_once_here": fitting(first.resources, first.search.concurrency),
    }


def plan_text(document: Mapping[str, Any]) -> str:
    """The same for people."""
    rows, places = [], document["places"]
    for place in places:
        hours = place["trial_hours_left"]
        rows.append(
            [
                place["method"],
                place["data"],
                str(place["searches_left"]),
                f"{place['trials_per_search']['search']} + at most {place['trials_per_search']['fresh']}",
                f"{place['epochs_left']['expected']}, at most {place['epochs_left']['most']}",
                formatting.MISSING if hours is None else formatting.duration(hours["expected"] * HOUR),
            ]
        )
    heads = ["method", "data", "searches left", "trials of each (search + fresh)", "epochs left", "time of trials"]
    told = ", ".join(f"{count} {state}" for state, count in document["states"].items())
    lines = [f"suite {document['name']}: {document['searches']} searches ({told}); nothing is started", ""]
    lines += [markdown.table(heads, rows), "", _time(document)]
    return "\n".join(lines)


def _time(document: Mapping[str, Any]) -> str:
    """How long what is left would take."""
    if not any(place["searches_left"] for place in document["places"]):
        return "nothing is left to run"
    epochs = sum(place["epochs_left"]["expected"] for place in document["places"])
    hours = [place["trial_hours_left"] for place in document["places"] if place["searches_left"]]
    if None in hours:
        return f"about {epochs} epochs are left; how long they take: --measure"
    at_once = document["trials_at_once_here"]
    seconds = sum(each["expected"] for each in hours) * HOUR
    here = f", about {formatting.duration(seconds / at_once)} on this machine ({at_once} at once)" if at_once else ""
    return (
        f"about {epochs} epochs are left: {formatting.duration(seconds)} of trials{here}; the start of each study, "
        "some seconds, comes on top"
    )


def _epochs(spec: StudySpec) -> dict[str, Any]:
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


def _paces(suite: Suite, state: Mapping[str, Any], measure: bool) -> dict[str, float]:
    """Seconds of an epoch by method: of what has run, else measured if that is wanted."""
    paces = {}
    for method in suite.methods:
        searches = [search for place in state["places"] if place["method"] == method for search in place["searches"]]
        epochs = sum(search["epochs"] for search in searches)
        if epochs:
            paces[method] = sum(search["seconds"] for search in searches) / epochs
        elif measure:
            paces[method] = estimate.measured_pace(suite.by_place[method, suite.data[0]][0].spec).seconds
    return paces
