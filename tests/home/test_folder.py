"""The home folder: studies are made whole or not at all."""

import os
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from unicodedata import normalize
from urllib.parse import unquote

import pytest
from escapes import ESCAPES
from helpers import Told, named, quickstart, write_ledger
from hypothesis import example, given
from hypothesis import strategies as st

from study.commands.export_configurations import exported_spec
from study.commands.final_training import create_or_extend_training, final_training_spec
from study.errors import StudyNotFoundError, UserError
from study.home.folder import Home
from study.home.ledger import read_entries
from study.home.record import StudyRecord
from study.ranking import Results
from study.ranking.candidate_selection import CandidateSelection
from study.spec.load import STUDY_NAME_PATTERN


def everything(path: Path) -> list[str]:
    return sorted(str(one.relative_to(path)) for one in path.rglob("*"))


def test_a_new_study_has_its_file_and_its_ledger(home: Home) -> None:
    folder = home.create_study(named("one"))
    assert everything(home.path) == ["format", "one", "one/ledger.jsonl", "one/study.yaml"]
    assert folder.name == "one"
    assert folder.load_spec() == named("one")
    assert [event["event"] for event in read_entries(folder.ledger_file)] == ["created"]


def test_a_study_whose_folder_was_renamed_has_its_new_name(home: Home) -> None:
    """What it says to type is about that one, not about another study of the former name."""
    folder = home.create_study(named("one"))
    folder.path.rename(home.path / "two")
    renamed = home.find_study("two")
    assert (renamed.load_spec().name, renamed.load_checked_spec().name) == ("two", "two")
    assert renamed.load_spec().hash == named("one").hash


def test_where_the_home_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "mine"))
    assert Home.locate().path == tmp_path / "mine"
    for unset in (lambda: monkeypatch.setenv("STUDY_HOME", ""), lambda: monkeypatch.delenv("STUDY_HOME")):
        unset()
        monkeypatch.chdir(tmp_path)
        assert Home.locate().path == tmp_path / "studies"
    assert everything(tmp_path) == [], "locating makes nothing"


def test_where_mlflow_is(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert home.tracking_uri == f"sqlite:///{home.path}/mlflow.db"
    assert home.uses_own_mlflow
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://elsewhere")
    assert home.tracking_uri == "http://elsewhere"
    assert not home.uses_own_mlflow


def test_a_name_that_is_taken_says_how_to_go_on(home: Home) -> None:
    home.create_study(named("one"))
    before = everything(home.path)
    for refuse in (lambda: home.create_study(named("one")), lambda: home.check_name_is_free("one")):
        with pytest.raises(UserError, match=r"one: exists already in .*study resume one.*--name one-2"):
            refuse()
    home.create_study(named("one-2"))
    with pytest.raises(UserError, match="--name one-3"):
        home.check_name_is_free("one")
    assert set(before) < set(everything(home.path))


@pytest.mark.parametrize("typed", ["one.yaml", "gone/one.yml", "named.yaml", "studies/one/best.yaml"])
def test_a_study_file_in_place_of_a_name_is_answered_with_the_study(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    """By its own name or that in it; the file may be gone since."""
    monkeypatch.chdir(tmp_path)
    home.create_study(named("one"))
    Path("named.yaml").write_text("name: one\n")
    told = f"{typed}: a study file; what is wanted is the name of a study: one"
    with pytest.raises(StudyNotFoundError, match=f"^{re.escape(told)}$"):
        home.find_study(typed)


def test_a_study_file_that_no_study_began_with_can_be_run(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.yaml").write_text("name: other\n")
    with pytest.raises(StudyNotFoundError, match=r"own\.yaml: a study file; .* began with it: study run own\.yaml$"):
        home.find_study("own.yaml")
    with pytest.raises(StudyNotFoundError, match=r"none\.yaml: no such study"):
        home.find_study("none.yaml")
    home.create_study(named("dotted.yaml"))
    assert home.find_study("dotted.yaml").name == "dotted.yaml"


def test_an_unknown_study_says_which_there_are(home: Home) -> None:
    with pytest.raises(UserError, match=r"one: no such study in .*None is there yet"):
        home.find_study("one")
    home.create_study(named("other"))
    with pytest.raises(UserError, match=r"othr: no such study in .*Did you mean 'other'\? Studies there: other"):
        home.find_study("othr")
    assert home.find_study("other").path == home.path / "other"


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "../other", "/etc"])
def test_a_name_that_leads_out_of_the_home_is_refused(home: Home, name: str) -> None:
    home.create_study(named("other"))
    with pytest.raises(UserError, match="cannot be a study's name"):
        home.find_study(name)


def make_all_that_is_named_after(home: Home, name: str) -> None:
    """A study with a trial, a file of each kind, what it exports, and its final training."""
    spec = named(name)
    folder = home.create_study(spec)
    write_ledger(folder.ledger_file, Told("search", [0.5], params={"method.alpha": 0.5}))
    numbered = [folder.model_file(0), folder.model_description_file(0), folder.checkpoint_file(0)]
    for path in [
        *numbered,
        folder.error_file(0),
        folder.report_folder / "page",
        folder.best_file,
        folder.model_card_file,
    ]:
        path.parent.mkdir(exist_ok=True)
        path.touch()
    record = StudyRecord.load(folder.ledger_file)
    best = exported_spec(folder, Results(spec, record), Results(spec, record).ranked_all[0], CandidateSelection())
    home.create_study(best)
    create_or_extend_training(home, final_training_spec(best, [0]))


@pytest.mark.slow
@given(ESCAPES | st.from_regex(STUDY_NAME_PATTERN, fullmatch=True))
@example("a" * 100)
@example("a..b")
@example("../a")
@example("%2e%2e%2fa")
@example("\uff0e\uff0e\uff0fa")
def test_no_name_leads_out_of_the_home(name: str) -> None:
    """Either it is refused and nothing is written, or all that is named after it is in the home by a plain name."""
    with tempfile.TemporaryDirectory() as parent:
        home = Home(Path(parent, "a", "home"))
        try:
            make_all_that_is_named_after(home, name)
        except UserError:
            assert everything(Path(parent)) == []
            with pytest.raises(UserError):
                home.find_study(name)
            return
        tops = {path.name for path in home.path.iterdir()}
        assert tops == {"format", name, f"{name[:95]}-best", f"{name[:94]}-final"}
        assert [path for path in everything(Path(parent)) if not path.startswith("a/home/")] == ["a", "a/home"]
        assert {(unquote(top), normalize("NFKC", top)) for top in tops} == {(top, top) for top in tops}
        assert not [top for top in tops if top.startswith((".", "-"))]


@pytest.mark.slow
@given(ESCAPES)
def test_no_origin_and_no_given_name_lead_a_final_training_out_of_the_home(text: str) -> None:
    for spec, name in ((replace(quickstart(), origin={"study": text}), None), (quickstart(), text)):
        with tempfile.TemporaryDirectory() as parent:
            home = Home(Path(parent, "a", "home"))
            try:
                folder = create_or_extend_training(home, final_training_spec(spec, [0], name))
            except UserError:
                assert everything(Path(parent)) == []
            else:
                assert everything(home.path / folder.name) == ["ledger.jsonl", "study.yaml"]
                assert {path.name for path in home.path.iterdir()} == {"format", folder.name}


@pytest.mark.parametrize("name", ["artifacts", "format", "mlflow.db"])
def test_a_name_that_the_home_needs_itself_is_refused(home: Home, name: str) -> None:
    """Else a study's folder would be where all the others' artifacts go, and be removed with it."""
    for _ in range(2):
        with pytest.raises(UserError, match=rf"{name}: is the home's own in .* Another name: --name {name}-2"):
            home.create_study(named(name))
        home.create_study(named(f"one{len(home.list_studies())}"))


def test_a_link_in_the_home_is_no_study(home: Home, tmp_path: Path) -> None:
    elsewhere = Home(tmp_path / "elsewhere")
    elsewhere.create_study(named("one"))
    elsewhere.create_study(final_training_spec(named("one"), [0]))
    home.create_study(named("other"))
    for name in ("one", "one-final"):
        (home.path / name).symlink_to(elsewhere.path / name)
    (home.path / "other-2").symlink_to("nowhere")
    before = {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert [folder.name for folder in home.list_studies()] == ["other"]
    for name in ("one", "other-2"):
        for refuse in (home.find_study, home.check_name_is_free, lambda name: home.create_study(named(name))):
            with pytest.raises(UserError, match=rf"^{name}: is a symbolic link in .*home, to .*(where/one|nowhere); "):
                refuse(name)
    with pytest.raises(UserError, match="one-final: is a symbolic link"):
        create_or_extend_training(home, final_training_spec(named("one"), [1]))
    with pytest.raises(UserError, match="--name other-3"):
        home.check_name_is_free("other")
    assert {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_studies_are_listed_the_oldest_first_and_nothing_else(home: Home) -> None:
    assert home.list_studies() == []
    for age, name in enumerate(["b", "a", "c"]):
        os.utime(home.create_study(named(name)).spec_file, (age, age))
    (home.path / "artifacts").mkdir()
    (home.path / "mlflow.db").touch()
    assert [folder.name for folder in home.list_studies()] == ["b", "a", "c"]


@pytest.mark.parametrize("below", [".", "inside", "inside/deeper"])
def test_a_file_in_the_way_of_the_home_is_told(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("mine")
    home = Home(tmp_path / "file" / below)
    assert home.list_studies() == []
    with pytest.raises(UserError, match=r"cannot be written: .*Another home: STUDY_HOME="):
        home.create_study(named("one"))
    assert everything(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "mine"


def test_a_home_behind_a_link_and_back_is_one_folder_for_study_and_mlflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "disk" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "deep")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "link") + "/../home")
    home = Home.locate()
    assert home.path == tmp_path / "disk" / "home"
    assert str(home.database_file) == os.path.realpath(f"{tmp_path}/link/../home/mlflow.db")
    assert home.tracking_uri == f"sqlite:///{tmp_path}/disk/home/mlflow.db"


@pytest.mark.parametrize("name", ["mlflow.db", "artifacts", "."])
def test_another_users_home_is_refused_before_a_study_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    home = Home(tmp_path / "home")
    home.artifacts_folder.mkdir(parents=True)
    home.database_file.touch()
    home.check_name_is_free("mine")
    place, access = home.path / name, os.access
    monkeypatch.setattr(os, "access", lambda path, mode: access(path, mode) and Path(path) != place)  # root has it all
    with pytest.raises(UserError, match=rf"{place}: cannot be written: Permission denied. Another home"):
        home.check_name_is_free("mine")
