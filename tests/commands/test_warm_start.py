"""A search that begins with what another study found."""

from dataclasses import replace
from pathlib import Path

import pytest
from course import Course, outcome, spec_of
from helpers import Told, quickstart, write_ledger
from optuna.trial import TrialState

from study.commands import session as warm_start
from study.errors import UserError
from study.home.folder import Home
from study.home.ledger import Ledger, read
from study.home.record import StudyRecord
from study.ranking import ranked
from study.spec import StudySpec
from study.spec.declarations import declarations

FROM = "search.from=first"
FIRST = replace(spec_of("search.early_stopping={}"), name="first")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """With a complete study."""
    found = Home(tmp_path)
    Course(found.create(FIRST).ledger_file, FIRST).play()
    return found


def begun(home: Home, spec: StudySpec) -> Path:
    """The ledger of a new study that has learned."""
    path = home.create(spec).ledger_file
    ledger = Ledger(path)
    warm_start.learn(home, spec, ledger, StudyRecord.told(path))
    ledger.close()
    return path


def test_it_knows_every_complete_configuration_at_its_value(home: Home) -> None:
    spec = spec_of(FROM, "search.baseline=null")
    course = Course(begun(home, spec), spec)
    source = StudyRecord.load(home.find("first").ledger_file)
    wanted = {str(sorted(one.trial.params.items())): one.value for one in ranked(source, FIRST)}
    course.ledger.close()
    known = [trial for trial in course.agenda._search.history() if trial.state == TrialState.COMPLETE]
    assert {str(sorted(trial.params.items())): trial.value for trial in known} == wanted
    assert [trial.number for trial in known] == list(range(-len(wanted), 0))


@pytest.mark.slow
def test_it_suggests_otherwise_than_without_and_the_same_each_time(home: Home, tmp_path: Path) -> None:
    """The tenth trial would be the first that TPE models."""
    spec = spec_of(FROM, "search.trials=5")
    path = begun(home, spec)
    whole = Course(path, spec).play()
    alone = home.create(replace(spec_of("search.trials=5"), name="alone")).ledger_file
    assert outcome(Course(alone, spec_of("search.trials=5")).play().record)[3] != outcome(whole.record)[3]
    lines = path.read_bytes().splitlines(keepends=True)
    for cut in range(3, len(lines), 4):
        again = tmp_path / f"cut-{cut}" / "ledger.jsonl"
        again.parent.mkdir()
        again.write_bytes(b"".join(lines[:cut]))
        assert outcome(Course(again, spec).play().record) == outcome(whole.record)


def test_it_learns_once(home: Home) -> None:
    spec = spec_of(FROM)
    path = begun(home, spec)
    home.find("first").ledger_file.write_bytes(b"")
    ledger = Ledger(path)
    warm_start.learn(home, spec, ledger, StudyRecord.told(path))
    ledger.close()
    assert [event["event"] for event in read(path)] == ["created", "learned"]


def other(home: Home, *trials: Told, settings: tuple[str, ...] = ()) -> None:
    spec = replace(quickstart("search.confirm={top: 0}", *settings), name="other")
    write_ledger(home.create(spec).ledger_file, *trials)


LAMBDA = "search.space={method.lambda: {low: 0.5, high: 1.0}}"
PARAMS = {"method.alpha": 0.1, "method.lambda": 0.7, "method.epsilon": 0.25}


def learned(home: Home, *settings: str) -> dict:
    return warm_start.lessons(home, quickstart(*settings, "search.from=other", "search.baseline=null"))


def test_what_the_other_study_held_fixed_enters_at_that_value(tmp_path: Path) -> None:
    home = Home(tmp_path)
    fixed = ("search.space={method.lambda: {low: 0.0, high: 2.0}}", "method.alpha=0.3", "method.epsilon=0.1")
    other(home, Told("search", [0.6], params={"method.lambda": 0.7}), settings=(*fixed, "search.baseline=null"))
    found = learned(home)
    assert found["trials"] == [
        {"params": {"method.alpha": 0.3, "method.lambda": 0.7, "method.epsilon": 0.1}, "values": {"val/accuracy": 0.6}}
    ]
    assert (found["source"], found["left_out"]) == ("other", 0)


def test_what_this_search_could_not_give_is_left_out_and_counted(tmp_path: Path) -> None:
    home = Home(tmp_path)
    trials = [Told("search", [value], params=PARAMS | {"method.lambda": value}) for value in (0.4, 0.6, 0.9, 1.1)]
    pruned = Told("search", [0.9], "pruned", params=PARAMS)
    other(home, *trials, pruned)
    found = learned(home, LAMBDA)
    assert [one["params"] for one in found["trials"]] == [{"method.lambda": 0.6}, {"method.lambda": 0.9}]
    assert found["left_out"] == 2


def test_another_method_teaches_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path)
    other(home, Told("search", [0.6], params=PARAMS))
    with pytest.raises(UserError, match=r"none of 1 complete configurations of other has values for method.alpha"):
        learned(home, "method.name=sup_con", "search.space={method.alpha: {low: 0.01, high: 1.0}}")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (["search.from=nothing"], "nothing: no such study"),
        (["search.from=quickstart"], "cannot learn from itself"),
        (["search.from=other", "search.metric=val/equalized_odds"], "other has no val/equalized_odds"),
    ],
)
def test_what_cannot_be_learned_from(tmp_path: Path, settings: list[str], told: str) -> None:
    home = Home(tmp_path)
    other(home, Told("search", [0.6], params=PARAMS))
    with pytest.raises(UserError, match=told):
        warm_start.lessons(home, quickstart(*settings))


@pytest.mark.parametrize("sampler", [name for name, can in declarations().items() if not can.learns])
def test_a_sampler_that_would_ignore_it_is_refused(sampler: str) -> None:
    with pytest.raises(UserError, match=rf"'other' given, but {sampler} learns nothing from it. Allowed: gp, tpe"):
        quickstart("search.from=other", f"search.sampler={sampler}")
