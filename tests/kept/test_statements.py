"""A report says of each pair and metric one thing: what any sentence or table has of it agrees with every other."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from kept import reading
from told_studies import PAIRS, only, over, said, statements

from study.analysis.report.certainty_sentences import DifferenceToRunnerUp
from study.analysis.report.conclusions import GainOverBaseline, MetricDifferenceToBaseline
from study.analysis.report.page_formats import TableBlock, page_to_markdown
from study.analysis.report.report_page import build_report_page
from study.analysis.statistics import formatting
from study.analysis.statistics.next_step import UndecidedBySeeds
from study.ranking import Results
from study.ranking.difference import Difference


class Said(NamedTuple):
    """Who against whom by which metric: the interval as it is printed, and whether the first is said to be apart."""

    against: int
    metric: str
    interval: str | None
    is_apart: bool | None


def compared(results: Results) -> Iterator[Said]:
    """Whatever a page says of how the best compares with others."""
    for gain in (one for one in statements(results) if isinstance(one, GainOverBaseline | MetricDifferenceToBaseline)):
        metric = gain.metric if isinstance(gain, MetricDifferenceToBaseline) else results.spec.metric
        yield _said(gain.baseline.trial_number, metric, gain.difference)
    for one in said(DifferenceToRunnerUp, results):
        number = one.comparison.runner_up.trial_number
        is_apart = number not in one.comparison.undecided_trials
        yield _said(number, results.spec.metric, one.comparison.difference_to_runner_up)._replace(is_apart=is_apart)
    for one in said(UndecidedBySeeds, results):
        yield Said(one.other.trial_number, results.spec.metric, None, False)
    for section in build_report_page(results, {}).sections:
        for block in section.blocks:
            if isinstance(block, TableBlock) and {"difference", "95% interval"} <= set(block.header):
                for row in block.frame.to_dict("records"):
                    yield Said(0, row["metric"], _printed(row["95% interval"]), None)


def _said(against: int, metric: str, difference: Difference) -> Said:
    return Said(
        against, metric, _printed(formatting.format_difference_interval(metric, difference)), difference.is_clear
    )


def _printed(interval: str) -> str | None:
    is_in_words = interval in (formatting.MISSING_TEXT, formatting.TOO_FEW_SEEDS_TEXT) or interval.endswith("alike")
    return None if is_in_words else interval


def disagreements(results: Results) -> list[set[Said]]:
    """Sets of statements on one pair and metric of which two differ."""
    by_pair = defaultdict(set)
    for each in compared(results):
        by_pair[each[:2]].add(each)
    found = []
    for told in by_pair.values():
        intervals = {each.interval for each in told} - {None}
        verdicts = {each.is_apart for each in told} | {_leaves_out_zero(interval) for interval in intervals}
        if len(intervals) > 1 or len(verdicts - {None}) > 1:
            found.append(told)
    return found


def _leaves_out_zero(interval: str) -> bool:
    low, high = map(float, interval.split(" to "))
    return low > 0 or high < 0


def study_of(name: str) -> Results:
    return reading.loaded(name) if name in reading.STUDIES else Results(PAIRS[name][0], over(*PAIRS[name][1]))


@pytest.mark.parametrize("name", [*reading.STUDIES, *PAIRS])
def test_no_two_statements_of_a_page_differ(name: str) -> None:
    assert disagreements(study_of(name)) == []


@pytest.mark.parametrize("name", [*reading.STUDIES, *PAIRS])
def test_no_interval_of_a_page_is_without_width_and_no_number_is_missing(name: str) -> None:
    page = page_to_markdown(build_report_page(study_of(name), {}))
    assert not re.findall(r"([+-]?[\d.]+%?) to \1(?![\d.])", page)
    assert not re.findall(r"\bnan\b(?! in epoch)|\binf\b|[\d]e-1\d", page)


def test_what_is_compared_on_a_page() -> None:
    told = list(compared(reading.loaded("single")))
    assert told.count(Said(0, "test/accuracy", "-10.2 to +28.7", False)) == 1
    assert told.count(Said(0, "test/accuracy", "-10.2 to +28.7", None)) == 2, (
        "in the first table and in that of every metric"
    )
    assert Said(5, "val/accuracy", "-3.0 to +33.2", False) in told


def test_a_baseline_that_wins_is_named_as_the_best() -> None:
    results = study_of("the baseline wins")
    gain = only(GainOverBaseline, results)
    assert (gain.verdict, gain.won) == ("negative", gain.baseline.trial_number)
    table = next(block for block in build_report_page(results, {}).sections[0].blocks if isinstance(block, TableBlock))
    assert "best of the search (trial 1)" in table.header
