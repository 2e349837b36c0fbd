"""What `resources.stack` says, what it is refused for, and which trials a plan says go together."""

import re
from pathlib import Path

import pytest
from helpers import Told, quickstart, record

from study.commands.plan import plan, text
from study.commands.plan_stacks import lines, stacks
from study.commands.status import _stack_lines as stack_lines
from study.commands.status import stacks as running
from study.errors import UserError
from study.spec.resources import Stack


def test_a_number_or_word_stands_for_the_trials() -> None:
    assert quickstart("resources.stack=8").resources.stack == Stack(trials=8, draws="own")
    assert quickstart("resources.stack=auto").resources.stack.trials == "auto"
    assert quickstart().resources.stack == Stack(trials="none")
    assert quickstart("resources.stack={trials: 4, draws: shared}").resources.stack.draws == "shared"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["resources.stack=1"], "1 given"),
        (["resources.stack=some"], "some"),
        (["resources.stack=8", "resources.gpu=0.5"], "8 given, but resources.gpu is 0.5"),
        (["resources.stack={size: 4}"], "size"),
    ],
)
def test_what_cannot_be_a_stack_is_refused(given: list[str], why: str) -> None:
    with pytest.raises(UserError, match=re.escape(why)):
        quickstart(*given)


def test_a_function_of_ones_own_trains_one_trial_at_a_time(tmp_path: Path) -> None:
    from study.spec.trial_checks import resources

    taken = quickstart("resources.stack=8").resources
    ((at, why),) = resources(taken, "own:train")
    assert at == ("resources", "stack")
    assert "own:train trains the trials" in why


def test_shared_draws_make_another_study_and_the_number_of_trials_does_not() -> None:
    one = quickstart("resources.stack=4")
    assert one.hash == quickstart().hash
    assert one.hash != quickstart("resources.stack={trials: 4, draws: shared}").hash
    placed = quickstart().placed({"resources.stack.trials": 8})
    assert placed.resources.stack.trials == 8
    assert placed.placement == {"resources.stack.trials": 8}


def test_a_plan_says_who_goes_together() -> None:
    assert plan(quickstart())["stacks"] is None
    document = plan(quickstart("resources.stack=8"))
    assert document["stacks"] == {"trials": 8, "draws": "own", "alone": {}, "divides": []}
    assert "stacks: one process trains up to 8 trials together, each with its own order" in text(document)


def test_a_plan_says_what_divides_stacks_and_what_runs_by_itself() -> None:
    methods = "{choices: [eps_sup_info_nce, group_dro]}"
    sizes = "{choices: [64, 128]}"
    rates = "{low: 0.1, high: 1.0}"
    space = f"search.space={{method.name: {methods}, train.batch_size: {sizes}, train.learning_rate: {rates}}}"
    given = [space, "search.baseline=null", "method={name: cross_entropy}", "resources.stack=auto"]
    document = stacks(quickstart(*given))
    assert document is not None
    assert document["divides"] == ["method.name", "train.batch_size"]
    (reason,) = document["alone"]
    assert reason == "method.name 'group_dro' has steps that differ from batch to batch"
    told = "\n".join(lines(document))
    assert "as many trials as show to be fastest" in told
    assert "by itself: method.name = group_dro" in told


def test_a_status_tells_which_trials_run_as_one() -> None:
    found = record(Told("search", [0.5], "running"), Told("search", [0.5], "running"), Told("search", [0.5], "running"))
    for number in (0, 1):
        found.trials[number].node, found.trials[number].stack = "here:1", [0, 1]
    found.apply({"event": "stacked", "time": 99.0, "of": "digits lenet wcl", "trials": 8, "seconds": {"1": 2.0}})
    assert running(found) == {"here:1": [0, 1]}
    assert list(stack_lines({"running": running(found), "found": found.stacked})) == [
        "stack     8 trials at once in a process are fastest: digits lenet wcl",
        "stack     here:1 trains 2 together: trial 0, 1",
    ]
