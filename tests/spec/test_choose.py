"""`search.choose`: what is refused, and what a file is resolved to."""

import pytest
from helpers import quickstart, refused

from study.commands.plan import plan, text

TWO = "search.metric=[val/accuracy, val/equalized_odds]"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([TWO, "search.choose=best"], "search.choose.name: 'best' given. Allowed: 'first', 'knee' or 'limit'"),
        ([TWO, "search.choose=nee"], "Did you mean 'knee'?"),
        ([TWO, "search.choose=[knee]"], "search.choose"),
        ([TWO, "search.choose={name: knee, at: 1}"], "search.choose.at: unknown key"),
        ([TWO, "search.choose=limit"], "search.choose.limits: are missing. Allowed: METRIC <= NUMBER"),
        ([TWO, "search.choose={name: limit, limits: [val/equalized_odds < 0.1]}"], "allowed is METRIC <= NUMBER"),
        (
            [TWO, "search.choose={name: limit, limits: {val/equalized_odds: 0.1}}"],
            "search.choose.limits: ",
        ),
        (
            [TWO, "search.choose={name: limit, limits: [val/worst_group_accuracy >= 0.1]}"],
            "'val/worst_group_accuracy' given, allowed is a metric of the study: val/accuracy, val/equalized_odds",
        ),
        (
            [TWO, "search.choose={name: limit, limits: [val/equalized_odds >= 0.1]}"],
            "of val/equalized_odds a lower value is better. Allowed: <= NUMBER",
        ),
        ([TWO, "search.choose={name: knee, limits: [val/equalized_odds <= 0.1]}"], "given with knee"),
        (["search.choose=knee"], "search.choose: 'knee' given for one metric"),
        ([TWO, "search.confirm.front=-1"], "search.confirm.front: -1 given"),
    ],
)
def test_a_choice_that_cannot_be_is_refused_at_its_key(given: list[str], words: str) -> None:
    assert words in refused(*given)


def test_a_file_with_several_metrics_says_how_much_of_the_front_runs_again() -> None:
    spec = quickstart(TWO, "search.choose=knee", "search.confirm={top: 2, seeds: 3}")
    document = spec.to_document()["search"]
    assert (document["choose"], document["confirm"]["front"]) == ({"name": "knee", "limits": []}, 10)
    told = plan(spec)
    assert told.budget.trials["confirm"] == (10 + 1) * 3
    assert "then at most 33 to confirm (the whole front up to 10 configurations)" in text(told)
    assert "search.choose: knee" in text(told)
    assert quickstart(TWO, "search.confirm.front=4").search.confirm.front == 4
