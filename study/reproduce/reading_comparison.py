"""Compare several readings of a table's protocol: which one puts its cells in the printed order.

At a smaller budget than the paper's no absolute value can tell readings apart. So they are compared by the order of
cells. Of the pairs of cells in one row (or in one column, as the table's claims compare) that the print itself tells
apart, take the share that ours puts in the printed order, less the share in the contrary one (Kendall's tau, of these
pairs). Each seed gives one such number, and the readings share their seeds. The number moves in steps of 2 / pairs, so
that a few seeds may give equal numbers by chance: their deviation counts as at least the rounding error of a step.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, stdev

import pandas as pd

from study.analysis.report.page_formats import frame_to_markdown
from study.analysis.statistics import formatting
from study.analysis.statistics.parameter_tables import MetricCell
from study.analysis.tables.paper_comparison import judge_cell, widen_printed_spread
from study.analysis.tables.printed_grid import RankingDirection
from study.published import PublishedTable
from study.ranking import SeedStatistics, seed_statistics
from study.ranking.difference import CONFIDENCE_LEVEL, Difference, difference_from_error, mean_difference
from study.reproduce.reproduction import (
    CellPlace,
    CellsByPlace,
    Reproduction,
    judge_claims,
    list_cell_places,
    printed_paper_entry,
    table_title,
)
from study.spec.paper_readings import ProtocolReading
from study.text import escape_markdown, pluralise

CellPair = tuple[CellPlace, CellPlace]
"""Two cells of one row or column; the first has the larger printed number."""


@dataclass(frozen=True)
class ReadingResult:
    """Results of a table under one reading.

    Attributes:
        name, reading: as declared in the table's study file.
        study: the name of its study.
        reproduction: the table with our cells.
        claim_verdicts: the verdict on each of the table's claims, by its text: "holds", "does not hold" or "cannot
            tell".
        our_cells: our cells at the epoch that it reads.
        cell_verdicts: the verdict on each cell that has a printed number and ours: "agrees", "differs" or "cannot
            tell".
        order_agreement_by_seed: agreement of the cells' order with the printed one, by seed, from -1 (contrary) to 1
            (the same).
    """

    name: str
    reading: ProtocolReading
    study: str
    reproduction: Reproduction
    our_cells: CellsByPlace
    claim_verdicts: Mapping[str, str]
    cell_verdicts: Mapping[CellPlace, str]
    order_agreement_by_seed: Mapping[int, float]

    @property
    def order_agreement(self) -> SeedStatistics | None:
        """Spread of `order_agreement_by_seed` over seeds."""
        return seed_statistics(self.order_agreement_by_seed.values())


@dataclass(frozen=True)
class ReadingComparison:
    """Table under several readings.

    Attributes:
        compared_along: whether pairs are of cells in one row or in one column.
        n_pairs: number of pairs that the order is taken over.
        results: in the order of their declaration.
        differences: of the order of the leading reading less that of each other one, by name, seed by seed.
    """

    table: PublishedTable
    compared_along: RankingDirection
    n_pairs: int
    results: tuple[ReadingResult, ...]
    differences: Mapping[str, Difference]

    @property
    def leading_result(self) -> ReadingResult | None:
        """Reading whose order agrees best on average, the first of equals; None before any has values."""
        measured = [(agreement.mean, result) for result in self.results if (agreement := result.order_agreement)]
        return max(measured, key=lambda pair: pair[0])[1] if measured else None

    @property
    def is_lead_clear(self) -> bool:
        """Whether the leading reading agrees better than each other one, beyond the spread over seeds.

        The interval allows for its having been chosen.
        """
        return bool(self.differences) and all(found.is_clear is True for found in self.differences.values())


def compare_readings(
    table: PublishedTable,
    declared: Mapping[str, ProtocolReading],
    studies: Mapping[str, str],
    found: Mapping[str, Reproduction],
) -> ReadingComparison:
    """Compare the reproductions of a table under some of its readings.

    Args:
        studies: the name of each reading's study.
        found: the table under each of these readings.
    """
    along = next(iter(found.values())).best_marked_along
    cells = {
        name: each.best_epoch_cells if declared[name].epoch == "best" else each.last_epoch_cells
        for name, each in found.items()
    }
    seeds = _shared_seeds(cells.values())
    metrics = {old: new for each in found.values() for old, new in each.table.metrics.items()}
    compared = table.model_copy(update={"metrics": metrics})
    pairs = cell_pairs_in_printed_order(compared, along, [each for each in cells.values() if _has_values(each)], seeds)
    results = tuple(
        ReadingResult(
            name,
            declared[name],
            studies[name],
            each,
            cells[name],
            {text: result.verdict for text, result in judge_claims(each.table, cells[name]).items()},
            dict(_cell_verdicts(each.table, cells[name])),
            order_agreement_by_seed(cells[name], pairs, seeds) if _has_values(cells[name]) else {},
        )
        for name, each in found.items()
    )
    comparison = ReadingComparison(table, along, len(pairs), results, {})
    leading = comparison.leading_result
    if leading is None:
        return comparison
    others = [result for result in results if result is not leading and result.order_agreement_by_seed]
    apart = {other.name: _order_agreement_difference(leading, other, len(others) + 1, len(pairs)) for other in others}
    return ReadingComparison(table, along, len(pairs), results, apart)


def _order_agreement_difference(leading: ReadingResult, other: ReadingResult, among: int, pairs: int) -> Difference:
    """Return the order of a reading, the best of `among`, less that of another, seed by seed (Student's t)."""
    ours, theirs = leading.order_agreement_by_seed, other.order_agreement_by_seed
    by_seed = [value - theirs[seed] for seed, value in ours.items()]
    value, count = fmean(by_seed), len(by_seed)
    if count < 2:
        return Difference(value, None, True, among)
    error = max(stdev(by_seed), 2 / pairs / math.sqrt(12)) / math.sqrt(count)
    return difference_from_error(value, error, count - 1, CONFIDENCE_LEVEL, True, among)


def cell_pairs_in_printed_order(
    table: PublishedTable, along: RankingDirection, found: Sequence[CellsByPlace], seeds: Sequence[int]
) -> list[CellPair]:
    """Return the pairs of cells that the print tells apart and that every reading has on all seeds.

    Both cells are in one row or column, and of one metric. The print tells two numbers apart where they differ beyond
    their printed spreads (Welch's t, 95%), or at all where it has no spread.
    """
    ready = [
        place
        for place in list_cell_places(table)
        if table.printed_cell(*place).value is not None
        and table.why_no_verdict(*place) is None
        and found
        and all(place in cells and set(seeds) <= cell_value_by_seed(cells[place]).keys() for cells in found)
    ]
    line = 0 if along == "row" else 1
    return [
        told
        for one, other in combinations(ready, 2)
        if one[line] == other[line] and table.metric_of(*one) == table.metric_of(*other)
        for told in _order_pair_as_printed(table, one, other)
    ]


def order_agreement_by_seed(cells: CellsByPlace, pairs: Iterable[CellPair], seeds: Iterable[int]) -> dict[int, float]:
    """Return by seed the share of pairs in the printed order less that in the contrary one; empty without pairs.

    A tie counts for neither.
    """
    listed = [(cell_value_by_seed(cells[more]), cell_value_by_seed(cells[less])) for more, less in pairs]
    return {
        seed: fmean((more[seed] > less[seed]) - (more[seed] < less[seed]) for more, less in listed)
        for seed in (seeds if listed else ())
    }


def cell_value_by_seed(cell: MetricCell) -> Mapping[int, float]:
    """Return a cell's values by seed; the mean where one seed has several, as on splits of the data."""
    return cell.value_by_seed or ({cell.seeds[0]: fmean(cell.values)} if cell.values and len(cell.seeds) == 1 else {})


def _order_pair_as_printed(table: PublishedTable, one: CellPlace, other: CellPlace) -> list[CellPair]:
    """Return the pair with its larger printed number first; nothing where the print does not tell them apart."""
    left, right = (widen_printed_spread(printed_paper_entry(table, place).statistics) for place in (one, other))
    gap = mean_difference(left, right)
    if gap is None or gap.value == 0 or gap.is_clear is False:
        return []
    return [(one, other) if gap.value > 0 else (other, one)]


def _has_values(cells: CellsByPlace) -> bool:
    return any(cell.values for cell in cells.values())


def _shared_seeds(found: Iterable[CellsByPlace]) -> list[int]:
    """Return the seeds that every reading with values has run; cells that lack one still run, and are left out."""
    of_readings = [{seed for cell in cells.values() for seed in cell.seeds} for cells in found if _has_values(cells)]
    return sorted(set.intersection(*of_readings)) if of_readings else []


def _cell_verdicts(table: PublishedTable, cells: CellsByPlace) -> Iterable[tuple[CellPlace, str]]:
    for place, cell in cells.items():
        printed = printed_paper_entry(table, place).statistics
        if cell.values and printed is not None and table.why_no_verdict(*place) is None:
            yield place, judge_cell(cell, printed)


def reading_comparison_to_markdown(comparison: ReadingComparison) -> str:
    """Return the readings as Markdown: which one the print supports, and the claims and cells under each."""
    table = comparison.table
    parts = [f"# {table_title(table)}: readings of its protocol", table.caption]
    parts.append(frame_to_markdown(_agreement_by_reading_frame(comparison)))
    parts += [best_supported_reading_text(comparison), study_file_reading_text(comparison)]
    if table.claims:
        claims = {"claim": [claim.text for claim in table.claims]}
        claims |= {result.name: list(result.claim_verdicts.values()) for result in comparison.results}
        parts += ["## Claims", frame_to_markdown(pd.DataFrame(claims, dtype=object))]
    parts += ["## Cells", frame_to_markdown(_cells_table(comparison))]
    notes = [
        f"{result.name}: {note}"
        for result in comparison.results
        for note in result.reproduction.last_epoch_grid.notes
        if note.startswith("Budget:")
    ]
    return "\n\n".join([*parts, "\n".join(f"- {escape_markdown(note)}" for note in notes)]) + "\n"


def best_supported_reading_text(comparison: ReadingComparison) -> str:
    """Return which reading the print supports best, and how surely."""
    leading, table = comparison.leading_result, comparison.table
    rule = (
        f"Order: of the {pluralise(comparison.n_pairs, 'pair')} of cells in one {comparison.compared_along} that the "
        "print tells apart, the share in the printed order less the share in the contrary one, mean over seeds."
    )
    if leading is None or not comparison.n_pairs:
        return f"No cells have run yet whose order the print tells: study reproduce {table.name} --readings all."
    gaps = ", ".join(
        f"{_format_two_decimals(gap.value, '+')} over {name}{_interval_text(gap)}"
        for name, gap in comparison.differences.items()
    )
    if not gaps:
        return f"{rule} Only {leading.name} has been run."
    if comparison.is_lead_clear:
        return f"{rule} The print supports {leading.name} best: {gaps}."
    return f"{rule} The print does not tell the readings apart here; {leading.name} leads: {gaps}."


def study_file_reading_text(comparison: ReadingComparison) -> str:
    """Return which reading the study file itself has, and why."""
    taken = [result for result in comparison.results if result.reading.taken is not None]
    return " ".join(f"The study file has {result.name}: {result.reading.taken}." for result in taken)


def reading_comparison_to_dict(comparison: ReadingComparison) -> dict[str, object]:
    """Return a comparison as plain values for JSON."""
    leading = comparison.leading_result
    return {
        "name": comparison.table.name,
        "along": comparison.compared_along,
        "pairs": comparison.n_pairs,
        "leading": leading.name if leading else None,
        "told": comparison.is_lead_clear,
        "differences": {name: gap.to_dict() for name, gap in comparison.differences.items()},
        "readings": [
            {
                "name": result.name,
                **result.reading.model_dump(),
                "study": result.study,
                "order": {str(seed): value for seed, value in result.order_agreement_by_seed.items()},
                "claims": dict(result.claim_verdicts),
                "cells": [
                    {"row": row, "column": column, "word": word} for (row, column), word in result.cell_verdicts.items()
                ],
            }
            for result in comparison.results
        ],
    }


def _agreement_by_reading_frame(comparison: ReadingComparison) -> pd.DataFrame:
    lines = []
    for result in comparison.results:
        words, cells = list(result.claim_verdicts.values()), list(result.cell_verdicts.values())
        agreement = result.order_agreement
        by_seed = ", ".join(_format_two_decimals(value) for value in result.order_agreement_by_seed.values())
        line = {
            "reading": result.name,
            "what it means": result.reading.about,
            "source": result.reading.source,
            "claims that hold": f"{words.count('holds')} of {len(words)}",
            "contradicted": str(words.count("does not hold")),
            "cells that agree": f"{cells.count('agrees')} of {len(cells)}",
            "differ": str(cells.count("differs")),
            "order": formatting.MISSING_TEXT if agreement is None else _format_two_decimals(agreement.mean),
            "by seed": by_seed or formatting.MISSING_TEXT,
        }
        lines.append(line)
    return pd.DataFrame(lines, dtype=object)


def _cells_table(comparison: ReadingComparison) -> pd.DataFrame:
    table, lines = comparison.table, []
    for place in list_cell_places(table):
        line = {"row": place[0], "column": place[1], "paper": table.printed_cell(*place).printed}
        for result in comparison.results:
            cell = result.our_cells.get(place)
            values = cell.seed_statistics if cell else None
            mean = _mean_and_deviation_text(cell.metric, values) if cell and values else formatting.MISSING_TEXT
            word = result.cell_verdicts.get(place)
            line[result.name] = f"{mean} ({word})" if word else mean
        lines.append(line)
    return pd.DataFrame(lines, dtype=object)


def _mean_and_deviation_text(metric: str, values: SeedStatistics) -> str:
    scale = 100 if formatting.is_percent_metric(metric) else 1
    deviation = "" if values.standard_deviation is None else f" ± {scale * values.standard_deviation:.1f}"
    return f"{scale * values.mean:.1f}{deviation}"


def _format_two_decimals(value: float, sign: str = "") -> str:
    return f"{value:{sign}.2f}"


def _interval_text(gap: Difference) -> str:
    if gap.interval is None:
        return " (one seed)"
    low, high = gap.interval
    return f" ({CONFIDENCE_LEVEL:.0%} interval {_format_two_decimals(low, '+')} to {_format_two_decimals(high, '+')})"
