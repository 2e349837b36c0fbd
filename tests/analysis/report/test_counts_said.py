"""Sentences of the lead and of the summary that count or repeat what the record has."""

import pytest
from helpers import Told, quickstart, record

from study.analysis.report.conclusions import caveats
from study.analysis.report.groups import groups
from study.analysis.report.lead import lead
from study.home.record import StudyRecord

ONE = quickstart("search.confirm={top: 0}", "search.trials=4", "train.epochs=2", "search.early_stopping={name: none}")


def parts(told: StudyRecord) -> dict[str, str]:
    return {part.title: part.text for part in lead(ONE, told)}


def test_the_cost_is_counted() -> None:
    told = record(
        Told("baseline", [0.5, 0.5], tested={"test/accuracy": 0.5}),
        Told("search", [0.6, 0.7]),
        Told("search", [0.4], "pruned"),
        Told("confirm", [0.6, 0.6], seed=1, repeats=1),
    )
    cost = parts(told)["Cost"]
    assert cost.startswith("3 configurations (1 pruned) and 1 further trial on other seeds, 7 epochs: ")
    assert cost.endswith(" of trial time, no GPU. The test split was read 1 time.")
    busy = sum((trial.ended or 0) - (trial.started or 0) for trial in told.trials.values())
    assert f"{busy:.0f} s of trial time" in cost


def test_a_study_that_is_not_over_is_to_be_resumed() -> None:
    told = record(Told("search", [0.6, 0.7]))
    told.state = "stopped"
    assert parts(told)["Next"].startswith(f"The study is not over. To do so: study resume {ONE.name}")


@pytest.mark.parametrize(
    ("enough", "ended"),
    [("stop", ": as many trials again would hardly have raised its best value (search.stop)."), (None, ".")],
)
def test_what_ended_a_search_is_said(enough: str | None, ended: str) -> None:
    told = record(Told("baseline", [0.5, 0.5]), Told("search", [0.6, 0.7]))
    told.enough = enough
    said = next(caveat for caveat in caveats(ONE, told) if "were started" in caveat)
    assert said == f"2 of the 4 planned trials of the search were started{ended}"


def test_the_worst_group_is_named_with_its_size() -> None:
    own = {"val/group_0_0_accuracy": 0.9, "val/group_0_1_accuracy": 0.25, "val/worst_group_accuracy": 0.25}
    told = record(Told("search", [0.6], further={**own, "val/worst_group_accuracy_standard_error": 0.1}))
    told.groups = {"val": [[40, 8], [0, 30]], "classes": ["cat", "dog"], "biases": ["dark", "light"]}
    worst, error = groups(ONE, told)
    assert worst.startswith("The worst group on val: trial 0 25.0")
    assert worst.endswith("(cat with light of 8 samples). The split has 3 groups of 8 to 40 samples.")
    assert error.startswith("The split's error is the standard error of the best's value because the split is a sample")
