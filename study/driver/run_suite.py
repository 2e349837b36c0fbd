"""Run a suite to its end as one study of studies, and make its tables in any state."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from study import data
from study.analysis.statistics import formatting
from study.analysis.statistics.suite_statistics import SEARCH_NOT_OVER
from study.analysis.tables import suite_tables
from study.analysis.tables.suite_tables import SuiteTables
from study.commands.cost import SECONDS_PER_HOUR, hours_in_words
from study.commands.plan import plan_budget
from study.driver.run import changed_keys_of_studies, format_changed_keys, run_remaining_studies, write_table_files
from study.driver.session import StudyView
from study.errors import StartInterruptedError, StudyStoppedError, UserError
from study.files import as_user_error_if_unwritable, check_output_path, safe_path_below, write_atomically, write_output
from study.home.folder import ANOTHER_HOME_REMEDY, Home, StudyFolder, check_home_format, write_home_format
from study.home.record import StudyRecord
from study.knobs import Section
from study.ranking import Results
from study.spec.suite import Suite, SuiteSearch
from study.spec.yaml_document import dump_yaml, read_study_file
from study.sweep.ray_runtime import SharedRay
from study.text import pluralise, rows_as_markdown, study_command

SUITE_FILE = "suite.yaml"
"""File with what a suite consisted of when it last ran, in its folder, beside its tables."""

TABLE_WRITERS: Mapping[str, Callable[[SuiteTables], str]] = {
    "md": suite_tables.suite_to_markdown,
    "tex": suite_tables.suite_to_latex,
    "csv": suite_tables.suite_to_csv,
}


@dataclass(frozen=True)
class SuiteEnd:
    """End of a run of a suite.

    Attributes:
        was_stopped: whether a signal ended it before its last search.
        failed_studies: names of those of which no trial is complete.
        untracked_studies: names of those of which MLflow lacks something.
    """

    was_stopped: bool
    failed_studies: list[str]
    untracked_studies: list[str]


def run_suite(
    home: Home, suite: Suite, given: str, view: StudyView, tell: Callable[[str], None], address: str | None
) -> SuiteEnd:
    """Run what is left of a suite, one study after the other in one Ray; what is complete stays as it is.

    Args:
        given: the file as the user named it, for messages.
        tell: is told which study comes next.
        address: of the Ray cluster that trials run on, see `study.cluster_addresses`; None: this machine.

    Raises:
        UserError: it began with other settings, the address is no cluster's, or a study cannot start.
        StudyStoppedError, StartInterruptedError: see `study.driver.run.run_new_study`; the same command goes on.
    """
    if address is not None and address.startswith(("http://", "https://")):
        raise UserError(f"--address {address}: a suite runs from within a cluster's network: auto, HOST:PORT")
    check_suite_unchanged(home, suite)
    for section in _data_sections_of_suite(suite):
        data.load_datasets([section])
    write_suite_file(home, suite)

    def told(place: int) -> None:
        tell(f"search {place} of {len(suite.searches)}: {suite.searches[place - 1].spec.name}")

    with _say_how_to_continue(given), SharedRay() as shared:
        ends = list(
            run_remaining_studies(home, [search.spec for search in suite.searches], view, told, address, shared)
        )
    found = suite_tables_so_far(home, suite)
    tables = {ending: form(found) for ending, form in TABLE_WRITERS.items()}
    write_table_files(suite_folder(home, suite), "table", tables)
    return SuiteEnd(
        any(end.record.state not in ("complete", "failed") for end in ends),
        [end.spec.name for end in ends if end.record.state == "failed"],
        [end.spec.name for end in ends if end.untracked_reason],
    )


@contextmanager
def _say_how_to_continue(given: str) -> Iterator[None]:
    """Add to an error that stops a study how its suite goes on."""
    command = study_command("suite", given)
    try:
        yield
    except (StudyStoppedError, StartInterruptedError) as error:
        raise type(error)(f"{error}. The suite goes on by: {command}") from error
    except KeyboardInterrupt:
        raise StartInterruptedError(f"stopped. Nothing is lost; go on with it: {command}") from None


def suite_tables_so_far(home: Home, suite: Suite) -> SuiteTables:
    """Return the tables of what has run so far."""
    return suite_tables.build_suite_tables(suite, lambda search: load_search_results(home, search))


def load_search_results(home: Home, search: SuiteSearch) -> Results | None:
    """Return the results of a search, None where it has not begun."""
    found = StudyFolder(home.path / search.spec.name)
    if not found.ledger_file.is_file():
        return None
    return Results.load(found)


def suite_folder(home: Home, suite: Suite) -> Path:
    """Return the folder of a suite's tables and of its `SUITE_FILE`."""
    return safe_path_below(home.suites_folder, suite.name)


def write_suite_file(home: Home, suite: Suite) -> None:
    """Write down what a suite consists of.

    Raises:
        UserError: the home cannot be written, or is of another form.
    """
    check_home_format(home.path)
    file = suite_folder(home, suite) / SUITE_FILE
    with as_user_error_if_unwritable(file.parent, ANOTHER_HOME_REMEDY):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_home_format(home.path)
        write_atomically(file, dump_yaml(suite.to_document()))


def check_tables_output_file(out: Path | None) -> None:
    """Refuse a file that the tables could not be written to.

    Raises:
        UserError: says why.
    """
    if out is not None and out.suffix.removeprefix(".") not in TABLE_WRITERS:
        raise UserError(f"-o {out}: allowed endings are {', '.join(f'.{ending}' for ending in TABLE_WRITERS)}")
    if out is not None:
        check_output_path(out)


def write_tables_to_file(found: SuiteTables, out: Path) -> None:
    """Write the tables in the form that a file's ending names."""
    write_output(out, TABLE_WRITERS[out.suffix.removeprefix(".")](found))


def check_suite_unchanged(home: Home, suite: Suite) -> None:
    """Refuse a suite that began with other settings; it may have more methods, data sets and searches than then.

    Raises:
        UserError: says what differs.
    """
    memory = suite_folder(home, suite) / SUITE_FILE
    before = read_study_file(memory).values if memory.is_file() else {}
    specs = (search.spec for search in suite.searches)
    if differing := [*_changed_suite_parts(before, suite.to_document()), *changed_keys_of_studies(home, specs)]:
        raise UserError(
            f"{suite.name}: this suite began in {home.path} with other settings. Run this one under another `name`, or "
            f"give what it began with:\n{format_changed_keys(differing)}"
        )


def _changed_suite_parts(before: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the suite had at its beginning and is gone or changed."""
    for key, value in before.items():
        now = given.get(key)
        if key in ("methods", "data") and isinstance(value, list) and isinstance(now, list):
            yield from (f"{key}.{label}: was part of it, and is not given" for label in value if label not in now)
        elif key == "searches" and isinstance(value, int) and isinstance(now, int):
            if now < value:
                yield f"searches: {value} before, {now} given"
        elif key in given and now != value:
            yield f"{key}: {value} before, {now} given"


def _data_sections_of_suite(suite: Suite) -> list[Section]:
    firsts = (suite.searches_by_cell[suite.methods[0], label][0] for label in suite.data)
    return [section for first in firsts for section in first.spec.trial_data_sections]


def plan_suite(home: Home, suite: Suite) -> dict[str, Any]:
    """Return how far each cell of a suite's table is, the epochs left, and their time at the pace until now."""
    from study.sweep.ray_runtime import count_trials_at_once

    records = {
        cell: [study.record if (study := load_search_results(home, search)) else None for search in searches]
        for cell, searches in suite.searches_by_cell.items()
    }
    paces = {}
    for method in suite.methods:
        begun = [one for (of, _), here in records.items() if of == method for one in here if one is not None]
        if epochs := _count_epochs_run(begun):
            paces[method] = sum(record.total_trial_seconds for record in begun) / epochs
    places: list[dict[str, Any]] = []
    for (method, label), here in records.items():
        spec = suite.searches_by_cell[method, label][0].spec
        each = plan_budget(spec)
        open_ones = [record for record in here if record is None or record.state != "complete"]
        half = _count_epochs_run(record for record in open_ones if record is not None)
        epochs_left = {kind: max(0, len(open_ones) * count - half) for kind, count in each.epochs.items()}
        pace = paces.get(method)
        places.append(
            {
                "method": method,
                "data": label,
                "states": _study_counts_by_state(here),
                "searches_left": len(open_ones),
                "trials_per_search": {
                    "search": spec.n_configurations,
                    "fresh": each.trials["confirm"] + each.trials["rule"],
                },
                "epochs_done": _count_epochs_run(record for record in here if record is not None),
                "epochs_left": epochs_left,
                "trial_hours_left": None
                if pace is None
                else {kind: count * pace / SECONDS_PER_HOUR for kind, count in epochs_left.items()},
            }
        )
    first = suite.searches[0].spec
    return {
        "name": suite.name,
        "searches": len(suite.searches),
        "states": _study_counts_by_state(record for here in records.values() for record in here),
        "epochs_per_trial": first.epochs,
        "places": places,
        "seconds_per_epoch": paces,
        "trials_at_once_here": count_trials_at_once(first.resources, first.search.concurrency),
    }


def suite_plan_text(document: Mapping[str, Any]) -> str:
    """Return the document of `plan_suite` as text for people."""
    rows = [
        [
            place["method"],
            place["data"],
            _state_counts_text(place["states"]),
            f"{place['trials_per_search']['search']} + at most {place['trials_per_search']['fresh']}",
            str(place["epochs_done"]),
            f"{left['expected']}" + (f", at most {left['most']}" if left["most"] != left["expected"] else ""),
            formatting.MISSING_TEXT if hours is None else hours_in_words(hours["expected"]),
        ]
        for place in document["places"]
        for left, hours in [(place["epochs_left"], place["trial_hours_left"])]
    ]
    heads = ["method", "data", "searches", "trials of each (search + fresh)", "epochs", "epochs left", "time left"]
    searches = f"{document['searches']} searches ({_state_counts_text(document['states'])})"
    head = f"suite {document['name']}: {searches}; nothing is started"
    return "\n".join([head, "", rows_as_markdown(heads, rows), "", _remaining_time_text(document)])


def _remaining_time_text(document: Mapping[str, Any]) -> str:
    """Return how long what is left would take, in words."""
    left = [place for place in document["places"] if place["searches_left"]]
    if not left:
        return "nothing is left to run"
    epochs = sum(place["epochs_left"]["expected"] for place in left)
    hours = [place["trial_hours_left"] for place in left]
    if None in hours:
        return f"about {pluralise(epochs, 'epoch')} left; how long they take is told once some of each method have run"
    at_once, expected = document["trials_at_once_here"], sum(each["expected"] for each in hours)
    here = f", about {hours_in_words(expected / at_once)} on this machine ({at_once} at once)" if at_once else ""
    told = f"about {pluralise(epochs, 'epoch')} left: {hours_in_words(expected)} of trials{here}"
    return f"{told}; the start of each study, some seconds, comes on top"


def _count_epochs_run(records: Iterable[StudyRecord]) -> int:
    return sum(trial.n_epochs for record in records for trial in record.trials.values())


def _study_counts_by_state(records: Iterable[StudyRecord | None]) -> dict[str, int]:
    return dict(Counter(record.state if record else SEARCH_NOT_OVER for record in records))


def _state_counts_text(states: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in states.items())
