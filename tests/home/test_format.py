"""The form of a home's files is told when it is made, and homes of another form are not touched."""

import json

import pytest
from helpers import named

from study import __version__
from study.errors import UserError
from study.home.folder import Home


def test_a_home_tells_its_form_when_it_is_made(home: Home) -> None:
    home.create_study(named("one"))
    told = home.path / "format"
    assert json.loads(told.read_text()) == {"format": 2, "study": __version__}
    told.write_text('{"format": 2, "study": "0.0.9"}')
    home.create_study(named("two"))
    assert json.loads(told.read_text())["study"] == "0.0.9", "it was made then"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": 3, "study": "9.8.7"}', r"is in form 3, which study 9\.8\.7 made; .* Use study 9\.8\.7 there\. An"),
        ('{"format": 1e999, "study": "9.8.7"}', r"format: damaged"),
        (f"{'[' * 100_000}", r"format: damaged"),
        ("", r"format: damaged"),
        ('{"format": "new"}', r"format: damaged"),
        ("[1]", r"format: damaged"),
    ],
)
def test_a_home_of_another_form_is_not_touched(home: Home, text: str, message: str) -> None:
    home.create_study(named("one"))
    (home.path / "format").write_text(text)
    before = {path: path.stat().st_mtime_ns for path in home.path.rglob("*")}
    for refuse in (home.list_studies, lambda: home.find_study("one"), lambda: home.create_study(named("two"))):
        with pytest.raises(UserError, match=message):
            refuse()
    assert {path: path.stat().st_mtime_ns for path in home.path.rglob("*")} == before


def test_a_home_that_does_not_tell_its_form_is_refused_once_it_holds_a_study(home: Home) -> None:
    home.path.mkdir()
    (home.path / "notes").mkdir()
    assert home.list_studies() == []
    home.create_study(named("one"))
    (home.path / "format").unlink()
    before = {path: path.stat().st_mtime_ns for path in home.path.rglob("*")}
    message = r"holds studies, and no file format\. What study .* writes there is {\"format\": 2, .* STUDY_HOME="
    for refuse in (home.list_studies, lambda: home.find_study("one"), lambda: home.create_study(named("two"))):
        with pytest.raises(UserError, match=message):
            refuse()
    assert {path: path.stat().st_mtime_ns for path in home.path.rglob("*")} == before
