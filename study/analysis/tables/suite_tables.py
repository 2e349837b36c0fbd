"""A suite's tables as Markdown, LaTeX, CSV and plain values."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from study.analysis.statistics import formatting
from study.analysis.statistics.suite_statistics import (
    SEARCH_FAILED,
    SEARCH_NOT_OVER,
    DataSetOrAverage,
    FindSearchResults,
    MethodCost,
    RuleTable,
    averages_to_dicts,
    build_rule_table,
    cells_to_dicts,
    evaluate_searches,
)
from study.analysis.tables.printed_grid import PrintedEntry, PrintedGrid
from study.analysis.tables.table_formats import frame_to_csv, to_latex, to_markdown
from study.metrics import is_percent_metric, lower_is_better
from study.ranking import SeedStatistics
from study.spec.rungs import RungSchedule
from study.spec.sampler_capabilities import SAMPLER_CAPABILITIES
from study.spec.suite import Suite
from study.text import escape_markdown, pluralise, sentence_case


def rule_table_notes(suite: Suite, table: RuleTable) -> list[str]:
    """Return what the numbers of one rule's table say, and what they do not."""
    return [*_best_method_sentences(table), *_missing_values_notes(suite, table)]


def suite_state_note(suite: Suite, states: Mapping[str, int]) -> str:
    """Return the size of a suite and how far it is; while it is not over, that the numbers are of a part of it."""
    methods, data = pluralise(len(suite.methods), "method"), pluralise(len(suite.data), "data set")
    each, searches = (
        pluralise(number, "search", "searches") for number in (suite.searches_per_cell, len(suite.searches))
    )
    size = f"{methods} on {data}, {each} of each"
    if set(states) == {"complete"}:
        return f"{size}: {searches}, all complete."
    told = formatting.join_with_and(f"{count} {state}" for state, count in states.items())
    part = " The numbers are of the complete ones alone." if "complete" in states else ""
    return f"{size}: {searches}, {told}.{part}"


def notes_on_all_suite_tables(suite: Suite) -> list[str]:
    """Return how the tables are read, and what holds for all of them: budget, splits, averages."""
    spec = suite.searches[0].spec
    trials = max(search.spec.n_configurations for search in suite.searches)
    stopping = RungSchedule(spec.search.early_stopping, spec.epochs).describe_in_words
    lines = [
        *_how_to_read_notes(suite),
        f"Each search: {pluralise(trials, 'trial')} of at most {pluralise(spec.epochs, 'epoch')}, "
        f"sampler {spec.search.sampler}, searched on {spec.metric}; early stopping: {stopping}. What a rule picks then "
        f"runs on {suite.seeds_per_pick} fresh seeds, and test is read for these alone.",
    ]
    guides = ["the sampler"] if SAMPLER_CAPABILITIES[spec.search.sampler].learns_from_results else []
    guides += ["early stopping"] if spec.search.early_stopping.name != "none" else []
    if len(suite.rules) > 1 and guides:
        look = f"{formatting.join_with_and(guides)} {'looks' if len(guides) == 1 else 'look'}"
        lines.append(f"{sentence_case(look)} at {spec.metric} alone, which may suit one rule more than others.")
    single = [
        method for method in suite.methods if not suite.searches_by_cell[method, suite.data[0]][0].spec.search.space
    ]
    if single and trials > 1:
        lines.append(f"Without a space, so one configuration and nothing to pick: {formatting.join_with_and(single)}.")
    if suite.searches_per_cell > 1:
        lines.append(
            "All searches on a data set share its split, so no number tells how much another split would change."
        )
    if len(suite.data) > 1:
        lines.append(
            f"The {AVERAGE_COLUMN} is over these data sets. Its standard error comes from the searches on each; how "
            "methods would do on other data sets it does not tell."
        )
    return lines


def _how_to_read_notes(suite: Suite) -> Iterator[str]:
    unit = f"{suite.test_metric} in percent" if is_percent_metric(suite.test_metric) else suite.test_metric
    lower = ", the lower the better" if lower_is_better(suite.test_metric) else ""
    text = f"A number is {unit}{lower}, of what a rule picks: the mean over searches of the mean over fresh seeds"
    if suite.searches_per_cell == 1:
        yield f"{text}. From one search there is no standard error."
    else:
        yield f"{text}, ± standard error over searches (not over seeds)."
    if len(suite.methods) > 1:
        level = "" if suite.searches_per_cell == 1 else ", and what is not told apart from it (95%, all pairs at once)"
        yield f"Bold is the best of a column{level}."


def _best_method_sentences(table: RuleTable) -> Iterator[str]:
    """Yield which method is best on average, or on the one data set, and from which it is told."""
    several = len(table.data_sets) > 1
    column = None if several else table.data_sets[0]
    means = {method: one.mean for method in table.methods if (one := table.cells[method, column]) is not None}
    if len(means) < 2:
        return
    best = (min if lower_is_better(table.judging_metric) else max)(means, key=lambda method: means[method])
    what = AVERAGE_COLUMN if several else "mean"
    if len(set(means.values())) == 1:
        yield f"All methods have the same {what}."
        return
    leads = table.leads_by_column[column]
    told, level, unknown = (
        [method for method in means if method != best and leads[method] is verdict] for verdict in (False, True, None)
    )
    if not told and not level:
        yield f"{best} has the best {what}; without two searches in common nothing tells methods apart."
        return
    others = f", not from {formatting.join_with_and(level)}" if told and level else ""
    from_whom = formatting.join_with_and(told) if told else "no other"
    yield f"{best} has the best {what}, told apart from {from_whom}{others}."
    if unknown:
        yield f"Too few searches in common with it to judge: {formatting.join_with_and(unknown)}."


def _missing_values_notes(suite: Suite, table: RuleTable) -> Iterator[str]:
    """Yield why searches that are over have no value, and how many rest on fewer seeds than planned."""
    reasons = Counter[str]()
    for counts in table.results.missing_reasons.values():
        reasons += counts
    for reason, count in reasons.items():
        if reason not in (SEARCH_NOT_OVER, SEARCH_FAILED):
            yield f"{pluralise(count, 'search', 'searches')} without a value: {reason}."
    searches = [values for here in table.results.seed_values.values() for values in here.values()]
    if fewer := sum(len(values) < suite.seeds_per_pick for values in searches):
        yield f"{pluralise(fewer, 'search', 'searches')} with a value on fewer than {suite.seeds_per_pick} fresh seeds."


ALL_METHODS_LABEL, AVERAGE_COLUMN = "all methods", "average"


def rule_table_grid(table: RuleTable, searches: int) -> PrintedGrid:
    """Return methods by data sets, with the average over several data sets.

    The best of a column and those not told from it are marked.

    Args:
        searches: planned in each cell; where there are fewer, the entry says so.
    """
    columns: list[DataSetOrAverage] = [*table.data_sets, *([None] if len(table.data_sets) > 1 else [])]
    rows = [[_rule_table_entry(table, method, column, searches) for column in columns] for method in table.methods]
    heads = [(column or AVERAGE_COLUMN,) for column in columns]
    return PrintedGrid(("method",), [(method,) for method in table.methods], ("",), heads, rows)


def cost_grid(spent: Mapping[str, MethodCost]) -> PrintedGrid:
    """Return by method what its searches took, the runs on fresh seeds of all rules included."""
    lines = dict(spent)
    if len(spent) > 1:
        costs = spent.values()
        lines[ALL_METHODS_LABEL] = MethodCost(sum(one.epochs for one in costs), sum(one.seconds for one in costs))
    rows = [
        [PrintedEntry(remark=f"{one.epochs:,}"), PrintedEntry(remark=formatting.format_duration(one.seconds))]
        for one in lines.values()
    ]
    return PrintedGrid(("method",), [(method,) for method in lines], ("",), [("epochs",), ("time of trials",)], rows)


def averages_by_rule_grid(tables: Sequence[RuleTable], searches: int) -> PrintedGrid:
    """Return the averages of every rule beside each other."""
    methods = tables[0].methods
    rows = [
        [replace(_rule_table_entry(table, method, None, searches), rank_mark=None) for table in tables]
        for method in methods
    ]
    columns = [(table.rule,) for table in tables]
    return PrintedGrid(("method",), [(method,) for method in methods], ("",), columns, rows)


def _rule_table_entry(table: RuleTable, method: str, column: DataSetOrAverage, searches: int) -> PrintedEntry:
    found = table.cells[method, column]
    if found is None:
        reasons = table.results.missing_reasons.get((method, column or ""), ())
        return PrintedEntry(remark=", ".join(reasons) or formatting.MISSING_TEXT)
    is_marked = table.leads_by_column[column].get(method) and len(table.methods) > 1
    planned = searches if column else searches * len(table.data_sets)
    remark = f"({found.count} of {planned})" if found.count < planned else ""
    statistics = SeedStatistics(found.mean, found.standard_error, found.count)
    return PrintedEntry(table.judging_metric, statistics, remark, rank_mark="best" if is_marked else None)


SUITE_CSV_COLUMNS = ["rule", "method", "data", "metric", "mean", "standard_error", "low", "high", "n", "leads"]

SAME_SEARCHES_NOTE = (
    "All rules pick from the same searches, and often the same configuration: their averages are not independent, and "
    "no difference between rules is judged here."
)


@dataclass(frozen=True)
class SuiteTables:
    """A suite's results so far.

    Attributes:
        tables: one for each rule, in the file's order.
        cost_by_method: by method.
        n_searches_by_state: how many searches are in which state.
    """

    suite: Suite
    tables: Sequence[RuleTable]
    cost_by_method: Mapping[str, MethodCost]
    n_searches_by_state: Mapping[str, int]


def build_suite_tables(suite: Suite, find_results: FindSearchResults) -> SuiteTables:
    """Build the tables of a suite in any state."""
    by_rule, spent, states = evaluate_searches(suite, find_results)
    tables = [build_rule_table(suite, rule, results) for rule, results in by_rule.items()]
    return SuiteTables(suite, tables, spent, states)


def suite_to_markdown(tables: SuiteTables) -> str:
    """Render every rule's table with its notes, what methods took, and how the tables are read."""
    suite = tables.suite
    parts = [f"# {escape_markdown(suite.name)}", escape_markdown(suite_state_note(suite, tables.n_searches_by_state))]
    for table in tables.tables:
        grid = rule_table_grid(table, suite.searches_per_cell)
        parts += [f"## Picked by {escape_markdown(table.rule)}", _grid_to_markdown(grid)]
        parts += [_notes_to_markdown(notes)] if (notes := rule_table_notes(suite, table)) else []
    if len(tables.tables) > 1:
        averages = averages_by_rule_grid(tables.tables, suite.searches_per_cell)
        parts += ["## Averages by rule", _grid_to_markdown(averages), _notes_to_markdown([SAME_SEARCHES_NOTE])]
    parts += ["## What the methods took", _grid_to_markdown(cost_grid(tables.cost_by_method))]
    return "\n\n".join([*parts, "## For all tables", _notes_to_markdown(notes_on_all_suite_tables(suite))]) + "\n"


def suite_to_latex(tables: SuiteTables) -> str:
    """Render every rule's table with its notes, as a LaTeX `table` each."""
    suite = tables.suite
    common = [suite_state_note(suite, tables.n_searches_by_state), *notes_on_all_suite_tables(suite)]
    grids = [
        replace(rule_table_grid(table, suite.searches_per_cell), notes=[*rule_table_notes(suite, table), *common])
        for table in tables.tables
    ]
    captions = [f"{suite.name}: picked by {table.rule}" for table in tables.tables]
    return "\n\n".join(to_latex(grid, caption=caption) for grid, caption in zip(grids, captions, strict=True)) + "\n"


def suite_to_csv(tables: SuiteTables) -> str:
    """Render a CSV line for each rule, method and data set, and for each average; not rounded, no percentages."""
    lines = []
    for table in tables.tables:
        for row in [*cells_to_dicts(table), *({"data": AVERAGE_COLUMN, **row} for row in averages_to_dicts(table))]:
            ends = row["interval"]
            low, high = ends if isinstance(ends, list) else (None, None)
            lines.append({"rule": table.rule, "metric": table.judging_metric, "low": low, "high": high, **row})
    return frame_to_csv(pd.DataFrame(lines, columns=SUITE_CSV_COLUMNS, dtype=object), index=False)


def suite_to_dict(tables: SuiteTables) -> dict[str, object]:
    """Return the whole of a suite's results as plain values."""
    spent = {method: {"epochs": one.epochs, "seconds": one.seconds} for method, one in tables.cost_by_method.items()}
    return {
        **tables.suite.to_document(),
        "states": dict(tables.n_searches_by_state),
        "spent": spent,
        "tables": [
            {
                "rule": table.rule,
                "judge": table.judging_metric,
                "cells": cells_to_dicts(table),
                "averages": averages_to_dicts(table),
                "notes": rule_table_notes(tables.suite, table),
            }
            for table in tables.tables
        ],
        "notes": [suite_state_note(tables.suite, tables.n_searches_by_state), *notes_on_all_suite_tables(tables.suite)],
    }


def _grid_to_markdown(grid: PrintedGrid) -> str:
    return to_markdown(grid).rstrip()


def _notes_to_markdown(notes: Sequence[str]) -> str:
    return "\n".join(f"- {escape_markdown(note)}" for note in notes)
