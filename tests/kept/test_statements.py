"""A report says of each pair and metric one thing: what any sentence or table has of it agrees with every other."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from helpers import Told, quickstart, record
from kept import reading

from study.analysis.report.page import Table, to_markdown
from study.analysis.report.sections import report_page
from study.analysis.statistics import formatting
from study.ranking import Results


class Statement(NamedTuple):
    """Who against whom by which metric: the interval as it is printed, and whether the first is said to be apart."""

    who: str
    against: str
    metric: str
    interval: str | None
    is_apart: bool | None


WHO = r"[Tt]rial \d+"
GAIN = re.compile(
    r"(?P<metric>\w+/\w+) is [^;]*? against [^;]*? of the baseline[^:]*: \S+(?: points)?"
    r"(?: on the seeds that both have)?(?: \(95% interval (?P<interval>[^)]*)\)"
    r"| on every seed alike)?, (?P<verdict>(?:better|worse) beyond|within|which one seed|which two seeds)"
)


def statements(results: Results) -> Iterator[Statement]:
    """Every statement of a page on how two configurations compare."""
    spec, page = results.spec, report_page(results, {})
    parts = dict(page.lead)
    best = "best"
    for found in GAIN.finditer(parts.get("Result", "")):
        apart = {"which one seed": None, "which two seeds": False, "within": False}.get(found["verdict"], True)
        yield Statement(best, "baseline", found["metric"], found["interval"], apart)
    sure = parts.get("How sure", "")
    if runner_up := re.search(r"runner-up, (trial \d+), is \S+(?: points)? \((?:95% interval )?([^)]*)\)", sure):
        named = re.search(r"cannot be told from trials? ([\d, and]+)\.", sure)
        undecided = re.findall(r"\d+", named[1]) if named else []
        interval = None if runner_up[2] == formatting.VAGUE else runner_up[2]
        yield Statement(best, runner_up[1], spec.metric, interval, runner_up[1].split()[1] not in undecided)
    if open_pair := re.search(rf"({WHO}) and (the baseline|trial \d+) are not told apart", parts.get("Next", "")):
        yield Statement(best, open_pair[2].removeprefix("the "), spec.metric, None, False)
    for section in page.sections:
        for block in section.blocks:
            if isinstance(block, Table) and {"difference", "95% interval"} <= set(block.header):
                for row in block.frame.to_dict("records"):
                    without = ("-", formatting.ALIKE, formatting.VAGUE)
                    interval = None if row["95% interval"] in without else row["95% interval"]
                    yield Statement(best, "baseline", row["metric"], interval, None)


def disagreements(results: Results) -> list[set[Statement]]:
    """Sets of statements on one pair and metric of which two differ."""
    by_pair = defaultdict(set)
    for each in statements(results):
        by_pair[each[:3]].add(each)
    found = []
    for said in by_pair.values():
        intervals = {each.interval for each in said} - {None}
        verdicts = {each.is_apart for each in said} | {_leaves_out_zero(interval) for interval in intervals}
        if len(intervals) > 1 or len(verdicts - {None}) > 1:
            found.append(said)
    return found


def _leaves_out_zero(interval: str) -> bool:
    low, high = map(float, interval.split(" to "))
    return low > 0 or high < 0


def confirmed(*values: tuple[float, ...]) -> list[Told]:
    return [
        Told("confirm", [value], seed=seed, repeats=of, tested={"test/accuracy": value})
        for of, each in enumerate(values)
        for seed, value in enumerate(each, 1)
    ]


ONE = quickstart("train.epochs=1", "search.early_stopping={name: none}", "search.confirm={top: 2, seeds: 3}")
ALONE = quickstart("train.epochs=1", "search.early_stopping={name: none}", "search.confirm={top: 0}")
SAME = (0.5, 0.5, 0.5)
TWO = [Told("search", [0.7]), Told("search", [0.6])]
KINDS = {
    "the baseline wins": (
        ONE,
        [Told("baseline", [0.8]), *TWO, *confirmed((0.83, 0.84, 0.82), (0.7, 0.72, 0.75), (0.59, 0.62, 0.64))],
    ),
    "all equal": (
        ONE,
        [Told("baseline", [0.5]), *(Told("search", [0.5]) for _ in range(4)), *confirmed(SAME, SAME, SAME)],
    ),
    "pruned but one": (
        ALONE,
        [Told("baseline", [0.5]), Told("search", [0.7]), *(Told("search", [0.4], "pruned") for _ in range(4))],
    ),
    "one configuration": (ALONE, [Told("search", [0.7])]),
    "equal but for rounding": (
        ONE,
        [
            Told("baseline", [0.5]),
            *TWO,
            *confirmed(SAME, (0.5 + 1 / 30, 0.5 + 1 / 30 + 2e-16, 0.53333336), (0.5 + 1e-16, 0.5, 0.5)),
        ],
    ),
    "differences equal but for rounding": (
        ONE,
        [Told("baseline", [0.5]), *TWO, *confirmed((0.1, 0.2, 0.3), (0.4, 0.5, 0.6), (0.35, 0.45, 0.55))],
    ),
    "no number on a seed": (
        ONE,
        [
            Told("baseline", [0.5]),
            *TWO,
            *confirmed((0.5, 0.52, 0.51)),
            *(
                Told("confirm", [None if (of, seed) in ((1, 2), (1, 3)) else 0.6 + seed / 50], seed=seed, repeats=of)
                for of in (1, 2)
                for seed in (1, 2, 3)
            ),
        ],
    ),
    "rules alone": (
        ALONE,
        [Told("baseline", [0.5]), *TWO, *(Told("rule", [0.7], seed=seed, repeats=1) for seed in (1, 2, 3))],
    ),
}


def study_of(name: str) -> Results:
    if name not in KINDS:
        return reading.loaded(name)
    spec, trials = KINDS[name]
    told = record(*trials)
    told.state = "complete"
    return Results(spec, told)


@pytest.mark.parametrize("name", [*reading.STUDIES, *KINDS])
def test_no_two_statements_of_a_page_differ(name: str) -> None:
    assert disagreements(study_of(name)) == []


@pytest.mark.parametrize("name", [*reading.STUDIES, *KINDS])
def test_no_interval_of_a_page_is_without_width_and_no_number_is_missing(name: str) -> None:
    page = to_markdown(report_page(study_of(name), {}))
    assert not re.findall(r"([+-]?[\d.]+%?) to \1(?![\d.])", page)
    assert not re.findall(r"\bnan\b(?! in epoch)|\binf\b|[\d]e-1\d", page)


def test_what_is_read_from_a_page() -> None:
    said = list(statements(reading.loaded("single")))
    assert Statement("best", "baseline", "test/accuracy", "-10.2 to +28.7", False) in said
    assert Statement("best", "baseline", "test/accuracy", "-10.2 to +28.7", None) in said
    assert Statement("best", "trial 5", "val/accuracy", "-3.0 to +33.2", False) in said


def test_a_baseline_that_wins_is_named_as_the_best() -> None:
    spec, trials = KINDS["the baseline wins"]
    page = report_page(Results(spec, record(*trials)), {})
    assert "best.yaml holds, is the baseline" in dict(page.lead)["Result"]
    table = next(block for block in page.sections[0].blocks if isinstance(block, Table))
    assert "best of the search (trial 1)" in table.header
