"""What `study reproduce` runs, and what it refuses to."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest
from published_study import Course

from study.errors import UserError
from study.home import Home
from study.record import StudyRecord
from study.reproduce import Given, reproduce
from study.spec import StudySpec

TABLE = "fairkl-table12"
Begin = Callable[..., Course]


def unseen(spec: StudySpec, record: StudyRecord) -> AbstractContextManager[object]:
    return nullcontext()


def test_an_unknown_table_is_refused_with_those_that_there_are(home: Home) -> None:
    with pytest.raises(UserError, match=r"is no published table\. Did you mean"):
        reproduce(home, "fairkl-table13", Given(), unseen)


@pytest.mark.parametrize("seeds", ["0,2", "1,0", "a", "", "0,", "-1", "0,0"])
def test_seeds_follow_each_other(home: Home, seeds: str) -> None:
    with pytest.raises(UserError, match="numbers that follow each other are needed"):
        reproduce(home, TABLE, Given(profile="cpu", seeds=seeds), unseen)
    assert home.studies() == []


def test_data_that_are_not_there_leave_no_study_behind(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDY_DATA", str(home.path))
    monkeypatch.setenv("HOME", str(home.path))
    with pytest.raises(UserError, match="not found"):
        reproduce(home, TABLE, Given(profile="cpu"), unseen)
    assert home.studies() == []


def test_a_complete_study_runs_nothing(home: Home, begin: Begin) -> None:
    begin(TABLE, profile="cpu").close("complete")
    assert reproduce(home, TABLE, Given(), unseen) is None
    assert reproduce(home, TABLE, Given(profile="cpu", seeds="0,1,2"), unseen) is None


@pytest.mark.parametrize("given", [Given(seeds="0,1"), Given(profile="cpu", assignments=("train.epochs=3",))])
def test_a_study_of_other_settings_is_not_gone_on_with(home: Home, begin: Begin, given: Given) -> None:
    begin(TABLE, profile="cpu").close("complete")
    with pytest.raises(UserError, match="exists already, with other settings"):
        reproduce(home, TABLE, given, unseen)
