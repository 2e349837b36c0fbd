"""The numbers of a suite's table for one rule: cells, averages, ranks, what is told apart, where the spread is from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from study.analysis.statistics.estimates import Estimate, Searches, average, estimate, leaders, reach
from study.analysis.statistics.ranks import Ranks, ranks
from study.analysis.statistics.suite_results import Place, Results
from study.analysis.statistics.variance import Components, components
from study.metrics import lower_is_better

AVERAGE = "average"


@dataclass(frozen=True)
class RuleTable:
    """The table of one rule.

    Attributes:
        rule: its name.
        judge: the test metric of the numbers.
        methods, data: labels of rows and columns.
        cells: the mean over searches, by place; None without a value.
        averages: over all data sets, by method; None where one is missing.
        leading: by column, data sets and `AVERAGE`, what `study.analysis.statistics.estimates.leaders` gives.
        ranks: over data sets, None for fewer than two that all methods have.
        reach: how far two averages have to be apart to be told from each other, least and most of all pairs.
        components: pooled over all cells, and by method over its own.
        results: what the numbers are made of.
    """

    rule: str
    judge: str
    methods: tuple[str, ...]
    data: tuple[str, ...]
    cells: Mapping[Place, Estimate | None]
    averages: Mapping[str, Estimate | None]
    leading: Mapping[str, Mapping[str, bool | None]]
    ranks: Ranks | None
    reach: tuple[float, float] | None
    components: Components
    of_methods: Mapping[str, Components]
    results: Results


def rule_table(rule: str, judge: str, methods: tuple[str, ...], data: tuple[str, ...], results: Results) -> RuleTable:
    """The table of one rule from its results."""
    better = -1.0 if lower_is_better(judge) else 1.0
    means = {(method, label): results.means((method, label)) for method in methods for label in data}
    cells = {place: estimate(values.values()) for place, values in means.items()}
    averages = {method: average([cells[method, label] for label in data]) for method in methods}
    rows = {method: [means[method, label] for label in data] for method in methods}
    whole: dict[str, list[Searches]] = {method: list(row) for method, row in rows.items() if averages[method]}
    leading = {
        label: leaders({method: [means[method, label]] for method in methods if means[method, label]}, better)
        for label in data
    }
    leading[AVERAGE] = leaders(whole, better)
    by_method = {method: {label: cell.mean for label in data if (cell := cells[method, label])} for method in methods}
    of_methods = {method: _components(results, [(method, label) for label in data]) for method in methods}
    return RuleTable(
        rule,
        judge,
        methods,
        data,
        cells,
        averages,
        leading,
        ranks(by_method, better),
        reach(whole),
        _components(results, list(means)),
        of_methods,
        results,
    )


def _components(results: Results, places: list[Place]) -> Components:
    return components(
        [[list(by_seed.values()) for by_seed in results.values.get(place, {}).values()] for place in places]
    )


def document(table: RuleTable) -> dict[str, Any]:
    """The same as plain values for JSON; fractions for percent."""
    cells = [
        {
            "method": method,
            "data": label,
            **_plain(table.cells[method, label], table.leading[label].get(method)),
            "searches": [
                {"number": number, "values": list(by_seed.values()), "seeds": list(by_seed)}
                for number, by_seed in sorted(table.results.values.get((method, label), {}).items())
            ],
            "missing": table.results.missing.get((method, label), {}),
        }
        for method in table.methods
        for label in table.data
    ]
    averages = [
        {"method": method, **_plain(table.averages[method], table.leading[AVERAGE].get(method))}
        for method in table.methods
    ]
    return {
        "rule": table.rule,
        "judge": table.judge,
        "cells": cells,
        "averages": averages,
        "ranks": _ranks(table.ranks),
        "told_apart_beyond": list(table.reach) if table.reach else None,
        "variance": {"all": _variance(table.components)}
        | {method: _variance(own) for method, own in table.of_methods.items()},
    }


def _plain(found: Estimate | None, leads: bool | None) -> dict[str, Any]:
    if found is None:
        return {"mean": None, "standard_error": None, "interval": None, "n": 0, "leads": None}
    interval = found.interval()
    return {
        "mean": found.mean,
        "standard_error": found.error,
        "interval": list(interval) if interval else None,
        "n": found.count,
        "leads": leads,
    }


def _ranks(found: Ranks | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "average": dict(found.average),
        "data_sets": found.blocks,
        "friedman_p": found.p,
        "critical_difference": found.critical,
        "apart": [list(pair) for pair in found.apart],
    }


def _variance(found: Components) -> dict[str, Any]:
    return {"search_sd": found.search, "seed_sd": found.seed, "p": found.p}
