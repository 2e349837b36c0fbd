"""The form of a home's files is told when it is made, and homes of another form are not touched."""

import json
import re

import pytest
from helpers import named

from study import __version__
from study.errors import UserError
from study.home.folder import Home


def test_a_home_tells_its_form_when_it_is_made(home: Home) -> None:
    home.create(named("one"))
    told = home.path / "format"
    assert json.loads(told.read_text()) == {"format": 2, "study": __version__}
    told.write_text('{"format": 2, "study": "0.0.9"}')
    home.create(named("two"))
    assert json.loads(told.read_text())["study"] == "0.0.9", "it was made then"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"format": 3, "study": "9.8.7"}',
            r"is in form 3, which study 9\.8\.7 made; .*Install study 9\.8\.7 or later",
        ),
        (
            '{"format": 1, "study": "0.0.9"}',
            r"is in form 1, which a version from before the first release made \(study 0\.0\.9\); .*reads form 2\. "
            r"Read that home with the version that made it, and take another one for new studies: STUDY_HOME=",
        ),
        ('{"format": 1e999, "study": "9.8.7"}', r"format: damaged"),
        (f"{'[' * 100_000}", r"format: damaged"),
        ("", r"format: damaged"),
        ('{"format": "new"}', r"format: damaged"),
        ("[1]", r"format: damaged"),
    ],
)
def test_a_home_of_another_form_is_not_touched(home: Home, text: str, message: str) -> None:
    home.create(named("one"))
    (home.path / "format").write_text(text)
    before = {path: path.stat().st_mtime_ns for path in home.path.rglob("*")}
    for refuse in (home.studies, lambda: home.find("one"), lambda: home.create(named("two"))):
        with pytest.raises(UserError, match=message):
            refuse()
    assert {path: path.stat().st_mtime_ns for path in home.path.rglob("*")} == before


def test_a_home_that_does_not_tell_its_form_is_refused_once_it_holds_a_study(home: Home) -> None:
    """Versions from before the first release made such homes. One that somebody made by hand is none of them."""
    home.path.mkdir()
    (home.path / "notes").mkdir()
    assert home.studies() == []
    home.create(named("one"))
    (home.path / "format").unlink()
    before = {path: path.stat().st_mtime_ns for path in home.path.rglob("*")}
    message = (
        r"holds studies, and no file format .* before the first release .* take another home, STUDY_HOME=.*"
        rf'the file was lost: what study {re.escape(__version__)} writes there is {{"format": 2, "study": "'
    )
    for refuse in (home.studies, lambda: home.find("one"), lambda: home.create(named("two"))):
        with pytest.raises(UserError, match=message):
            refuse()
    assert {path: path.stat().st_mtime_ns for path in home.path.rglob("*")} == before
