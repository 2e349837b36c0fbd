"""Nothing that users get from a study's ledger changes by accident: decisions, best.yaml, tables, picks, report, lead.

A change on purpose: `python tests/kept/rewrite.py` lists and keeps the new values; see the guide's page on adding
things.
"""

import re
from itertools import chain
from typing import Any

import pytest
from kept import keeping, reading
from told_studies import by_hand, statements

from study.ranking.json_documents import Statement


def test_every_study_has_kept_values() -> None:
    files = {path.name for path in keeping.VALUES.iterdir()}
    packed = {f"{name}.json.gz" for name in (*reading.STUDIES, "documents")}
    assert files == packed | {"words.json", "losses.json", "metrics.json", "forms.json"}
    assert sum(path.stat().st_size for path in reading.HERE.rglob("*") if path.is_file()) < 1_500_000


@pytest.mark.parametrize("name", reading.STUDIES)
def test_a_study_gives_its_kept_decisions_and_numbers(name: str) -> None:
    relative = keeping.OPTIMISED if name == "own" else keeping.RELATIVE  # own: the one with the sampler gp
    _same(keeping.load(f"{name}.json.gz"), reading.values(name), name, relative)


def test_what_is_said_of_studies_has_its_kept_words() -> None:
    """The only test of words: all others are of kinds of statements and their numbers."""
    _same(keeping.load("words.json"), reading.all_words(), "words")


def test_of_every_kind_of_statement_words_are_kept() -> None:
    made = [*chain.from_iterable(map(statements, reading.told().values())), *by_hand()]
    assert set(map(type, made)) == set(Statement.__subclasses__())


@pytest.mark.parametrize("name", ["several", "final"])
def test_status_prints_its_kept_keys(name: str) -> None:
    """Of two studies, so that a change is seen soon; the slow tests compare all commands, studies and values."""
    kept = keeping.load("documents.json.gz")[name]["status"]
    assert list(reading.documents(name, ["status"])["status"]) == list(kept)


@pytest.mark.slow
@pytest.mark.parametrize("name", reading.STUDIES)
def test_commands_print_their_kept_documents(name: str) -> None:
    """Every key of `--json` in its place, and its value."""
    kept, now = keeping.load("documents.json.gz").get(name, {}), reading.documents(name)
    assert {command: list(values) for command, values in now.items()} == {
        command: list(values) for command, values in kept.items()
    }
    _same(kept, now, name)


@pytest.mark.slow
def test_commands_print_documents_of_the_kept_forms() -> None:
    kept, now = keeping.load("forms.json"), reading.forms()
    _same(kept, now, "forms")
    assert {name: list(form) for name, form in now.items()} == {name: list(form) for name, form in kept.items()}


def test_what_each_sentence_rests_on_is_there() -> None:
    tests = reading.HERE.parent
    named = re.findall(r"`(tests/[^`]+)`", (tests / "benchmarks/results/sentences.md").read_text(encoding="utf-8"))
    assert [path for path in named if not (tests.parent / path).exists()] == []
    assert len(named) > 20


def test_losses_are_the_kept_ones() -> None:
    _same(keeping.load("losses.json"), reading.losses(), "losses")


def test_trials_have_their_kept_metrics() -> None:
    """In every bit on a machine and a version of PyTorch of which they are kept, else within a millionth."""
    kept, now = keeping.load("metrics.json"), reading.metrics()
    if reading.machine() in kept:
        assert now == kept[reading.machine()], keeping.told(list(keeping.changes(kept[reading.machine()], now, 0.0)))
    else:
        _same(next(iter(kept.values())), now, "metrics", keeping.TRAINED)


def test_a_change_is_told_by_its_place() -> None:
    kept = {"trials": {"3": {"val/accuracy": 0.5, "state": "complete", "old": 1}, "4": {"seed": 1}}}
    now = {"trials": {"3": {"val/accuracy": 0.5 + 1e-8, "state": "pruned", "new": True}}}
    assert [str(change) for change in keeping.changes(kept, now, place=("single",))] == [
        "single | trials | 3 | val/accuracy: kept 0.5, now 0.50000001",
        "single | trials | 3 | state: kept 'complete', now 'pruned'",
        "single | trials | 3 | old: kept 1, now 'not there'",
        "single | trials | 3 | new: kept 'not there', now True",
        "single | trials | 4: kept '1 entries', now 'not there'",
    ]
    assert not list(keeping.changes(kept, {"trials": {**kept["trials"]}}))
    assert not list(keeping.changes({"x": 0.1}, {"x": 0.1 * (1 + 1e-12)}))


def _same(kept: Any, now: Any, name: str, relative: float = keeping.RELATIVE) -> None:
    found = list(keeping.changes(kept, now, relative, (name,)))
    if found:
        pytest.fail(keeping.told(found), pytrace=False)
