"""What `study init` is tried on, and how it is called."""

from pathlib import Path

import pytest
from pictures import picture

from study.commands.init import InitOptions, write_study_file
from study.commands.init_answers import AnswerSource
from study.errors import UserError


def birds_and_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that commands run in: images with a table of them, and a table of people."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))
    for number in range(60):
        picture(tmp_path / "birds" / f"{number}.jpg", number)
    rows = [f"{n}.jpg,{('gull', 'wren')[n % 2]},{('land', 'sea')[n // 2 % 2]}" for n in range(60)]
    (tmp_path / "birds" / "list.csv").write_text("\n".join(["image,kind,place", *rows]))
    people = [f"{n % 7},{n % 5},{n % 2},{('a', 'b')[n // 2 % 2]}" for n in range(80)]
    (tmp_path / "people.csv").write_text("\n".join(["age,hours,paid,group", *people]))
    return tmp_path


def nobody() -> AnswerSource:
    return AnswerSource(None, print)


def refused(flags: InitOptions) -> str:
    with pytest.raises(UserError) as caught:
        write_study_file(flags, None, False, nobody())
    assert not Path("mine.yaml").exists()
    return str(caught.value)


def of(*chosen: str, **given: object) -> InitOptions:
    return InitOptions("mine", methods=chosen or None, **given)  # type: ignore[arg-type]
