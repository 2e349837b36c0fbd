"""What needs no search is beside what is searched: which is the result, and what every sentence says of it."""

import re
from typing import Any

import pytest
from helpers import Told, quickstart, record

from study.analysis.report import result_sentences
from study.analysis.report.caveats import caveats
from study.analysis.report.page import to_markdown
from study.analysis.report.sections import report_page
from study.analysis.statistics.next_step import next_steps
from study.commands.progress import StudyProgress
from study.home.events import Referenced
from study.home.record import StudyRecord
from study.ranking import Reference, Results, summary
from study.spec import StudySpec

PARAMS = {"method.alpha": 0.02, "method.lambda": 1.0, "method.epsilon": 0.0}
ODDS = "val/equalized_odds"
CONSTRAINT = f"search.constraints=[{ODDS} <= 0.1]"
TWO = f"search.metric=[val/accuracy, {ODDS}]"
Values = tuple[float, float]
"""Accuracy and equalized odds."""


def spec_of(*others: str) -> StudySpec:
    plain = ("train.epochs=1", "search.early_stopping={name: none}", "search.metric=val/accuracy")
    return quickstart(*plain, "search.references=true", "search.confirm={top: 0, seeds: 2}", *others)


def told(beside: dict[str, Values], searched: list[Values], baseline: Values = (0.5, 0.3)) -> StudyRecord:
    """A complete study with these references and trials, all of standard error 2 points."""

    def trial(stage: str, values: Values, **more: Any) -> Told:
        further = {"val/accuracy_standard_error": 0.02, ODDS: values[1]}
        return Told(stage, [values[0]], further=further, **more)

    own = [{**PARAMS, "method.alpha": 0.02 + 0.01 * place} for place in range(len(searched))]
    trials = [trial("search", values, params=params) for values, params in zip(searched, own, strict=True)]
    found = record(trial("baseline", baseline, params=dict(spec_of().search.baseline or {})), *trials)
    for name, (accuracy, odds) in beside.items():
        metrics = {"val/accuracy": accuracy, "val/accuracy_standard_error": 0.02, ODDS: odds}
        found.apply(Referenced(name, metrics, 1.0, time=90.0))
    found.state = "complete"
    return found


def result(spec: StudySpec, found: StudyRecord) -> str:
    return next(part.text for part in result_sentences.lead(Results(spec, found)) if part.title == "Result")


WINS = {"logistic_regression": (0.8, 0.2), "majority": (0.3, 0.0)}
LOSES = {"logistic_regression": (0.6, 0.2), "majority": (0.3, 0.0)}
TIES = {"logistic_regression": (0.7, 0.2)}

CASES = {
    "wins": (spec_of(), told(WINS, [(0.7, 0.2), (0.6, 0.2)]), "logistic_regression"),
    "loses": (spec_of(), told(LOSES, [(0.7, 0.2), (0.65, 0.2)]), None),
    "ties": (spec_of(), told(TIES, [(0.7, 0.2)]), "logistic_regression"),
    "within the margin": (spec_of("search.margin=1"), told(TIES, [(0.72, 0.2)]), "logistic_regression"),
    "beyond the margin": (spec_of("search.margin=1"), told(TIES, [(0.74, 0.2)]), None),
    "two metrics, dominates": (spec_of(TWO), told(WINS, [(0.7, 0.2), (0.75, 0.25)]), "logistic_regression"),
    "two metrics, one each": (spec_of(TWO), told(WINS, [(0.7, 0.1)]), None),
    "keeps the limit": (spec_of(CONSTRAINT), told({"majority": (0.3, 0.0)}, [(0.7, 0.2)]), "majority"),
    "misses the limit": (spec_of(CONSTRAINT), told(WINS, [(0.7, 0.05)]), None),
    "needs the group": (spec_of(), told({"threshold_optimizer": (0.9, 0.0), **LOSES}, [(0.7, 0.2)]), None),
    "the baseline leads": (spec_of(), told(LOSES, [(0.4, 0.2)], baseline=(0.55, 0.2)), "logistic_regression"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_result_is_what_no_configuration_beats(case: str) -> None:
    spec, found, expected = CASES[case]
    stays = Results(spec, found).unbeaten
    assert (stays and stays.name) == expected
    document = summary.summary(Results(spec, found))
    assert document.references is not None
    assert document.references.result == expected
    text, lines = result(spec, found), summary.lines(document)
    assert text.startswith("The result needs no search") == (expected is not None) or spec.objective.several
    if stays:
        assert f"best: {stays.words}, which needs no search" in lines
        assert next_steps(Results(spec, found))[0].why.endswith(f"{stays.words}.")
    else:
        assert not any(line.startswith("best: ") and "needs no search" in line for line in lines)


UNSCOPED = re.compile(r"trial \d+ (?:is|was) the best|best \(trial|^best: trial|[Bb]est configuration|best so far|★")


@pytest.mark.parametrize("case", [case for case in CASES if Results(CASES[case][0], CASES[case][1]).above])
def test_nothing_calls_a_configuration_the_best_while_a_reference_is_above_it(case: str) -> None:
    spec, found, _ = CASES[case]
    page = to_markdown(report_page(Results(spec, found), {}))
    lines = "\n".join(summary.lines(summary.summary(Results(spec, found))))
    for text in (page, lines, StudyProgress(spec, found).line()):
        assert not UNSCOPED.findall(text), text
    assert "which best.yaml holds, is" not in page


def test_what_is_above_by_its_group_is_named_and_not_chosen() -> None:
    spec, found, _ = CASES["needs the group"]
    assert [one.name for one in Results(spec, found).above] == ["threshold_optimizer"]
    assert "ThresholdOptimizer on logistic regression is better (val/accuracy 90.0%) and not chosen" in result(
        spec, found
    )
    assert "needs the group, randomised" in to_markdown(report_page(Results(spec, found), {}))


def test_the_gain_over_both_is_one_sentence() -> None:
    spec, found, _ = CASES["loses"]
    expected = "Trial 1 gains 20.0 points over the baseline and 10.0 points over the best that needs no search"
    assert f"{expected} (logistic regression)." in result(spec, found)


def test_a_lower_metric_gains_by_being_lower() -> None:
    spec = spec_of(f"search.metric={ODDS}")
    found = told({"logistic_regression": (0.9, 0.2)}, [(0.7, 0.05)])
    assert "gains 0.250 over the baseline and 0.150 over the best that needs no search" in result(spec, found)
    assert Results(spec, told({"logistic_regression": (0.1, 0.01)}, [(0.7, 0.05)])).unbeaten


def test_what_is_worse_than_one_of_them_gains_nothing() -> None:
    """The baseline breaks the limit, and is ahead: what was chosen for keeping it has less of the metric."""
    spec = spec_of(CONSTRAINT)
    text = result(spec, told(LOSES, [(0.7, 0.05)], baseline=(0.75, 0.3)))
    assert "Trial 1 has -5.0 points over the baseline and +40.0 points over the best that needs no search" in text


def test_of_several_metrics_the_values_stand_side_by_side() -> None:
    spec, found, _ = CASES["two metrics, one each"]
    beside = "val/accuracy 70.0% against 80.0%, val/equalized_odds 0.100 against 0.200"
    assert f"Trial 1 beside the best that needs no search (logistic regression): {beside}." in result(spec, found)


def test_a_margin_says_why_it_stays() -> None:
    spec, found, _ = CASES["within the margin"]
    assert "Trial 1 is 2.0 points ahead of it, within the margin of 2.8 points" in result(spec, found)


def test_they_stand_in_the_first_table_with_the_baseline() -> None:
    spec, found, _ = CASES["wins"]
    page = to_markdown(report_page(Results(spec, found), {}))
    table = page[page.index("## Summary") :].split("\n\n")[1]
    names = [row.split(" | ")[0].removeprefix("| ") for row in table.splitlines()[2:]]
    assert names == [
        "the baseline",
        "logistic regression (the result)",
        "the most frequent class for all",
        "the search: trial 1",
    ]


def test_one_without_the_metric_is_shown_and_not_compared() -> None:
    spec, found = spec_of(), told({}, [(0.7, 0.2)])
    found.apply(Referenced("logistic_regression", {"val/balanced_accuracy": 0.9}, 1.0, time=90.0))
    assert Results(spec, found).best_reference is None
    assert [one.name for one in Results(spec, found).references] == ["logistic_regression"]
    assert "Not compared, as val/accuracy is not known of them: " in result(spec, found)


def test_one_that_failed_is_told_and_changes_nothing() -> None:
    spec, found = spec_of(), told({}, [(0.7, 0.2)])
    before = result(spec, found)
    found.apply(Referenced("logistic_regression", reason="no memory", time=90.0))
    assert result(spec, found) == before
    assert "The reference logistic_regression could not be fitted: no memory" in list(caveats(Results(spec, found)))
    lines = summary.lines(summary.summary(Results(spec, found)))
    assert "  logistic_regression could not be fitted: no memory" in lines


def test_of_fresh_seeds_the_means_are_compared() -> None:
    """The search's own value was lucky: on fresh seeds the reference is better."""
    spec = spec_of("search.confirm={top: 1, seeds: 2}")
    error = {"val/accuracy_standard_error": 0.02}
    base = dict(spec.search.baseline or {})
    trials = [Told("baseline", [0.5], params=base, further=error), Told("search", [0.9], params=PARAMS, further=error)]
    trials += [Told("confirm", [0.5], params=base, seed=seed, repeats=0, further=error) for seed in (1, 2)]
    trials += [Told("confirm", [0.7], params=PARAMS, seed=seed, repeats=1, further=error) for seed in (1, 2)]
    found = record(*trials)
    found.state = "complete"
    found.apply(Referenced("logistic_regression", {"val/accuracy": 0.8}, 1.0, time=90.0))
    stays = Results(spec, found).unbeaten
    assert isinstance(stays, Reference)
    assert "10.0 points better than trial 1" in result(spec, found)
