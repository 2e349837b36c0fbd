"""The table of a suite for one rule as a printed grid, and the table of where its spread comes from."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from study.analysis.statistics import formatting
from study.analysis.statistics.suite_results import Spent
from study.analysis.statistics.suite_table import AVERAGE, RuleTable
from study.analysis.tables.grid import Entry, Grid, Mark
from study.ranking import Spread

RANK = "rank"
ALL = "all methods"


def table_grid(table: RuleTable, searches: int) -> Grid:
    """Methods by data sets, with average and rank; the best of a column and those not told from it are marked.

    Args:
        searches: planned in each cell; fewer are told.
    """
    rows = []
    for method in table.methods:
        row = [_entry(table, method, label, searches) for label in table.data]
        rows.append([*row, _average(table, method), _rank(table, method)])
    columns = [(label,) for label in (*table.data, AVERAGE, RANK)]
    return Grid(("method",), [(method,) for method in table.methods], ("",), columns, rows)


def spread_grid(table: RuleTable, spent: Mapping[str, Spent]) -> Grid:
    """By method the standard deviations from search to search and from seed to seed, and what its searches took."""
    lines = {**table.of_methods, ALL: table.components}
    epochs = {
        **spent,
        ALL: Spent(sum(one.epochs for one in spent.values()), sum(one.seconds for one in spent.values())),
    }
    rows = [
        [
            Entry(remark=deviation(table.judge, own.search)),
            Entry(remark=deviation(table.judge, own.seed)),
            Entry(remark=formatting.MISSING if own.p is None else level(own.p)),
            Entry(remark=f"{epochs[method].epochs:,}"),
            Entry(remark=formatting.duration(epochs[method].seconds)),
        ]
        for method, own in lines.items()
    ]
    columns = [(head,) for head in ("from search to search", "from seed to seed", "p", "epochs", "time of trials")]
    return Grid(("method",), [(method,) for method in lines], ("",), columns, rows)


def rules_grid(tables: Sequence[RuleTable]) -> Grid:
    """The averages of every rule beside each other."""
    first = tables[0]
    rows = [[replace(_average(table, method), mark=None) for table in tables] for method in first.methods]
    columns = [(table.rule,) for table in tables]
    return Grid(("method",), [(method,) for method in first.methods], ("",), columns, rows)


def deviation(metric: str, value: float | None) -> str:
    """A standard deviation in the unit of the table."""
    if value is None:
        return formatting.MISSING
    return f"{100 * value:.1f}" if formatting.in_percent(metric) else f"{value:.3f}"


def level(p: float) -> str:
    """A p value as it is printed."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _entry(table: RuleTable, method: str, label: str, searches: int) -> Entry:
    found = table.cells[method, label]
    if found is None:
        reasons = table.results.missing.get((method, label), {})
        return Entry(remark=", ".join(reasons) or formatting.MISSING)
    mark: Mark | None = "best" if table.leading[label].get(method) else None
    remark = f"({found.count} of {searches})" if found.count < searches else ""
    return Entry(table.judge, Spread(found.mean, found.error, found.count), remark, mark=mark)


def _average(table: RuleTable, method: str) -> Entry:
    found = table.averages[method]
    if found is None:
        return Entry(remark=formatting.MISSING)
    mark: Mark | None = "best" if table.leading[AVERAGE].get(method) else None
    return Entry(table.judge, Spread(found.mean, found.error, found.count), mark=mark)


def _rank(table: RuleTable, method: str) -> Entry:
    ranks = table.ranks
    return Entry(remark=f"{ranks.average[method]:.2f}" if ranks and method in ranks.average else formatting.MISSING)
