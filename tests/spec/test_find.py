"""Which file a name stands for, and which names a study can have."""

import os
from pathlib import Path

import pytest
from helpers import QUICKSTART

from study.errors import UserError
from study.spec import load_study
from study.spec.load import check_study_name
from study.spec.yaml_document import find_study_file, shipped_study_files


def test_a_name_finds_the_shipped_file_and_a_path_a_file(tmp_path: Path) -> None:
    assert find_study_file("quickstart") == shipped_study_files()["quickstart"]
    (tmp_path / "own.yaml").write_text(QUICKSTART)
    assert find_study_file(str(tmp_path / "own.yaml")) == tmp_path / "own.yaml"


@pytest.mark.parametrize("spec", ["no/such.yaml", "such.yaml", "a/b", "x.yml", "", "x" * 5000 + ".yaml", "a\0.yaml"])
def test_a_file_that_is_not_there_is_told(spec: str) -> None:
    with pytest.raises(UserError, match=r"no such file|no study file of that name"):
        find_study_file(spec)


def test_a_folder_is_told_with_the_study_files_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("birds").mkdir()
    for spec in ("birds", "./birds", str(tmp_path / "birds")):
        with pytest.raises(UserError, match=r"birds: a folder, no study file\. None is in it"):
            find_study_file(spec)
    (tmp_path / "birds" / "one.yaml").touch()
    with pytest.raises(UserError, match=r"In it: birds/one\.yaml"):
        find_study_file("birds")


NO_NAMES = ["", ".", "..", "a/b", "../a", "/a", "-a", ".a", "a b", "a\n", "ä", "a" * 101, "a\0b"]
READ_ANOTHER_WAY = ["%2e%2e%2fa", "a%2fb", "a%00", "a\\b", "a\uff0e\uff0e\uff0fb", "a\u2215b", "a\u2025"]


@pytest.mark.parametrize("name", [*NO_NAMES, *READ_ANOTHER_WAY])
def test_a_name_that_could_not_be_a_folders_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="cannot be a study's name"):
        check_study_name(name)
    with pytest.raises(UserError, match="cannot be a study's name: letters"):
        load_study("quickstart", name=name)


def test_a_study_is_told_from_its_exported_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDY_HOME", str(tmp_path))
    (tmp_path / "birds32").mkdir()
    (tmp_path / "birds32" / "best.yaml").touch()
    with pytest.raises(UserError, match=r"birds32: a study, no study file\. Did you mean .*/birds32/best\.yaml"):
        find_study_file("birds32")


def test_a_ledger_is_told_with_the_exported_file_beside_it(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    ledger.write_text('{"event": "created"}\n{"event": "opened"}\n')
    with pytest.raises(UserError, match=r"ledger\.jsonl: a ledger, no study file\.$"):
        find_study_file(str(ledger))
    (tmp_path / "best.yaml").touch()
    with pytest.raises(UserError, match=r"Did you mean .*/best\.yaml"):
        find_study_file(str(ledger))


def test_a_pipe_is_read_though_it_gives_its_text_once(tmp_path: Path) -> None:
    """As `/dev/stdin` and bash's `<(...)`."""
    text = shipped_study_files()["quickstart"].read_text(encoding="utf-8")
    here, there = os.pipe()
    try:
        os.write(there, text.encode())
        os.close(there)
        place = f"/dev/fd/{here}"
        found = load_study(place, ["search.trials=3"])
        again = load_study(place, ["search.trials=3"])
    finally:
        os.close(here)
    assert found.hash == again.hash == load_study("quickstart", ["search.trials=3"]).hash


def test_what_is_neither_file_nor_pipe_is_refused(tmp_path: Path) -> None:
    for place in (str(tmp_path), str(tmp_path / "none.yaml"), f"{tmp_path}/a\0b.yaml", f"/dev/fd/{2**20}"):
        with pytest.raises(UserError):
            load_study(place)
    with pytest.raises(UserError, match="/dev/null: a study file is a mapping"):
        load_study("/dev/null")


def test_a_study_or_file_that_is_nearly_named_is_proposed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "studies" / "baeume").mkdir(parents=True)
    (tmp_path / "studies" / "baeume" / "best.yaml").touch()
    with pytest.raises(
        UserError,
        match=r"bauem: no study file of that name\. Did you mean studies/baeume/best\.yaml, of the study baeume\?",
    ):
        find_study_file("bauem")
    (tmp_path / "baeume.yaml").touch()
    with pytest.raises(
        UserError, match=r"Did you mean studies/baeume/best\.yaml, of the study baeume, or baeume\.yaml\?"
    ):
        find_study_file("bauem")
    (tmp_path / "birds.yaml").touch()
    with pytest.raises(UserError, match=r"bird: no study file of that name\. Did you mean birds\.yaml\?"):
        find_study_file("bird")
    with pytest.raises(UserError, match=r"brids\.yaml: no such file\. Did you mean birds\.yaml\?$"):
        find_study_file("brids.yaml")
    with pytest.raises(UserError, match=r"x\.yaml: no such file$"):
        find_study_file("x.yaml")
