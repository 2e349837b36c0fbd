"""The numbers of a suite's table for one rule: cells, averages, what is told apart."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

from scipy.special import stdtrit

from study.metrics import lower_is_better
from study.ranking import Results
from study.ranking.difference import CONFIDENCE_LEVEL, mean_difference
from study.ranking.rule_picks import fresh_seed_trials
from study.spec.suite import Suite, SuiteSearch

MethodAndData = tuple[str, str]
"""A method and a data set, by their labels."""

FindSearchResults = Callable[[SuiteSearch], Results | None]
"""Function that returns the study of a search, None where it has not begun."""

SEARCH_NOT_OVER = "not yet"
SEARCH_FAILED = "failed"
RULE_NEEDS_NOT_MET = "lacks what the rule needs"
NO_TEST_VALUE = "no test value"
BEYOND_BUDGET = "searched beyond the budget"


@dataclass
class RuleResults:
    """The picks of one rule.

    Attributes:
        seed_values: by cell and number of the search the test metric on each fresh seed.
        missing_reasons: by cell why searches have none, and how many.
    """

    seed_values: dict[MethodAndData, dict[int, dict[int, float]]] = field(default_factory=dict)
    missing_reasons: dict[MethodAndData, Counter[str]] = field(default_factory=dict)

    def mean_by_search(self, cell: MethodAndData) -> dict[int, float]:
        """Return the mean over fresh seeds of each search of a cell."""
        return {number: fmean(by_seed.values()) for number, by_seed in self.seed_values.get(cell, {}).items()}


@dataclass(frozen=True)
class MethodCost:
    """The cost of a method's searches: epochs and seconds of trials, those on fresh seeds included."""

    epochs: int
    seconds: float


def evaluate_searches(
    suite: Suite, find_results: FindSearchResults
) -> tuple[dict[str, RuleResults], dict[str, MethodCost], dict[str, int]]:
    """Return the results of every rule, what each method took, and how many searches are in which state."""
    by_rule = {rule: RuleResults() for rule in suite.rules}
    epochs, seconds = dict.fromkeys(suite.methods, 0), dict.fromkeys(suite.methods, 0.0)
    states = Counter[str]()
    for search in suite.searches:
        study = find_results(search)
        states[study.record.state if study else SEARCH_NOT_OVER] += 1
        if study:
            epochs[search.method] += sum(trial.n_epochs for trial in study.record.trials.values())
            seconds[search.method] += study.record.total_trial_seconds
        for rule, values in _values_by_rule(suite, search, study).items():
            cell = search.method, search.data
            if isinstance(values, str):
                by_rule[rule].missing_reasons.setdefault(cell, Counter())[values] += 1
            else:
                by_rule[rule].seed_values.setdefault(cell, {})[search.search_number] = values
    return by_rule, {method: MethodCost(epochs[method], seconds[method]) for method in suite.methods}, states


def _values_by_rule(suite: Suite, search: SuiteSearch, study: Results | None) -> Mapping[str, dict[int, float] | str]:
    """Return by rule the test metric by seed, or why there are none: a search counts once all of it is over."""
    if study is None or study.record.state != "complete":
        failed = study is not None and study.record.state == "failed"
        reason = SEARCH_FAILED if failed else SEARCH_NOT_OVER
        possible = {rule: suite.is_rule_available(rule, (search.method, search.data)) for rule in suite.rules}
        return {rule: reason if possible[rule] else RULE_NEEDS_NOT_MET for rule in suite.rules}
    if study.record.max_configurations(study.spec.n_configurations) != study.spec.n_configurations:
        return dict.fromkeys(suite.rules, BEYOND_BUDGET)
    picked = {pick.rule.name: pick for pick in study.rule_picks}
    found: dict[str, dict[int, float] | str] = {}
    for rule in suite.rules:
        if rule not in picked:
            found[rule] = RULE_NEEDS_NOT_MET
            continue
        tested = {
            trial.seed: trial.test_metrics.get(suite.test_metric)
            for trial in fresh_seed_trials(study.record, picked[rule].trial_number)
        }
        found[rule] = {seed: value for seed, value in tested.items() if value is not None} or NO_TEST_VALUE
    return found


# Means with standard errors from few independent values, their averages, and which of several are told apart.
#
# A value is what one search gave. Searches of one method on one data set are independent; those of two methods with the
# same number share their seeds, so methods are compared by the differences within a search.

ValueBySearch = Mapping[int, float]
"""A value by the number of its search."""


@dataclass(frozen=True)
class MeanEstimate:
    """A mean.

    Attributes:
        mean: of `count` values, or of other estimates.
        standard_error: its standard error, None from a single value.
        degrees_of_freedom: degrees of freedom of the error, 0 without one.
        count: how many values it rests on.
    """

    mean: float
    standard_error: float | None
    degrees_of_freedom: float
    count: int

    def interval(self, confidence: float = CONFIDENCE_LEVEL) -> tuple[float, float] | None:
        """Return the interval by Student's t; None without a standard error."""
        if self.standard_error is None:
            return None
        reach = float(stdtrit(self.degrees_of_freedom, (1 + confidence) / 2)) * self.standard_error
        return self.mean - reach, self.mean + reach


def estimate_mean(values: Iterable[float]) -> MeanEstimate | None:
    """Estimate the mean of independent values; None without any."""
    numbers = list(values)
    if not numbers:
        return None
    error = stdev(numbers) / math.sqrt(len(numbers)) if len(numbers) > 1 else None
    return MeanEstimate(fmean(numbers), error, len(numbers) - 1, len(numbers))


def average_estimates(parts: Sequence[MeanEstimate | None]) -> MeanEstimate | None:
    """Average independent estimates, one per data set: the error counts the searches, not how data sets differ.

    Its degrees of freedom are those of Welch (1947) and Satterthwaite (1946). None if a part is missing.
    """
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    mean, count = fmean(part.mean for part in known), sum(part.count for part in known)
    squares = [part.standard_error**2 for part in known if part.standard_error is not None]
    if len(squares) < len(known):
        return MeanEstimate(mean, None, 0, count)
    total = sum(squares)
    freedoms = [part.degrees_of_freedom for part in known]
    if total == 0.0:
        return MeanEstimate(mean, 0.0, sum(freedoms), count)
    freedom = 1 / sum((square / total) ** 2 / each for square, each in zip(squares, freedoms, strict=True))
    return MeanEstimate(mean, math.sqrt(total) / len(known), freedom, count)


def average_method_difference(one: Sequence[ValueBySearch], other: Sequence[ValueBySearch]) -> MeanEstimate | None:
    """Return how far one method is above another, averaged over data sets, by the searches that both have.

    Where the difference is the same in all of them, which small splits bring about by chance, its error is Welch's.

    Args:
        one, other: of each method the values on each data set, in the same order.
    """
    return average_estimates([_method_difference(left, right) for left, right in zip(one, other, strict=True)])


def _method_difference(one: ValueBySearch, other: ValueBySearch) -> MeanEstimate | None:
    """Return `study.ranking.difference.mean_difference` of the searches that both have, the number as the seed."""
    both = sorted(one.keys() & other.keys())
    gap = mean_difference({number: one[number] for number in both}, {number: other[number] for number in both})
    return MeanEstimate(gap.value, gap.standard_error, gap.degrees_of_freedom or 0, len(both)) if gap else None


def compare_with_best_method(
    values: Mapping[str, Sequence[ValueBySearch]], better: float = 1.0
) -> dict[str, bool | None]:
    """Return which methods are told from the best one.

    All pairs could have been looked at, so each interval is at 1 - 0.05 / pairs (Bonferroni): under equal methods, any
    is told from the best in at most one of twenty tables.

    Args:
        values: of each method on each data set of a column, one, or several for their average.
        better: 1 where larger values are better, -1 where smaller ones are.

    Returns:
        By method: True for the best and for those not told from it, False for those told from it; None where there are
        no two searches to judge by. Methods without a value are left out.
    """
    means = {method: average_estimates([estimate_mean(one.values()) for one in own]) for method, own in values.items()}
    known = {method: mean.mean * better for method, mean in means.items() if mean is not None}
    if not known:
        return {}
    best = max(known, key=lambda method: known[method])
    return {
        method: True if method == best else is_difference_undecided(values[best], values[method], len(known))
        for method in known
    }


def is_difference_undecided(best: Sequence[ValueBySearch], other: Sequence[ValueBySearch], among: int) -> bool | None:
    """Return whether the interval of the difference of two of `among` methods has 0 in it; None without an interval."""
    between, pairs = average_method_difference(best, other), max(1, math.comb(among, 2))
    interval = between.interval(1 - (1 - CONFIDENCE_LEVEL) / pairs) if between is not None else None
    return None if interval is None else interval[0] <= 0 <= interval[1]


DataSetOrAverage = str | None
"""A column of a table: a data set, or None, the average over all of them."""


@dataclass(frozen=True)
class RuleTable:
    """The table of one rule.

    Attributes:
        rule: its name.
        judging_metric: the test metric of the numbers.
        methods, data_sets: labels of rows and columns.
        cells: the mean over searches, by method and column; None without a value, and for the average where one is
            missing.
        leads_by_column: by column what `compare_with_best_method` gives.
        results: what the numbers are made of.
    """

    rule: str
    judging_metric: str
    methods: tuple[str, ...]
    data_sets: tuple[str, ...]
    cells: Mapping[tuple[str, DataSetOrAverage], MeanEstimate | None]
    leads_by_column: Mapping[DataSetOrAverage, Mapping[str, bool | None]]
    results: RuleResults


def build_rule_table(suite: Suite, rule: str, results: RuleResults) -> RuleTable:
    """Build the table of one rule from its results."""
    methods, data, better = suite.methods, suite.data, -1.0 if lower_is_better(suite.test_metric) else 1.0
    means = {(method, label): results.mean_by_search((method, label)) for method in methods for label in data}
    cells: dict[tuple[str, DataSetOrAverage], MeanEstimate | None]
    cells = {cell: estimate_mean(values.values()) for cell, values in means.items()}
    data_sets_by_column: dict[DataSetOrAverage, Sequence[str]] = {**{label: [label] for label in data}, None: data}
    for method in methods:
        cells[method, None] = average_estimates([cells[method, label] for label in data])
    leading = {
        column: compare_with_best_method(
            {method: [means[method, label] for label in labels] for method in methods if cells[method, column]}, better
        )
        for column, labels in data_sets_by_column.items()
    }
    return RuleTable(rule, suite.test_metric, methods, data, cells, leading, results)


def cells_to_dicts(table: RuleTable) -> list[dict[str, object]]:
    """Return a row for each method and data set, plain values for JSON; fractions for percent."""
    return [
        {
            "method": method,
            "data": label,
            **_estimate_to_dict(table, method, label),
            "searches": [
                {"number": number, "values": list(by_seed.values()), "seeds": list(by_seed)}
                for number, by_seed in sorted(table.results.seed_values.get((method, label), {}).items())
            ],
            "missing": table.results.missing_reasons.get((method, label), {}),
        }
        for method in table.methods
        for label in table.data_sets
    ]


def averages_to_dicts(table: RuleTable) -> list[dict[str, object]]:
    """Return a row for each method, over all data sets."""
    return [{"method": method, **_estimate_to_dict(table, method, None)} for method in table.methods]


def _estimate_to_dict(table: RuleTable, method: str, column: DataSetOrAverage) -> dict[str, object]:
    if (found := table.cells[method, column]) is None:
        return {"mean": None, "standard_error": None, "interval": None, "n": 0, "leads": None}
    interval = found.interval()
    return {
        "mean": found.mean,
        "standard_error": found.standard_error,
        "interval": list(interval) if interval else None,
        "n": found.count,
        "leads": table.leads_by_column[column].get(method),
    }
