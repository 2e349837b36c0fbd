"""A suite's tables as Markdown, LaTeX, CSV and plain values."""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from study.analysis.statistics import formatting
from study.analysis.statistics.suite_table import (
    AVERAGE,
    LEVEL,
    Found,
    Results,
    RuleTable,
    Spent,
    document,
    results,
    rule_table,
)
from study.analysis.tables.formats import to_latex, to_markdown
from study.analysis.tables.grid import Entry, Grid, Mark
from study.ranking import Spread
from study.spec.rungs import schedule
from study.spec.suite import Suite
from study.text import escaped, neutral_cell

# The sentences under a suite's tables: each only where the numbers carry it.


def table_notes(suite: Suite, table: RuleTable) -> list[str]:
    """Return what the numbers of one rule's table say, and what they do not."""
    return [_cells(suite, table), *_bold(table), *_ranks(suite, table), *_spread(table), *_missing(suite, table)]


def suite_notes(suite: Suite) -> list[str]:
    """Return what holds for all tables of a suite: budget, splits, averages."""
    spec = suite.cells[0].spec
    trials = max(cell.spec.trials for cell in suite.cells)
    stopping = schedule(spec.search.early_stopping).words(spec.search.early_stopping, spec.epochs)
    lines = [
        f"Each search: {formatting.count(trials, 'trial')} of at most {formatting.count(spec.epochs, 'epoch')}, "
        f"sampler {spec.search.sampler}, {spec.metric}; early stopping: {stopping}. What a rule picks then runs on "
        f"{suite.seeds} fresh seeds, and test is read for these alone."
    ]
    single = [method for method in suite.methods if not suite.by_place[method, suite.data[0]][0].spec.search.space]
    if single and trials > 1:
        lines.append(f"Without a space, so one configuration and nothing to pick: {formatting.listed(single)}.")
    if suite.split == "same":
        lines.append(
            "All searches on a data set share its split, so no number tells how much another split would change."
        )
    else:
        lines.append("Each search has a split of its own, so ± has the split's luck in it.")
    lines.append(
        f"The {AVERAGE} is over these data sets. Its standard error comes from the searches on each; how methods would "
        "do on other data sets it does not tell."
    )
    return lines


def _cells(suite: Suite, table: RuleTable) -> str:
    unit = f"{table.judge} in percent" if formatting.in_percent(table.judge) else table.judge
    text = f"{unit} of what the rule {table.rule} picks: mean over searches of the mean over fresh seeds"
    if suite.searches == 1:
        return f"{text}; from one search there is no standard error."
    return f"{text}, ± standard error over searches (not over seeds); {suite.searches} searches in a cell."


def _bold(table: RuleTable) -> Iterator[str]:
    judged = {column: [told for told in leads.values() if told is not None] for column, leads in table.leading.items()}
    if not any(judged.values()):
        return
    if all(len(told) < 2 for told in judged.values()):
        yield "Bold: the best of a column. No two methods have two searches in common, so none are told apart."
        return
    text = "Bold: the best of a column, and those that the searches do not tell from it (95%, all pairs at once)."
    if table.reach is not None:
        low, high = (_points(table, end) for end in table.reach)
        apart = low if low == high else f"{low} (the pair that varies least) to {high} (the one that varies most)"
        text += f" To be told from each other, two averages have to be {apart} apart."
    yield text


def _ranks(suite: Suite, table: RuleTable) -> Iterator[str]:
    ranks = table.ranks
    if ranks is None:
        if len(suite.methods) > 1:
            yield "No ranks: they need two data sets on which every method has a value."
        return
    yield (
        f"Rank: the mean place over {ranks.blocks} data sets, 1 is best; searches on one data set are no further data "
        f"sets. Friedman's test by permutation: p = {ranks.p:.3f}; critical difference {ranks.critical:.2f} (Nemenyi, "
        "95%, all pairs at once)."
    )
    if not ranks.can_tell:
        largest = len(suite.methods) - 1
        yield (
            f"So few data sets cannot tell any two methods apart by rank: the largest possible difference is {largest}."
        )
    elif ranks.apart:
        pairs = [f"{better} before {worse}" for better, worse in ranks.apart]
        yield f"Told apart by rank: {formatting.listed(pairs)}."
    else:
        yield "No two methods are told apart by rank."
    names = Counter(str(suite.by_place[suite.methods[0], label][0].spec.base["data"]["name"]) for label in suite.data)
    if repeated := [f"{count} are variants of {name}" for name, count in names.items() if count > 1]:
        yield (
            f"Of the data sets {formatting.listed(repeated)}: these are no independent draws, and the test by ranks "
            "speaks of such variants alone."
        )


def _spread(table: RuleTable) -> Iterator[str]:
    found = table.components
    if found.search is None or found.seed is None or found.p is None:
        return
    seed = _points(table, found.seed)
    if found.p > LEVEL:
        yield (
            f"From seed to seed the standard deviation is {seed}. That searches differ by more than their seeds is not "
            f"shown (p = {found.p:.3f})."
        )
        return
    yield (
        f"From search to search the standard deviation is {_points(table, found.search)}, what seeds bring into it "
        f"taken off (p {_compared(found.p)}); from seed to seed {seed}."
    )


def _missing(suite: Suite, table: RuleTable) -> Iterator[str]:
    reasons = Counter[str]()
    for counts in table.results.missing.values():
        reasons.update(counts)
    if reasons:
        told = [f"{count} {reason}" for reason, count in reasons.items()]
        yield f"Of {len(suite.cells)} searches without a value: {formatting.listed(told)}."


def _compared(p: float) -> str:
    """A p value with its sign."""
    text = level(p)
    return text if text.startswith("<") else f"= {text}"


def _points(table: RuleTable, value: float) -> str:
    return (
        f"{deviation(table.judge, value)} points"
        if formatting.in_percent(table.judge)
        else deviation(table.judge, value)
    )


# The table of a suite for one rule as a printed grid, and the table of where its spread comes from.

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
    parts = [f"# {escaped(suite.name)}"]
    for table in tables.tables:
        parts += [f"## Picked by {escaped(table.rule)}", _markdown(table_grid(table, suite.searches))]
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
            writer.writerow([neutral_cell(value) if isinstance(value, str) else value for value in line])
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
    return "\n".join(f"- {escaped(note)}" for note in notes)
