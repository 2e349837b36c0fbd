"""A published table with our cells beside it: the trials of a cell, its number or why it has none, its verdict."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import pandas as pd

from study import data, published
from study.analysis import epochs_frame, to_csv, to_latex, to_markdown, trials_frame
from study.analysis.report.page_formats import frame_to_markdown
from study.analysis.statistics import formatting
from study.analysis.statistics.parameter_tables import MetricCell, metric_cell_of_trials
from study.analysis.tables import paper_comparison
from study.analysis.tables.printed_grid import PrintedEntry, PrintedGrid, RankingDirection
from study.driver.run import write_table_files
from study.home.folder import StudyFolder
from study.knobs import Params, Section
from study.metrics import is_fraction_metric, lower_is_better, searchable_metrics
from study.published import DIVISOR_BY_UNIT, Claim, PublishedTable
from study.ranking import Results, SeedStatistics
from study.spec import StudySpec, load_study
from study.spec.domain import is_among_typed_values
from study.spec.load import declared_readings
from study.spec.paper_readings import is_study_by_reading
from study.spec.sampler_capabilities import SAMPLER_CAPABILITIES
from study.spec.space import iterate_grid_cells
from study.text import escape_markdown, flatten_mapping, pluralise

CellPlace = tuple[str, str]
"""Labels of a cell's row and column."""


def list_cell_places(table: PublishedTable) -> list[CellPlace]:
    """Return the labels of every cell of a table, row by row."""
    return list(product((row.label for row in table.rows), (column.label for column in table.columns)))


def planned_configurations(spec: StudySpec) -> list[tuple[Params, Mapping[str, Section]]]:
    """Return the configurations that a study tries in any case, each with its sections.

    These are its baseline, the enqueued ones and those of its grid.
    """
    search = spec.search
    given = ([search.baseline] if search.baseline is not None else []) + search.enqueue
    cells = iterate_grid_cells(spec.space) if SAMPLER_CAPABILITIES[search.sampler].tries_every_cell else ()
    return [(params, spec.trial_document(params)) for params in (*given, *cells)]


def configuration_matches_cell(cell_keys: Params, params: Params, document: Mapping[str, Section]) -> bool:
    """Return whether a configuration has the keys and values of a cell.

    Args:
        cell_keys: keys and values of the cell; a name may be the label of an alternative in the study file.
        params: of the trial, with labels.
        document: the trial's sections, with the value of every key.
    """
    for key, value in cell_keys.items():
        section, name = key.split(".")
        if not is_among_typed_values(value, (params.get(key), document[section].get(name))):
            return False
    return True


CellsByPlace = dict[CellPlace, MetricCell]


def _trials_by_cell(table: PublishedTable, results: Results) -> dict[CellPlace, list[int]]:
    """Return the numbers of each cell's trials, none before any ran; cells that cannot have trials are left out."""
    trials = results.record.trials
    documents = {number: results.spec.trial_document(trial.params) for number, trial in trials.items()}
    wanted = {place: table.trial_keys_of(*place) for place in list_cell_places(table)}
    return {
        place: [each for each in trials if configuration_matches_cell(keys, trials[each].params, documents[each])]
        for place, keys in wanted.items()
        if keys is not None
    }


def _cells_at_best_epoch(
    table: PublishedTable, results: Results, frame: pd.DataFrame, trials: Mapping[CellPlace, list[int]]
) -> CellsByPlace:
    """Return each cell at the epoch that is best on the test split, as some papers choose it; optimistic.

    An accuracy is taken at its own best epoch, any other metric at the best epoch of the table's metric. Cells of
    metrics that only the last epoch has are left out, and all cells where the test split is not read at each epoch.
    """
    epochs, cells = epochs_frame(results.record), {}
    frames = {
        metric: _trials_at_best_epoch(frame, epochs, metric)
        for metric in {_epoch_choosing_metric(table, place) for place in trials}
        if metric in epochs
    }
    for place, of_cell in trials.items():
        metric = _epoch_choosing_metric(table, place)
        if metric in frames and table.metric_of(*place).split("/")[1] in searchable_metrics():
            cells[place] = _cell_in_printed_unit(table, place, frames[metric].loc[of_cell])
    return cells if results.spec.train.report_test else {}


def _cell_in_printed_unit(table: PublishedTable, place: CellPlace, frame: pd.DataFrame) -> MetricCell:
    """Return a cell of these trials, in the printed unit, percent as shares."""
    fractions = metric_cell_of_trials(frame, table.metric_of(*place))
    return replace(fractions, values=tuple(value * printed_unit_factor(table, place) for value in fractions.values))


def printed_unit_factor(table: PublishedTable, place: CellPlace) -> float:
    """Return the factor that brings our number to the printed unit; 1 for fractions, printed as percent."""
    return 1.0 if is_fraction_metric(table.metric_of(*place)) else DIVISOR_BY_UNIT[table.unit_of(*place)]


def _epoch_choosing_metric(table: PublishedTable, place: CellPlace) -> str:
    """Return the metric that chooses a cell's epoch."""
    metric = table.metric_of(*place)
    return metric if metric.endswith("accuracy") else table.metric


def _trials_at_best_epoch(frame: pd.DataFrame, epochs: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return trials with all metrics at the epoch at which the metric `by` is best, the first of equal ones."""
    measured = epochs[epochs[by].notna()]
    values = -measured[by] if lower_is_better(by) else measured[by]
    best = measured.loc[values.groupby(measured["trial"]).idxmax()].set_index("trial").reindex(frame.index)
    shared = [name for name in best if name in frame]
    return frame.drop(columns=shared).join(best[shared])


def seeds_of_cells(cells: Mapping[CellPlace, MetricCell]) -> list[int]:
    """Return the training seeds behind the numbers, sorted."""
    return sorted({seed for cell in cells.values() for seed in cell.seeds})


PUBLISHED_ONLY = "published only"
NOT_IN_STUDY = "not run"
USER_DATA_MISSING = "data to bring"
NOT_YET_RUN = "not yet"
ALL_TRIALS_OF_CELL_FAILED = "failed"
ALL_TRIALS_OF_CELL_PRUNED = "pruned"
WITHOUT_METRIC = "without this metric"

MISSING_REASON_TEXTS = {
    PUBLISHED_ONLY: "this project does not have the method",
    NOT_IN_STUDY: "not part of this study: see --profile",
    USER_DATA_MISSING: "not part of this study; its data must be brought by the user",
    NOT_YET_RUN: "no trial is complete yet: study reproduce goes on with it",
    ALL_TRIALS_OF_CELL_FAILED: "every trial failed",
    ALL_TRIALS_OF_CELL_PRUNED: "every trial was pruned",
    WITHOUT_METRIC: "the trials do not report the metric",
}


TrialSections = Mapping[str, Section]
"""Complete sections of a trial, by name."""


def _planned_sections_by_cell(
    table: PublishedTable, spec: StudySpec, full: StudySpec
) -> dict[CellPlace, tuple[TrialSections | None, TrialSections | None]]:
    """Return the sections of each cell's trials in two studies, None where one does not plan it.

    Cells that cannot have trials are left out.
    """
    studies, cells = [planned_configurations(spec), planned_configurations(full)], {}
    for place in list_cell_places(table):
        if (values := table.trial_keys_of(*place)) is not None:
            matching = ((each[1] for each in study if configuration_matches_cell(values, *each)) for study in studies)
            here, in_full = (next(found, None) for found in matching)
            cells[place] = here, in_full
    return cells


def _reasons_for_missing(
    table: PublishedTable,
    planned_cells: Mapping[CellPlace, tuple[TrialSections | None, TrialSections | None]],
    ours: Mapping[CellPlace, MetricCell],
) -> dict[CellPlace, str]:
    """Return the reason, one of `MISSING_REASON_TEXTS`, for each cell without a value."""
    reasons = {}
    for place in list_cell_places(table):
        if place not in planned_cells:
            reasons[place] = PUBLISHED_ONLY
        elif not ours[place].values:
            here, in_full = planned_cells[place]
            otherwise = USER_DATA_MISSING if in_full and _are_user_files_missing(in_full["data"]) else NOT_IN_STUDY
            reasons[place] = _reason_from_trials(ours[place], here is not None) or otherwise
    return reasons


def missing_reasons_text(cells: Mapping[CellPlace, str], rows: Iterable[str], columns: Iterable[str]) -> list[str]:
    """Return each reason with its cells as text; a whole row is named by the row's label alone."""
    across, lines = list(columns), []
    for reason, meaning in MISSING_REASON_TEXTS.items():
        of_row = {row: [column for column in across if cells.get((row, column)) == reason] for row in rows}
        of_row = {row: missing_columns for row, missing_columns in of_row.items() if missing_columns}
        if of_row:
            texts = [
                row if missing_columns == across else f"{row}: {' | '.join(missing_columns)}"
                for row, missing_columns in of_row.items()
            ]
            lines.append(f"{reason} ({meaning}): {'; '.join(texts)}")
    return lines


def _reason_from_trials(cell: MetricCell, is_planned: bool) -> str | None:
    if cell.unread:
        return WITHOUT_METRIC
    if cell.open or not (cell.failed or cell.pruned):
        return NOT_YET_RUN if is_planned or cell.open else None
    return ALL_TRIALS_OF_CELL_FAILED if cell.failed else ALL_TRIALS_OF_CELL_PRUNED


def _are_user_files_missing(section: Section) -> bool:
    """Return whether files of a data set are missing that only the user can get."""
    return any(source.url is None and source.path_or_none() is None for source in data.sources(section))


LAST_EPOCH_NOTE = "Our numbers are from each trial's last epoch: no split chose it."
BEST_EPOCH_NOTE = (
    "Our numbers are from each trial's best epoch on the test split, for comparison with papers that report their best "
    "epoch. They look, on average, too good. Nothing else is chosen by the test split."
)

LOSS_VARIANT_KEYS = ("method.variant", "method.alpha_squared", "method.base_temperature", "method.kld")
"""Keys that say which variant of a loss was run: the paper's equation or the released code."""

PAPER_PROTOCOL, OWN_PROTOCOL = "the paper's protocol", "a protocol of our own"
"""What a table's study file has; `OWN_PROTOCOL` where its source says so."""

NON_BUDGET_KEYS = ("train.seed", "train.threads", "train.report_test")
"""Keys in which a run may differ from the protocol without a smaller budget."""


def _table_notes(
    table: PublishedTable,
    results: Results,
    full: StudySpec,
    runs: Sequence[tuple[TrialSections, TrialSections]],
    ours: Mapping[CellPlace, MetricCell],
    missing: Mapping[CellPlace, str],
) -> list[str]:
    """Return notes on budget, variant of the loss and missing cells, and those of the transcription.

    Args:
        full: the table's study file without a profile: the paper's protocol.
        runs: sections of each cell's trials here, and in the paper's protocol.
        ours, missing: its cells, and why some have no value.
    """
    protocol = OWN_PROTOCOL if OWN_PROTOCOL in table.source else PAPER_PROTOCOL
    lines = [_budget_note(results, full, ours, runs, protocol), *_reading_sentences(table, results.spec)]
    lines += _variant_sentences(here for here, _ in runs)
    rows, columns = [row.label for row in table.rows], [column.label for column in table.columns]
    lines += [f"Missing: {reason}." for reason in missing_reasons_text(missing, rows, columns)]
    unjudged = (line for line in (*table.rows, *table.columns) if line.no_verdict)
    lines += [f"No verdict on {line.label}: {line.no_verdict}." for line in unjudged]
    lines += [f"Data: {table.needs}."] if table.needs else []
    return [*lines, paper_spread_note(table), *table.notes]


def paper_spread_note(table: PublishedTable) -> str:
    """Return a note on what the paper's ± is."""
    return f"The paper's ±: {table.spread if table.trials is None else f'{table.spread}; {table.trials} trials'}."


def _budget_note(
    results: Results,
    full: StudySpec,
    ours: Mapping[CellPlace, MetricCell],
    runs: Sequence[tuple[TrialSections, TrialSections]],
    protocol: str,
) -> str:
    """Return a note on what was run, and where it differs from the protocol of this name."""
    spec, record = results.spec, results.record
    titles_run = dict.fromkeys(session.dataset for session in record.sessions if session.dataset)
    networks = ", ".join(dict.fromkeys(str(ours_run["model"]["name"]) for ours_run, _ in runs))
    titles = ", ".join(titles_run or spec.dataset_titles)
    seeds, seconds = formatting.seeds_text(seeds_of_cells(ours)), record.total_trial_seconds
    what = f"{titles}, {networks or 'network'}, {pluralise(spec.epochs, 'epoch')}, {seeds}"
    trial_time = f"{formatting.format_duration(seconds)} of trials" if seconds else "no trial has run yet"
    differing: dict[str, dict[tuple[str, str], None]] = {}
    for ours_run, theirs_run in runs:
        mine, theirs = flatten_mapping(ours_run), flatten_mapping(theirs_run)
        for key in mine.keys() & theirs.keys():
            if mine[key] != theirs[key] and key not in NON_BUDGET_KEYS:
                pair = formatting.format_setting(mine[key]), formatting.format_setting(theirs[key])
                differing.setdefault(key, {})[pair] = None
    if len(spec.seeds) != len(full.seeds):
        differing["search.replicates"] = {(str(len(spec.seeds)), str(len(full.seeds))): None}
    shortfall = "; ".join(
        f"{key} {' / '.join(run for run, _ in pairs)} instead of {' / '.join(dict.fromkeys(full for _, full in pairs))}"
        for key, pairs in sorted(differing.items())
    )
    comparison = f"Against {protocol}: {shortfall}." if shortfall else f"This is {protocol}, as in the study file."
    return f"Budget: {what}; {trial_time}. {comparison}"


def _reading_sentences(table: PublishedTable, spec: StudySpec) -> Iterator[str]:
    """Yield which reading of the protocol was run, where the table's study file declares readings."""
    declared, values = declared_readings(table.name), spec.to_document()
    for name in [name for name, reading in declared.items() if is_study_by_reading(reading, values)]:
        yield f"Reading of the protocol: {name}, {declared[name].about} ({declared[name].source})."


def _variant_sentences(documents: Iterator[Mapping[str, Section]]) -> Iterator[str]:
    """Yield which variant of the losses was run."""
    values_by_key: dict[str, dict[str, None]] = {}
    for values in map(flatten_mapping, documents):
        for key in LOSS_VARIANT_KEYS:
            if values.get(key) is not None:
                values_by_key.setdefault(key, {})[formatting.format_setting(values[key])] = None
    text = "; ".join(f"{key} {' / '.join(settings)}" for key, settings in values_by_key.items())
    yield f"Variant of the loss: {text}." if text else "Variant of the loss: the paper's equation."


NUMBER_LABEL_PATTERN = re.compile(r"\d+(\.\d+)?")
"""Column label that is only a number, which needs the columns' title before it."""


@dataclass(frozen=True)
class Reproduction:
    """Published table and our numbers for it.

    Attributes:
        table: the paper's.
        last_epoch_cells, best_epoch_cells: our cells at the last epoch, and at the best one on the test split, of which
            there may be none.
        missing_reasons: why a cell has no number of ours.
        last_epoch_grid, best_epoch_grid: these cells beside the paper's, as printed; None where no cell has a value at
            the best epoch.
        claims_frame: whether the paper's claims hold at our last epochs.
    """

    table: PublishedTable
    last_epoch_cells: CellsByPlace
    best_epoch_cells: CellsByPlace
    missing_reasons: Mapping[CellPlace, str]
    last_epoch_grid: PrintedGrid
    best_epoch_grid: PrintedGrid | None
    claims_frame: pd.DataFrame

    @property
    def best_marked_along(self) -> RankingDirection:
        """Direction in which the best is marked, each row or each column: as claims compare, else each column."""
        return next((claim.best.among for claim in self.table.claims if claim.best), "column")


def build_reproduction(table: PublishedTable, results: Results, full: StudySpec) -> Reproduction:
    """Build the reproduction of a table from its study in any state.

    Args:
        full: the table's study file without a profile: the paper's protocol.
    """
    trials, frame = _trials_by_cell(table, results), trials_frame(results)
    last = {place: _cell_in_printed_unit(table, place, frame.loc[of_cell]) for place, of_cell in trials.items()}
    best = _cells_at_best_epoch(table, results, frame, trials)
    cells = _planned_sections_by_cell(table, results.spec, full)
    reasons = _reasons_for_missing(table, cells, last)
    runs = [(here, in_full) for here, in_full in cells.values() if here and in_full]
    notes = _table_notes(table, results, full, runs, last, reasons)
    last_grid, best_grid = _comparison_grid(table, last, reasons, [LAST_EPOCH_NOTE, *notes]), None
    if any(cell.values for cell in best.values()):
        best_grid = _comparison_grid(table, best, reasons, [BEST_EPOCH_NOTE])
    claims = paper_comparison.claims_table(judge_claims(table, last))
    return Reproduction(table, last, best, reasons, last_grid, best_grid, claims)


def reproduction_without_study(table: PublishedTable) -> Reproduction:
    """Return a table of which nothing can be run here: the paper's numbers alone."""
    reasons = dict.fromkeys(list_cell_places(table), PUBLISHED_ONLY)
    grid = _comparison_grid(table, {}, reasons, [f"Not run: {table.no_study}.", paper_spread_note(table), *table.notes])
    claims = paper_comparison.claims_table(judge_claims(table, {}))
    return Reproduction(table, {}, {}, reasons, grid, None, claims)


def judge_claims(table: PublishedTable, cells: CellsByPlace) -> dict[str, paper_comparison.ClaimResult]:
    """Return the verdict on each claim of a table, by its text."""
    verdicts = {}
    for claim in table.claims:
        why = table.why_not_judged(claim)
        untold = paper_comparison.ClaimResult("cannot tell", None, None, why or "")
        verdicts[claim.text] = untold if why else judge_claim(claim, cells)
    return verdicts


def judge_claim(claim: Claim, cells: Mapping[CellPlace, MetricCell]) -> paper_comparison.ClaimResult:
    """Judge a claim by our cells; a cell that is absent has no value."""
    named = [cells.get(place, MetricCell("")) for place in claim.cell_labels()]
    if claim.better:
        return paper_comparison.judge_better_claim(*named)
    if claim.best:
        ((row, column),) = claim.cell_labels()
        others = [place for place in cells if (place[0] == row if claim.best.among == "row" else place[1] == column)]
        return paper_comparison.judge_best_claim(named[0], [cells[place] for place in others if place != (row, column)])
    if claim.increasing:
        return paper_comparison.judge_increasing_claim(named)
    return paper_comparison.judge_decreasing_claim(named)


def printed_paper_entry(table: PublishedTable, place: CellPlace) -> PrintedEntry:
    """Return a printed cell. A spread of an unknown number of trials is only text after the number."""
    printed, scale = table.printed_cell(*place), printed_unit_factor(table, place)
    if printed.value is None:
        return PrintedEntry()
    has_spread = table.trials is not None and printed.spread is not None
    deviation = (printed.spread or 0.0) * scale if has_spread else None
    statistics = SeedStatistics(printed.value * scale, deviation, table.trials or 1)
    _, plus_minus, printed_spread = printed.printed.partition(" ± ")
    remark = "" if has_spread or not plus_minus else f"± {printed_spread}"
    return PrintedEntry(table.metric_of(*place), statistics, remark, "paper")


def _comparison_grid(
    table: PublishedTable, ours: CellsByPlace, reasons: Mapping[CellPlace, str], notes: Sequence[str]
) -> PrintedGrid:
    rows, columns = [row.label for row in table.rows], [column.label for column in table.columns]
    paper = {place: printed_paper_entry(table, place) for place in list_cell_places(table)}
    unjudged = [place for place in paper if table.why_no_verdict(*place) is not None]
    with_numbers = _without_empty_rows(ours)
    grid = paper_comparison.compare_with_paper(rows, columns, with_numbers, paper, reasons, unjudged)
    self_explanatory = not all(NUMBER_LABEL_PATTERN.fullmatch(label) for label in columns)
    return replace(
        grid,
        row_label_titles=(table.rows_title, ""),
        column_label_titles=("" if self_explanatory else table.columns_title,),
        notes=[*grid.notes, *notes],
        decimals=_printed_decimals(table),
    )


def _without_empty_rows(ours: CellsByPlace) -> CellsByPlace:
    """Return our cells, without the rows that have no value at all."""
    rows = {row for (row, _), cell in ours.items() if cell.values}
    return {place: cell for place, cell in ours.items() if place[0] in rows}


def _printed_decimals(table: PublishedTable) -> int:
    """Return the digits of percentages after the decimal point: as many as are printed, one where none is."""
    printed = [
        table.printed_cell(*place).printed.split(" ")[0]
        for place in list_cell_places(table)
        if table.unit_of(*place) == "percent"
    ]
    return max((len(number.partition(".")[2]) for number in printed if "." in number), default=1)


REPRODUCTION_FILE_STEM = "reproduction"


def build_and_write_reproduction(folder: StudyFolder, table: str) -> Reproduction:
    """Return the reproduction of a study in any state, and write it beside its report as Markdown, LaTeX and CSV.

    Args:
        table: the published table's name.

    Raises:
        UserError: there is no such table, or the folder cannot be written.
    """
    reproduction = build_reproduction(published.load_published_table(table), Results.load(folder), load_study(table))
    write_reproduction(reproduction, folder.report_folder)
    return reproduction


def write_reproduction(reproduction: Reproduction, out: Path) -> None:
    """Write `reproduction.md`, `.tex` and `.csv`, each replaced in one step."""
    tables = [reproduction.last_epoch_grid] + ([reproduction.best_epoch_grid] if reproduction.best_epoch_grid else [])
    caption = f"{table_title(reproduction.table)}. {reproduction.table.caption}"
    content = {
        "md": reproduction_to_markdown(reproduction),
        "tex": "\n\n".join(to_latex(grid, reproduction.best_marked_along, caption=caption) for grid in tables) + "\n",
        "csv": to_csv(reproduction.last_epoch_grid),
    }
    write_table_files(out, REPRODUCTION_FILE_STEM, content)


def reproduction_to_markdown(reproduction: Reproduction) -> str:
    """Return the table as Markdown, its notes, and whether the paper's claims hold."""
    parts = [f"# {table_title(reproduction.table)}", reproduction.table.caption]
    parts.append(_table_with_notes(reproduction, reproduction.last_epoch_grid))
    if len(reproduction.claims_frame):
        parts += ["## Claims", frame_to_markdown(reproduction.claims_frame), paper_comparison.CLAIM_RULE_NOTE]
    if reproduction.best_epoch_grid is not None:
        best = _table_with_notes(reproduction, reproduction.best_epoch_grid)
        parts += ["## At the best epoch on the test split", best]
    return "\n\n".join(parts) + "\n"


def _table_with_notes(reproduction: Reproduction, grid: PrintedGrid) -> str:
    """Return a table with its notes in a list."""
    notes = "\n".join(f"- {escape_markdown(note)}" for note in grid.notes)
    return f"{to_markdown(replace(grid, notes=()), reproduction.best_marked_along)}\n\n{notes}"


def reproduction_to_dict(reproduction: Reproduction) -> dict[str, object]:
    """Return a reproduction as plain values for JSON; numbers in the printed unit, but fractions for percent."""
    table = reproduction.table
    cells = [
        {
            "row": place[0],
            "column": place[1],
            "metric": table.metric_of(*place),
            "printed": table.printed_cell(*place).printed,
            "last_epoch": _cell_to_dict(reproduction.last_epoch_cells.get(place)),
            "best_epoch_on_test": _cell_to_dict(reproduction.best_epoch_cells.get(place)),
            "missing": reproduction.missing_reasons.get(place),
            "no_verdict": table.why_no_verdict(*place),
        }
        for place in list_cell_places(table)
    ]
    claims, notes = reproduction.claims_frame.to_dict("records"), list(reproduction.last_epoch_grid.notes)
    return {"name": table.name, "cells": cells, "claims": claims, "notes": notes}


def _cell_to_dict(cell: MetricCell | None) -> dict[str, float | None] | None:
    return cell.seed_statistics.to_dict() if cell and cell.seed_statistics else None


def table_title(table: PublishedTable) -> str:
    """Return the title of a table: its name, its place and its paper."""
    return f"{table.name}: {table.source} of {table.paper.authors} ({table.paper.year}), {table.paper.title}"
