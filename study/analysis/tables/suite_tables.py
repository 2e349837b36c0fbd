"""A suite's tables as Markdown, LaTeX, CSV and plain values."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from study.analysis.statistics.suite_results import Found, Results, Spent, results
from study.analysis.statistics.suite_table import AVERAGE, RuleTable, document, rule_table
from study.analysis.tables.formats import to_latex, to_markdown
from study.analysis.tables.grid import Grid
from study.analysis.tables.suite_grid import rules_grid, spread_grid, table_grid
from study.analysis.tables.suite_notes import suite_notes, table_notes
from study.spec.suite import Suite
from study.text.markdown import escape
from study.text.spreadsheet import neutral

COLUMNS = ("rule", "method", "data", "metric", "mean", "standard_error", "low", "high", "n", "leads", "rank")

RULES = (
    "All rules pick from the same searches, and often the same configuration: their averages are not independent, and "
    "no difference between rules is judged here."
)


@dataclass(frozen=True)
class SuiteTables:
    """A suite's results so far.

    Attributes:
        tables: one for each rule, in the file's order.
        spent: by method.
        states: how many searches are in which state.
    """

    suite: Suite
    tables: Sequence[RuleTable]
    spent: Mapping[str, Spent]
    states: Mapping[str, int]


def suite_tables(suite: Suite, found: Found) -> SuiteTables:
    """The tables of a suite in any state.

    Args:
        found: gives the study of a search, None where it has not begun.
    """
    by_rule, spent, states = results(suite, found)
    tables = [_table(suite, rule, one) for rule, one in by_rule.items()]
    return SuiteTables(suite, tables, spent, states)


def _table(suite: Suite, rule: str, found: Results) -> RuleTable:
    return rule_table(rule, suite.judge, suite.methods, suite.data, found)


def markdown(tables: SuiteTables) -> str:
    """Every rule's table with its notes, where the spread comes from, and what holds for all."""
    suite = tables.suite
    parts = [f"# {escape(suite.name)}"]
    for table in tables.tables:
        parts += [f"## Picked by {escape(table.rule)}", _markdown(table_grid(table, suite.searches))]
        parts += [_listed(table_notes(suite, table)), _markdown(spread_grid(table, tables.spent))]
    if len(tables.tables) > 1:
        parts += ["## Averages by rule", _markdown(rules_grid(tables.tables)), _listed([RULES])]
    return "\n\n".join([*parts, "## For all tables", _listed(suite_notes(suite))]) + "\n"


def latex(tables: SuiteTables) -> str:
    """Every rule's table with its notes, as a LaTeX `table` each."""
    suite = tables.suite
    grids = [
        replace(table_grid(table, suite.searches), notes=[*table_notes(suite, table), *suite_notes(suite)])
        for table in tables.tables
    ]
    captions = [f"{suite.name}: picked by {table.rule}" for table in tables.tables]
    return "\n\n".join(to_latex(grid, caption=caption) for grid, caption in zip(grids, captions, strict=True)) + "\n"


def to_csv(tables: SuiteTables) -> str:
    """A line for each rule, method and data set, and for each average; not rounded, fractions for percent."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for table in tables.tables:
        for line in _lines(table):
            writer.writerow([neutral(value) if isinstance(value, str) else value for value in line])
    return text.getvalue()


def to_json(tables: SuiteTables) -> dict[str, Any]:
    """All of it as plain values."""
    spent = {method: {"epochs": one.epochs, "seconds": one.seconds} for method, one in tables.spent.items()}
    return {
        **tables.suite.to_document(),
        "states": dict(tables.states),
        "spent": spent,
        "tables": [{**document(table), "notes": table_notes(tables.suite, table)} for table in tables.tables],
        "notes": suite_notes(tables.suite),
    }


def _lines(table: RuleTable) -> list[list[Any]]:
    whole = document(table)
    rows = [*whole["cells"], *({"data": AVERAGE, **row} for row in whole["averages"])]
    ranks = (whole["ranks"] or {}).get("average", {})
    return [
        [
            table.rule,
            row["method"],
            row["data"],
            table.judge,
            row["mean"],
            row["standard_error"],
            *(row["interval"] or (None, None)),
            row["n"],
            row["leads"],
            ranks.get(row["method"]) if row["data"] == AVERAGE else None,
        ]
        for row in rows
    ]


def _markdown(grid: Grid) -> str:
    return to_markdown(grid).rstrip()


def _listed(notes: Sequence[str]) -> str:
    return "\n".join(f"- {escape(note)}" for note in notes)
