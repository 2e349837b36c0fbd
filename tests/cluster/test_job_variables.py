"""Variables of this shell that a job is given."""

import pytest

from study.cluster.driver_job import select_shell_variables
from study.errors import UserError


def test_their_values_come_from_this_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "some value")
    assert select_shell_variables(["SOME_KEY"]) == {"SOME_KEY": "some value"}
    assert select_shell_variables([]) == {}


@pytest.mark.parametrize(
    ("name", "message"),
    [("NOT_SET_HERE", "is not set"), ("A=b", "the name of a variable"), ("RAY_AUTH_TOKEN", "is not given to jobs")],
)
def test_what_cannot_be_given_is_refused(name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    with pytest.raises(UserError, match=message):
        select_shell_variables([name])
