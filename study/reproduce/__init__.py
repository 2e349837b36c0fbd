"""Run a paper's table here and print it beside the paper's numbers.

The paper's numbers are in `study.published`, the study file of the same name in `search_spaces/`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from study import published
from study.commands.final_training import parse_seeds
from study.driver.run import changed_keys_of_studies, format_changed_keys, run_remaining_studies
from study.driver.session import RunEnd, StudyView
from study.errors import UserError, did_you_mean
from study.home.folder import Home
from study.home.record import StudyRecord
from study.ranking import Results
from study.reproduce.reading_comparison import ReadingComparison, compare_readings
from study.reproduce.reproduction import (
    Reproduction,
    build_and_write_reproduction,
    build_reproduction,
    reproduction_to_dict,
    reproduction_to_markdown,
    reproduction_without_study,
    write_reproduction,
)
from study.spec import StudySpec, load_study
from study.spec.load import declared_readings
from study.spec.paper_readings import has_own_trials
from study.text import study_command

__all__ = ["build_and_write_reproduction", "reproduction_to_dict", "reproduction_to_markdown"]


@dataclass(frozen=True)
class ReproductionRequest:
    """Options of a reproduction.

    Attributes:
        name: of the study; None: that of the table.
        profile, assignments: as for `study run`.
        seeds: training seeds, as `0,1,2`; None: those of the study file.
    """

    name: str | None = None
    profile: str | None = None
    assignments: tuple[str, ...] = ()
    seeds: str | None = None


def run_reproduction(home: Home, table: str, request: ReproductionRequest, view: StudyView) -> RunEnd | None:
    """Run the study of a table, or continue it.

    Args:
        table: a published table; its study file has the same name.

    Returns:
        How it ended; None if it was complete already.

    Raises:
        UserError: there is no such table, nothing of it can be run here, a study of that name has other settings, or
            see `study.driver.run.run_new_study`.
    """
    _check_table_has_study(table)
    spec = _new_or_existing_study(home, table, request, request.name or table)
    return next(run_remaining_studies(home, [spec], view), None)


ALL_READINGS = "all"
"""Stands for every reading that the table's study file declares."""


def run_readings(
    home: Home, table: str, request: ReproductionRequest, readings: str, view: StudyView
) -> Iterator[RunEnd]:
    """Run what is left of a table's studies under some readings of its protocol, one after the other.

    Args:
        readings: names with commas between them, or `ALL_READINGS`.

    Raises:
        UserError: see `run_reproduction`; or the table's study file declares no such reading.
    """
    _check_table_has_study(table)
    studies = {name: reading for reading, name in _study_names_by_reading(table, request, readings).items()}
    specs = [_new_or_existing_study(home, table, request, name, reading) for name, reading in studies.items()]
    yield from run_remaining_studies(home, specs, view)


def compare_requested_readings(
    home: Home, table: str, request: ReproductionRequest, readings: str
) -> ReadingComparison:
    """Compare the results so far under some readings of a table's protocol.

    Raises:
        UserError: see `run_readings`.
    """
    paper_table, declared = published.load_published_table(table), declared_readings(table)
    studies = _study_names_by_reading(table, request, readings)
    found = {}
    for reading, name in studies.items():
        of, folder = declared[reading], home.study_or_none(name)
        if folder:
            results = Results.load(folder)
        else:
            results = Results(_requested_study(table, request, name, reading), StudyRecord())
        as_read = paper_table.model_copy(update={"metrics": of.metrics, "values": of.values})
        found[reading] = build_reproduction(as_read, results, load_study(table, reading=reading))
        if folder and not of.is_reevaluation_only:
            write_reproduction(found[reading], folder.report_folder)
    return compare_readings(paper_table, declared, studies, found)


def _study_names_by_reading(table: str, request: ReproductionRequest, readings: str) -> dict[str, str]:
    """Return the name of each asked reading's study.

    It is the table's own for the reading of the study file, and for readings that need no training of their own.
    """
    declared = declared_readings(published.load_published_table(table).name)
    named = [name.strip() for name in readings.split(",") if name.strip()]
    asked = list(declared) if readings == ALL_READINGS else named
    if unknown := [name for name in asked if name not in declared]:
        there = f"Allowed: {ALL_READINGS}, {', '.join(declared)}" if declared else "Its study file declares none"
        raise UserError(
            f"--readings {readings}: {unknown[0]!r} is no reading of {table}. "
            f"{did_you_mean(unknown[0], declared)}{there}"
        )
    if not asked:
        raise UserError(f"--readings: {table} declares {', '.join(declared) or 'none'}")
    name = request.name or table
    return {reading: f"{name}--{reading}" if has_own_trials(declared[reading]) else name for reading in asked}


def _check_table_has_study(table: str) -> None:
    why_not = published.load_published_table(table).no_study
    if why_not:
        numbers = study_command("reproduce", table, "--report")
        raise UserError(f"{table}: nothing of it can be run here: {why_not}. Its printed numbers: {numbers}")


def _new_or_existing_study(
    home: Home, table: str, request: ReproductionRequest, name: str, reading: str | None = None
) -> StudySpec:
    """Return the study of a table that begins or goes on.

    Raises:
        UserError: one of that name has other settings.
    """
    folder = home.study_or_none(name)
    if folder is None or request.assignments or request.seeds or request.profile:
        spec = _requested_study(table, request, name, reading)
    else:
        spec = folder.load_checked_spec()
    if differing := list(changed_keys_of_studies(home, [spec])):
        raise UserError(
            f"{name}: exists already, with other settings. To go on with it as it is, leave out --profile, --seeds and "
            f"--set. To run it with these settings, give another name: --name\n{format_changed_keys(differing)}"
        )
    return spec


def current_reproduction(home: Home, table: str, request: ReproductionRequest) -> Reproduction:
    """Return the table with the results so far; before the study has begun, the paper's numbers and what would run.

    Raises:
        UserError: there is no such table, or no study of the given name.
    """
    paper_table, name = published.load_published_table(table), request.name or table
    if paper_table.no_study:
        return reproduction_without_study(paper_table)
    if request.name is None and home.study_or_none(name) is None:
        planned = Results(_requested_study(table, request, name), StudyRecord())
        return build_reproduction(paper_table, planned, load_study(table))
    return build_and_write_reproduction(home.find_study(name), table)


def _requested_study(table: str, request: ReproductionRequest, name: str, reading: str | None = None) -> StudySpec:
    """Return the study of a table with the requested options, under this name and reading of its protocol."""
    overrides = [*request.assignments, *_seed_assignments(request.seeds)]
    spec = load_study(table, overrides, request.profile, name, reading=reading)
    if spec.objective.epoch_window is not None:
        raise UserError(
            "search.epoch: 'best' given, allowed is last: a table is compared at the last epoch, and where the paper "
            "did so at the best one on the test split"
        )
    if not spec.train.report_test:
        why = "the cells of a table are test metrics of every trial"
        raise UserError(f"train.report_test: false given, allowed is true: {why}")
    return spec


def _seed_assignments(seeds_text: str | None) -> list[str]:
    """Return the overrides that give a configuration's trials these seeds, in any order.

    Consecutive seeds are given by their number, as in the study files: it is then the same study.
    """
    if seeds_text is None:
        return []
    seeds = sorted(parse_seeds(seeds_text))
    in_turn = seeds == list(range(seeds[0], seeds[0] + len(seeds)))
    return [f"train.seed={seeds[0]}", f"search.replicates={len(seeds) if in_turn else seeds}"]
