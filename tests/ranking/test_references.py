"""What needs no search is beside what is searched: which is the result, and what every sentence says of it."""

import re

import pytest
from helpers import Told, record
from told_studies import (
    CONSTRAINT,
    ERROR,
    LOSES,
    ODDS,
    PARAMS,
    REFERENCED,
    only,
    referenced,
    referenced_spec,
    said,
)

from study.analysis.report.caveats import conclusions
from study.analysis.report.page import to_markdown
from study.analysis.report.reference_sentences import (
    BesideReference,
    NotCompared,
    NotFitted,
    ReferenceStays,
    Unchosen,
)
from study.analysis.report.sections import report_page
from study.analysis.statistics.next_step import TakeReference, next_steps
from study.commands.progress import StudyProgress
from study.home.events import Referenced
from study.ranking import Reference, Results, summary

RESULTS = {
    "wins": "logistic_regression",
    "loses": None,
    "ties": "logistic_regression",
    "within the margin": "logistic_regression",
    "beyond the margin": None,
    "two metrics, dominates": "logistic_regression",
    "two metrics, one each": None,
    "keeps the limit": "majority",
    "misses the limit": None,
    "needs the group": None,
    "the baseline leads": "logistic_regression",
}
"""Which reference is the result of the study of that name."""


@pytest.mark.parametrize("case", RESULTS)
def test_the_result_is_what_no_configuration_beats(case: str) -> None:
    results, expected = Results(*REFERENCED[case]), RESULTS[case]
    stays = results.unbeaten
    assert (stays and stays.name) == expected
    document = summary.summary(results)
    assert document.references is not None
    assert document.references.result == expected
    lines = summary.lines(document)
    assert [one.reference for one in said(ReferenceStays, results)] == ([stays] if stays else [])
    if stays:
        assert f"best: {stays.words}, which needs no search" in lines
        assert next_steps(results)[0].why == TakeReference(stays)
    else:
        assert not any(line.startswith("best: ") and "needs no search" in line for line in lines)


UNSCOPED = re.compile(r"trial \d+ (?:is|was) the best|best \(trial|^best: trial|[Bb]est configuration|best so far|★")


@pytest.mark.parametrize("case", [case for case in RESULTS if Results(*REFERENCED[case]).above])
def test_nothing_calls_a_configuration_the_best_while_a_reference_is_above_it(case: str) -> None:
    spec, found = REFERENCED[case]
    page = to_markdown(report_page(Results(spec, found), {}))
    lines = "\n".join(summary.lines(summary.summary(Results(spec, found))))
    for text in (page, lines, StudyProgress(spec, found).line()):
        assert not UNSCOPED.findall(text), text
    assert "which best.yaml holds, is" not in page


def test_what_is_above_by_its_group_is_named_and_not_chosen() -> None:
    results = Results(*REFERENCED["needs the group"])
    assert [one.name for one in results.above] == ["threshold_optimizer"]
    assert [one.reference for one in said(Unchosen, results)] == results.above
    assert "needs the group, randomised" in to_markdown(report_page(results, {}))


def test_the_gain_over_both_is_one_statement() -> None:
    beside = only(BesideReference, Results(*REFERENCED["loses"]))
    assert (beside.side.number, beside.reference.name) == (1, "logistic_regression")
    assert beside.gains == pytest.approx([0.2, 0.1])


def test_what_is_better_on_test_than_the_result_is_named_there() -> None:
    on_val, on_test = said(BesideReference, Results(*REFERENCED["behind on test"]))
    assert on_val.ahead == ()
    assert on_test.names == ["test/accuracy"]
    better = ["logistic_regression_class_balanced", "hist_gradient_boosting_class_balanced"]
    assert [one.name for one in on_test.ahead] == better


def test_a_lower_metric_gains_by_being_lower() -> None:
    spec = referenced_spec(f"search.metric={ODDS}")
    found = referenced({"logistic_regression": (0.9, 0.2)}, [(0.7, 0.05)])
    assert only(BesideReference, Results(spec, found)).gains == pytest.approx([0.25, 0.15])
    assert Results(spec, referenced({"logistic_regression": (0.1, 0.01)}, [(0.7, 0.05)])).unbeaten


def test_what_is_worse_than_one_of_them_gains_nothing() -> None:
    """The baseline breaks the limit, and is ahead: what was chosen for keeping it has less of the metric."""
    found = referenced(LOSES, [(0.7, 0.05)], baseline=(0.75, 0.3))
    assert only(BesideReference, Results(referenced_spec(CONSTRAINT), found)).gains == pytest.approx([-0.05, 0.4])


def test_of_several_metrics_the_values_stand_side_by_side() -> None:
    beside = only(BesideReference, Results(*REFERENCED["two metrics, one each"]))
    values = [(beside.side.spread(name).mean, beside.reference.metrics[name]) for name in beside.names]
    assert values == [(0.7, 0.8), (0.1, 0.2)]


def test_a_margin_says_why_it_stays() -> None:
    stays = only(ReferenceStays, Results(*REFERENCED["within the margin"]))
    assert (stays.lead.candidate.trial.number, stays.lead.gain) == (1, pytest.approx(0.02))
    assert stays.margin * stays.lead.error == pytest.approx(0.02 * 2**0.5)


def test_they_stand_in_the_first_table_with_the_baseline() -> None:
    page = to_markdown(report_page(Results(*REFERENCED["wins"]), {}))
    table = page[page.index("## Summary") :].split("\n\n")[1]
    names = [row.split(" | ")[0].removeprefix("| ") for row in table.splitlines()[2:]]
    assert names == [
        "the baseline",
        "logistic regression (the result)",
        "the most frequent class for all",
        "the search: trial 1",
    ]


def test_one_without_the_metric_is_shown_and_not_compared() -> None:
    spec, found = referenced_spec(), referenced({}, [(0.7, 0.2)])
    found.apply(Referenced("logistic_regression", {"val/balanced_accuracy": 0.9}, 1.0, time=90.0))
    assert Results(spec, found).best_reference is None
    assert [one.name for one in Results(spec, found).references] == ["logistic_regression"]
    lacking = only(NotCompared, Results(spec, found))
    assert ([one.name for one in lacking.references], list(lacking.metrics)) == (
        ["logistic_regression"],
        ["val/accuracy"],
    )


def test_one_that_failed_is_told_and_changes_nothing() -> None:
    spec, found = referenced_spec(), referenced({}, [(0.7, 0.2)])
    before = conclusions(Results(spec, found))
    found.apply(Referenced("logistic_regression", reason="no memory", time=90.0))
    assert conclusions(Results(spec, found)) == before
    assert only(NotFitted, Results(spec, found)) == NotFitted("logistic_regression", "no memory")
    lines = summary.lines(summary.summary(Results(spec, found)))
    assert "  logistic_regression could not be fitted: no memory" in lines


def test_of_fresh_seeds_the_means_are_compared() -> None:
    """The search's own value was lucky: on fresh seeds the reference is better."""
    spec = referenced_spec("search.confirm={top: 1, seeds: 2}")
    error = {ERROR: 0.02}
    base = dict(spec.search.baseline or {})
    trials = [Told("baseline", [0.5], params=base, further=error), Told("search", [0.9], params=PARAMS, further=error)]
    trials += [Told("confirm", [0.5], params=base, seed=seed, repeats=0, further=error) for seed in (1, 2)]
    trials += [Told("confirm", [0.7], params=PARAMS, seed=seed, repeats=1, further=error) for seed in (1, 2)]
    found = record(*trials)
    found.state = "complete"
    found.apply(Referenced("logistic_regression", {"val/accuracy": 0.8}, 1.0, time=90.0))
    stays = Results(spec, found).unbeaten
    assert isinstance(stays, Reference)
    side = only(ReferenceStays, Results(spec, found)).side
    assert (side.number, side.spread("val/accuracy").mean) == (1, pytest.approx(0.7))
