"""Verdicts of reproduced tables and the claims of papers, on numbers whose truth is known."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from study.analysis.statistics.parameter_tables import MetricCell
from study.analysis.tables.paper_comparison import (
    FRACTION_MARGIN,
    CellVerdict,
    ClaimResult,
    judge_agreement,
    judge_best_claim,
    judge_better_claim,
    judge_increasing_claim,
    widen_printed_spread,
)
from study.ranking import SeedStatistics, seed_statistics

from .row import Row

WHERE = "reproduce"
COUNTS = (3, 5, 10)
KINDS = ("sample", "population")
"""What a paper's deviation may be: divided by n - 1 or by n."""


def rows(draws: int) -> Iterator[Row]:
    """Every word of a verdict and of a claim."""
    for count, kind in product(COUNTS, KINDS):
        yield from _verdicts(count, kind, draws)
    for count, case in product(COUNTS, CASES):
        yield from _claims(count, case, draws)


def _verdicts(count: int, kind: str, draws: int) -> Iterator[Row]:
    """Either word where it is wrong."""
    generator = np.random.default_rng([count, KINDS.index(kind)])
    text = f"{count} seeds each, printed deviation is the {kind}'s"
    differs = sum(_verdict(generator, count, kind, 0.0) == "differs" for _ in range(draws))
    agrees = sum(_verdict(generator, count, kind, FRACTION_MARGIN, 0.5) == "agrees" for _ in range(draws))
    yield Row("differs", WHERE, f"no difference; {text}", "at most 5%", 0.0, 0.05, differs / draws, draws)
    truth = f"a difference of the margin; {text}"
    yield Row("agrees", WHERE, truth, "at most 5%", 0.0, 0.05, agrees / draws, draws)


def _verdict(
    generator: np.random.Generator, count: int, kind: str, apart: float, deviation: float = 1.0
) -> CellVerdict:
    """On a cell of a table that prints percentages with one digit after the point; `deviation` in points."""
    ours = seed_statistics(generator.normal(0.7 + apart, 0.01 * deviation, count).tolist())
    values = generator.normal(0.7, 0.01 * deviation, count)
    printed = float(values.std(ddof=1 if kind == "sample" else 0))
    return judge_agreement(
        ours, widen_printed_spread(SeedStatistics(round(float(values.mean()), 3), round(printed, 3), count))
    )


@dataclass(frozen=True)
class Case:
    """A claim at the edge of truth: whichever of these words is said of it is wrong.

    Attributes:
        means: true ones of the cells, in deviations.
        shared: correlation over seeds; None: the cells have no seed in common.
        deviation: of the first cell; 1 of the others.
    """

    name: str
    claim: Callable[[Sequence[MetricCell]], ClaimResult]
    means: Sequence[float]
    shared: float | None
    words: Sequence[str]
    deviation: float = 1.0


def _better(cells: Sequence[MetricCell]) -> ClaimResult:
    return judge_better_claim(*cells)


def _best(cells: Sequence[MetricCell]) -> ClaimResult:
    return judge_best_claim(cells[0], cells[1:])


EITHER = ("holds", "does not hold")
CASES = (
    Case("better, both alike; shared seeds, correlation 0.8", _better, (0, 0), 0.8, EITHER),
    Case("better, both alike; other seeds", _better, (0, 0), None, EITHER),
    Case("better, both alike; other seeds, 3 times the deviation", _better, (0, 0), None, EITHER, 3.0),
    Case("best of 5, one as good; shared seeds, correlation 0.8", _best, (0, 0, -5, -5, -5), 0.8, EITHER[:1]),
    Case("increasing over 4, one step flat; other seeds", judge_increasing_claim, (0, 0, 5, 10), None, EITHER[:1]),
    Case("increasing over 4, each by next to nothing; shared seeds, correlation "
    "0.8", judge_increasing_claim, (0, 0, 0, 0), 0.8,
         EITHER[1:]),
)  # fmt: skip


def _claims(count: int, case: Case, draws: int) -> Iterator[Row]:
    generator = np.random.default_rng([count, CASES.index(case)])
    found = [case.claim(_cells(generator, count, case)).verdict for _ in range(draws)]
    for word in case.words:
        text = f"{count} seeds; {case.name}"
        yield Row(f"claim {word}", WHERE, text, "at most 5%", 0.0, 0.05, found.count(word) / draws, draws)


def _cells(generator: np.random.Generator, count: int, case: Case) -> list[MetricCell]:
    shared, number = case.shared or 0.0, len(case.means)
    values = shared**0.5 * generator.normal(size=count) + (1 - shared) ** 0.5 * generator.normal(size=(number, count))
    values[0] *= case.deviation
    first = [0 if case.shared is not None else count * place for place in range(number)]
    lines = (values + np.array(case.means)[:, None]).tolist()
    return [
        MetricCell("test/accuracy", tuple(line), seeds=tuple(range(start, start + count)))
        for line, start in zip(lines, first, strict=True)
    ]
