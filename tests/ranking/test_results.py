"""One object between a ledger and its readers: computed once, of one state of the record, and what readers take."""

import ast
from pathlib import Path

import pytest
from helpers import ROOT, Told, quickstart, record

from study.ranking import Results, cached_per_results

SPEC = quickstart()
TRIALS = (Told("baseline", [0.5]), Told("search", [0.7]), Told("search", [0.6]))


def test_each_number_is_computed_once() -> None:
    results = Results(SPEC, record(*TRIALS))
    assert [one.trial.number for one in results.ranked_all] == [1, 2, 0]
    assert results.ranked_all is results.ranked_all
    assert results.baseline_and_best_arms is results.baseline_and_best_arms
    assert results.rule_picks is results.rule_picks


def test_another_state_of_a_record_has_other_results() -> None:
    """As a driver sees it, whose record grows: a new object for each state, none of which changes."""
    told = record(*TRIALS)
    before = Results(SPEC, told)
    assert before.best is not None
    assert before.best.trial.number == 1
    told.trials[3] = record(*TRIALS, Told("search", [0.9])).trials[3]
    after = Results(SPEC, told)
    assert after.best is not None
    assert (after.best.trial.number, before.best.trial.number) == (3, 1)


def test_a_function_of_results_is_computed_once_for_each() -> None:
    asked: list[Results] = []

    @cached_per_results
    def first(results: Results) -> int | None:
        asked.append(results)
        return next((one.trial.number for one in results.ranked_by_search_value), None)

    one, other = (Results(SPEC, record(*TRIALS)) for _ in range(2))
    assert [first(one), first(one), first(other), first(one)] == [1, 1, 1, 1]
    assert asked == [one, other]
    nothing = Results(SPEC, record())
    assert [first(nothing), first(nothing)] == [None, None]
    assert len(asked) == 3


READERS = ("analysis", "api", "commands", "ranking", "trained")
LIVE = {
    ("commands/progress.py", "__init__"),
    ("commands/progress_view.py", "__call__"),
    ("driver/session.py", "__call__"),
    ("driver/driver_process.py", "__call__"),
    ("api/notebook.py", "__call__"),
}
"""What shows a study while it runs: its record grows."""


@pytest.mark.parametrize("room", READERS)
def test_readers_take_results_and_not_what_they_are_made_of(room: str) -> None:
    both = {(where, name) for where, name, given in functions(ROOT / "study" / room) if {"spec", "record"} <= {*given}}
    assert both == {(where, name) for where, name in LIVE if where.startswith(f"{room}/")}


def test_a_file_comes_before_its_record_everywhere() -> None:
    orders = [
        (where, name)
        for where, name, given in functions(ROOT / "study")
        if {"spec", "record"} <= {*given} and given.index("spec") > given.index("record")
    ]
    assert orders == []


def functions(folder: Path) -> list[tuple[str, str, list[str]]]:
    """Each function's file, name and arguments."""
    return [
        (
            str(path.relative_to(ROOT / "study")),
            node.name,
            [one.arg for one in (*node.args.posonlyargs, *node.args.args)],
        )
        for path in sorted(folder.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    ]
