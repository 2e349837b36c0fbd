"""Our cells beside a paper's, in the paper's layout, with a verdict for each pair; and whether its claims hold."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean
from typing import Literal

import pandas as pd
from scipy.special import stdtr

from study.analysis.statistics import formatting
from study.analysis.statistics.parameter_tables import MetricCell
from study.analysis.tables.printed_grid import PrintedEntry, PrintedGrid, cell_notes, metric_cell_to_entry
from study.metrics import is_fraction_metric, lower_is_better
from study.ranking import SeedStatistics, seed_statistics
from study.ranking.difference import CONFIDENCE_LEVEL, mean_difference

FRACTION_MARGIN = 0.01
"""Default margin of fractions: a difference of one percentage point does not matter."""

RELATIVE_MARGIN = 0.05
"""The margin of other numbers, as a fraction of the printed one."""

CellVerdict = Literal["agrees", "differs", "cannot tell"]


def judge_agreement(
    ours: SeedStatistics | None, theirs: SeedStatistics | None, margin: float = FRACTION_MARGIN
) -> CellVerdict:
    """Compare two means by their spreads and counts: Welch's t on the difference, with an equivalence margin.

    - agrees: the 90% interval of the difference lies within ± `margin` (two one-sided tests at 5%, Schuirmann 1987):
      a larger difference is ruled out. Finding no difference is not enough.
    - differs: it does not agree, and zero lies outside the 95% interval of the difference.
    - cannot tell: neither, or one of the two has fewer than two values or no known spread. This is common with few
      seeds.

    Args:
        ours: None for a missing cell.
        theirs: printed (see `widen_printed_spread`); without a deviation where the paper gives no spread or does not
            say of how many values.
        margin: in the unit of the means.
    """
    wide, narrow = mean_difference(ours, theirs), mean_difference(ours, theirs, confidence=0.90)
    if wide is None or narrow is None or wide.interval is None or narrow.interval is None:
        return "cannot tell"
    if -margin <= narrow.interval[0] and narrow.interval[1] <= margin:
        return "agrees"
    return "differs" if wide.is_clear else "cannot tell"


def widen_printed_spread(printed: SeedStatistics | None) -> SeedStatistics | None:
    """Convert a printed spread to the sample's as if it were the population's (divided by n): the wider reading.

    Papers say how many values are behind a number, hardly ever which of the two deviations it is. Of three values they
    differ by a factor of 1.22, by which a 95% interval that takes the wrong one would be a 90% interval.
    """
    if printed is None or printed.standard_deviation is None or printed.count < 2:
        return printed
    factor = math.sqrt(printed.count / (printed.count - 1))
    return replace(printed, standard_deviation=factor * printed.standard_deviation)


def equivalence_margin(metric: str, theirs: SeedStatistics | None) -> float:
    """Return the margin for a printed number: `FRACTION_MARGIN`, or `RELATIVE_MARGIN` of what is no fraction."""
    if is_fraction_metric(metric) or theirs is None:
        return FRACTION_MARGIN
    return RELATIVE_MARGIN * abs(theirs.mean)


def judge_cell(ours: MetricCell, printed: SeedStatistics) -> CellVerdict:
    """Return the verdict on a cell of ours beside a printed number."""
    margin = equivalence_margin(ours.metric, printed)
    return judge_agreement(ours.seed_statistics, widen_printed_spread(printed), margin)


VERDICT_RULE_NOTE = (
    f"Verdicts (Welch's t): agrees where the 90% interval of the difference lies within {100 * FRACTION_MARGIN:g} "
    f"points of percent to each side ({RELATIVE_MARGIN:.0%} of a printed number that is not a percentage); differs "
    "where it does not agree and zero lies outside the 95% interval; otherwise, or with fewer than two values or no "
    "known spread on a side, it cannot be told. A printed deviation is read as the population's, the wider of its two "
    "readings."
)
"""Note to print under a table."""


# Judges a table's claims, given its uncertainty: Student's t for each comparison of two cells that a claim has.
#
# Cells that ran on the same seeds are compared seed by seed, others by Welch's t, see `study.ranking.difference`. A
# claim of several comparisons is true only if all are. So it holds where each is shown at the 5% level: at most 5% of
# false claims are said to hold, whatever the number of comparisons (intersection-union test, Berger 1982). It is
# refuted by one comparison, so there the level is divided by their number (Bonferroni): at most 5% of true claims are
# refuted.

SIGNIFICANCE_LEVEL = 1 - CONFIDENCE_LEVEL
SIGNIFICANT_DECIMALS = 12  # means that differ by less differ by rounding alone

CLAIM_RULE_NOTE = (
    "Claims (Student's t of the differences by seed where both cells ran on the same seeds, else Welch's): a claim "
    f"holds where each of its comparisons is shown at the {SIGNIFICANCE_LEVEL:.0%} level, one-sided. It does not hold "
    f"where the contrary of one is shown at {SIGNIFICANCE_LEVEL:.0%} divided by the number of comparisons. Otherwise, "
    "or where a cell has fewer than two values, it cannot be told. A tie is not better."
)
"""Note to print under a table of claims."""

ClaimVerdict = Literal["holds", "does not hold", "cannot tell"]
ClaimedCellOrder = tuple[MetricCell, MetricCell]
"""Two cells; the claim is that the first has the larger mean."""


@dataclass(frozen=True)
class ClaimResult:
    """The verdict on a claim.

    Attributes:
        verdict: see `CLAIM_RULE_NOTE`.
        is_direction_as_claimed: whether the means as they are show it; None where a cell has no value.
        p_value: of the comparison that is shown least, one-sided; None where a cell has fewer than two values.
        remark: what else to know; may be empty.
    """

    verdict: ClaimVerdict
    is_direction_as_claimed: bool | None
    p_value: float | None
    remark: str = ""


def judge_better_claim(cell: MetricCell, other: MetricCell) -> ClaimResult:
    """Judge whether a cell is better than another of the same metric: higher, or lower where less is better."""
    return _judge_cell_orders([_claimed_order(cell, other)])


def judge_increasing_claim(cells: Sequence[MetricCell]) -> ClaimResult:
    """Judge whether each cell's mean is larger than that before it."""
    return _judge_cell_orders([(after, before) for before, after in pairwise(cells)])


def judge_decreasing_claim(cells: Sequence[MetricCell]) -> ClaimResult:
    """Judge whether each cell's mean is smaller than that before it."""
    return _judge_cell_orders([(before, after) for before, after in pairwise(cells)])


def judge_best_claim(cell: MetricCell, among: Sequence[MetricCell]) -> ClaimResult:
    """Judge whether a cell is better than each of the others that have a value; the remark says how many."""
    measured = [other for other in among if other.values]
    result = _judge_cell_orders([_claimed_order(cell, other) for other in measured])
    if len(measured) == len(among):
        return result
    remark = f"compared with the {len(measured)} of {len(among)} others that have a value"
    return replace(result, remark="; ".join(filter(None, [result.remark, remark])))


def _claimed_order(cell: MetricCell, other: MetricCell) -> ClaimedCellOrder:
    return (other, cell) if lower_is_better(cell.metric) else (cell, other)


def _judge_cell_orders(orders: Sequence[ClaimedCellOrder]) -> ClaimResult:
    """Judge whether all of some orders of two cells hold."""
    cells = [cell for order in orders for cell in order]
    empty = sum(not cell.values for cell in cells)
    if empty or not orders:
        why = "a value is missing" if empty else "there is nothing to compare with"
        return ClaimResult("cannot tell", None, None, why)
    direction = all(_rounded_mean(more) > _rounded_mean(less) for more, less in orders)
    if any(len(cell.values) < 2 for cell in cells):
        return ClaimResult("cannot tell", direction, None, "one value is too few")
    levels = [_p_value(more, less) for more, less in orders]
    weakest = max(levels)
    refuted = weakest >= 1 - SIGNIFICANCE_LEVEL / len(orders)
    word: ClaimVerdict = "holds" if weakest <= SIGNIFICANCE_LEVEL else "does not hold" if refuted else "cannot tell"
    return ClaimResult(word, direction, weakest)


def _p_value(more: MetricCell, less: MetricCell) -> float:
    """Return how likely so large a difference, or a larger one, is where the first is not larger; one-sided."""
    gap = mean_difference(more.value_by_seed, less.value_by_seed)
    if gap is None or not gap.is_paired:
        gap = mean_difference(seed_statistics(more.values), seed_statistics(less.values))
    assert gap  # both have values
    assert gap.standard_error is not None  # of two or more
    if gap.standard_error == 0.0:
        return float(round(gap.value, SIGNIFICANT_DECIMALS) <= 0)
    return float(stdtr(gap.degrees_of_freedom, -gap.value / gap.standard_error))


def _rounded_mean(cell: MetricCell) -> float:
    return round(fmean(cell.values), SIGNIFICANT_DECIMALS)


OUR_LINE, PAPER_LINE, VERDICT_LINE = "ours", "paper", "verdict"
NO_VERDICT = "no verdict"

CellPlace = tuple[str, str]


def compare_with_paper(
    rows: Sequence[str],
    columns: Sequence[str],
    ours: Mapping[CellPlace, MetricCell],
    paper: Mapping[CellPlace, PrintedEntry],
    missing: Mapping[CellPlace, str],
    unjudged: Collection[CellPlace],
) -> PrintedGrid:
    """Tabulate three lines per row: our numbers, the paper's, the verdicts.

    A row without any cell of ours has the paper's line alone, with the reasons; a row in which the paper prints nothing
    has ours alone. A cell of which the paper prints nothing has no verdict.

    Args:
        rows, columns: labels, in the printed order.
        ours: by the labels of row and column; a cell that has not run yet may be in it, empty.
        paper: the same; `statistics` in the unit of ours, None where nothing is printed, without a deviation where the
            paper prints no spread or does not say of how many values.
        missing: why a cell of ours has no number.
        unjudged: the cells on which there is no verdict.
    """
    our_cells = list(ours.values())
    lines: list[tuple[CellPlace, list[PrintedEntry]]] = []
    for row in rows:
        places = [(row, column) for column in columns]
        paper_entries = [paper.get(place, PrintedEntry()) for place in places]
        if not any(place in ours for place in places):
            why = dict.fromkeys(missing[place] for place in places if place in missing)
            lines.append(((row, f"{PAPER_LINE} ({', '.join(why)})"), paper_entries))
            continue
        found = (
            metric_cell_to_entry(ours[place], our_cells, OUR_LINE) if place in ours else PrintedEntry()
            for place in places
        )
        our_entries = [
            replace(entry, remark=missing.get(place, entry.remark)) for place, entry in zip(places, found, strict=True)
        ]
        our_line = ((row, OUR_LINE), our_entries)
        if all(entry == PrintedEntry() for entry in paper_entries):
            lines.append(our_line)
            continue
        judged = {place: _verdict_text(ours.get(place), paper.get(place)) for place in places if place not in missing}
        judged |= {place: NO_VERDICT for place in judged if place in unjudged}
        verdicts = [PrintedEntry(remark=judged.get(place, "")) for place in places]
        lines += [our_line, ((row, PAPER_LINE), paper_entries), ((row, VERDICT_LINE), verdicts)]
    notes = [*cell_notes(our_cells, gaps_in_percent=True), VERDICT_RULE_NOTE]
    return PrintedGrid(
        row_label_titles=("", ""),
        rows=[labels for labels, _ in lines],
        column_label_titles=("",),
        columns=[(column,) for column in columns],
        entries=[entries for _, entries in lines],
        notes=notes if our_cells else [],
        are_gaps_in_percent=True,
    )


def _verdict_text(ours: MetricCell | None, paper: PrintedEntry | None) -> str:
    return judge_cell(ours, paper.statistics) if ours and paper and paper.statistics else ""


def claims_table(results: Mapping[str, ClaimResult]) -> pd.DataFrame:
    """Return the verdict on each claim of a published table, by its text, as text; `CLAIM_RULE_NOTE` explains it."""
    return pd.DataFrame(
        {
            "claim": list(results),
            "result": [result.verdict for result in results.values()],
            "our means": [MEANS_SHOW_CLAIM_TEXTS[result.is_direction_as_claimed] for result in results.values()],
            "p": [_p_text(result.p_value) for result in results.values()],
            "remark": [result.remark or formatting.MISSING_TEXT for result in results.values()],
        },
        dtype=object,
    )


MEANS_SHOW_CLAIM_TEXTS = {True: "show it", False: "do not", None: formatting.MISSING_TEXT}


def _p_text(p: float | None) -> str:
    if p is None:
        return formatting.MISSING_TEXT
    return "< 0.001" if p < 0.001 else "> 0.999" if p > 0.999 else f"{p:.3f}"
