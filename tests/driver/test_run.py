"""What a study's commands say where they cannot go on."""

import re
import shutil
import signal
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import final_training
import pytest
from helpers import Told, append_event, quickstart, write_ledger
from limits import full_disk

from study import data
from study.commands.final_training import final_training_spec
from study.driver import resume, run
from study.errors import StartInterruptedError, StudyStoppedError, UserError
from study.home.folder import Home, write_home_format
from study.sweep import STARTING_TRIALS_STEP

SPEC = quickstart()


def no_word(text: str) -> None:
    """Shows nothing."""


COMMANDS: dict[str, Callable[[Home], object]] = {
    "resume": lambda home: resume.resume_study(home, SPEC.name, lambda *_: nullcontext(no_word)),
    "more trials": lambda home: resume.resume_study(home, SPEC.name, lambda *_: nullcontext(no_word), "+5"),
}


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("lease", [False, True], ids=["at once", "after the lease"])
def test_a_full_disk_is_told_with_its_place_and_the_way_on(tmp_path: Path, command: str, lease: bool) -> None:
    data.load_datasets(SPEC.trial_data_sections)  # whose libraries want to write, too, when they are loaded
    home = Home(tmp_path / "home")
    folder = home.create_study(SPEC)
    write_ledger(folder.ledger_file, *(Told("search", [0.5], state="complete") for _ in range(10)))
    before = folder.ledger_file.read_bytes()
    with full_disk(len(before) if lease else 0), pytest.raises(StudyStoppedError) as stopped:
        COMMANDS[command](home)
    place = folder.ledger_file if lease else folder.path
    assert str(stopped.value).startswith(str(place))
    assert "File too large. Nothing is lost; once there is room: study resume quickstart" in str(stopped.value)
    assert folder.ledger_file.read_bytes() == before


@pytest.mark.slow
def test_a_study_whose_folder_is_moved_while_it_runs_says_so(tmp_path: Path) -> None:
    """To go on with it under its old name would find nothing."""
    home = Home(tmp_path / "home")
    folder = home.create_study(quickstart("search.trials=2"))

    def moves_it(text: str) -> None:
        if text == STARTING_TRIALS_STEP:
            folder.path.rename(tmp_path / "moved")

    with pytest.raises(StudyStoppedError) as stopped:
        resume.resume_study(home, folder.name, lambda *_: nullcontext(moves_it))
    assert str(stopped.value).endswith(f". {folder.path} was moved or removed while the study ran")


@pytest.mark.slow
@pytest.mark.parametrize("begin", ["start", "train"])
@pytest.mark.parametrize(
    ("refusal", "stays"),
    [
        (UserError("a node does not see the home"), False),
        (PermissionError(13, "Permission denied"), False),
        (RuntimeError("a bug"), False),
        (StudyStoppedError("Ray cannot start"), True),
    ],
    ids=["refused", "no permission", "a bug", "stopped"],
)
def test_what_is_refused_before_its_first_trial_leaves_nothing_behind(
    tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch, begin: str, refusal: Exception, stays: bool
) -> None:
    """The same command works once it is mended; what only had to stop goes on by `study resume`."""

    def refused(*given: object) -> None:
        raise refusal

    monkeypatch.setattr("study.sweep.driver.drive_study", refused)
    home = Home(tmp_path / "home")
    home.path.mkdir()
    write_home_format(home.path)
    shutil.copy(empty_database, home.database_file)
    spec = SPEC if begin == "start" else final_training_spec(SPEC, [0, 1], None, False)
    command = run.run_new_study if begin == "start" else run.train_final
    for _ in range(2 - stays):
        with pytest.raises(type(refusal), match=re.escape(str(refusal))):
            command(home, spec, lambda *_: nullcontext(no_word))
        assert [folder.name for folder in home.list_studies()] == ([spec.name] if stays else [])


@pytest.mark.parametrize("begin", ["start", "train"])
def test_a_signal_as_the_folder_is_made_is_told_as_a_study_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: str
) -> None:
    """The folder is there, so the message may not say that nothing is left behind."""
    rename = Path.rename

    def renamed_as_it_came(draft: Path, target: Path) -> Path:
        rename(draft, target)
        signal.raise_signal(signal.SIGINT)
        return target

    home = Home(tmp_path / "home")
    spec = SPEC if begin == "start" else final_training_spec(SPEC, [0, 1], None, False)
    command = run.run_new_study if begin == "start" else run.train_final
    monkeypatch.setattr(Path, "rename", renamed_as_it_came)
    with pytest.raises(StartInterruptedError, match=rf"go on with it: study resume {spec.name}$"):
        command(home, spec, lambda *_: nullcontext(no_word))
    assert [folder.name for folder in home.list_studies()] == [spec.name]


@pytest.mark.slow
def test_a_signal_before_anything_of_a_session_is_kept_is_told_as_a_stop(
    tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as what came of the session before."""

    def interrupted(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("study.sweep.driver.check_data_unchanged", interrupted)
    home = Home(tmp_path / "home")
    folder = home.create_study(SPEC)
    write_ledger(folder.ledger_file, Told("baseline", [0.5]), Told("search", [0.7], state="failed"))
    append_event(folder.ledger_file, "closed", state="failed")
    shutil.copy(empty_database, home.database_file)
    with pytest.raises(
        StartInterruptedError, match=r"^stopped\. Nothing is lost; go on with it: study resume quickstart$"
    ):
        resume.resume_study(home, SPEC.name, lambda *_: nullcontext(no_word))


@pytest.mark.slow
def test_a_study_that_was_stopped_before_its_report_gets_it_when_it_is_resumed(
    tmp_path: Path, empty_database: Path
) -> None:
    home = Home(tmp_path / "home")
    folder = home.create_study(SPEC)
    write_ledger(folder.ledger_file, Told("baseline", [0.5]), Told("search", [0.7]))
    append_event(folder.ledger_file, "closed", state="complete")
    shutil.copy(empty_database, home.database_file)
    end = resume.resume_study(home, SPEC.name, lambda *_: nullcontext(no_word))
    assert (end.record.state, end.untracked_reason, end.has_run_trials) == ("complete", None, False)
    assert folder.report_page.exists()
    assert folder.best_file.exists()
    with pytest.raises(UserError, match="there is nothing to go on with"):
        resume.resume_study(home, SPEC.name, lambda *_: nullcontext(no_word))


def without_the_measured_time(card: str) -> str:
    """A card without the time that a sample took, which is measured as the card is written."""
    rest, found = re.subn(r"(?<= takes )[\d.e+-]+(?= ms of one thread)", "...", card)
    assert found == 1
    return rest


@pytest.mark.slow
def test_a_final_training_without_its_card_gets_it_when_it_is_resumed(tmp_path: Path, empty_database: Path) -> None:
    """As where the disk was full when its trials were over."""
    home = Home(tmp_path / "home")
    folder = final_training.train(home)
    shutil.copy(empty_database, home.database_file)
    card = without_the_measured_time(folder.model_card_file.read_text())
    folder.model_card_file.unlink()
    end = resume.resume_study(home, folder.name, lambda *_: nullcontext(no_word))
    assert (end.record.state, end.untracked_reason) == ("complete", None)
    assert without_the_measured_time(folder.model_card_file.read_text()) == card
    with pytest.raises(UserError, match="there is nothing to go on with"):
        resume.resume_study(home, folder.name, lambda *_: nullcontext(no_word))


@pytest.mark.slow
def test_a_final_training_that_is_complete_is_answered_without_a_driver(
    tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless something of it is left to do: another seed, or its card."""

    def begins(*given: object) -> None:
        raise StudyStoppedError("a driver began")

    home = Home(tmp_path / "home")
    folder = final_training.train(home)
    shutil.copy(empty_database, home.database_file)
    spec = folder.load_spec()

    def train(*seeds: int) -> run.RunEnd:
        return run.train_final(home, replace(spec, final_seeds=seeds), lambda *_: nullcontext(no_word))

    with pytest.raises(UserError, match="with another configuration"):
        run.train_final(home, final_training_spec(SPEC, [0, 1], folder.name, False), lambda *_: nullcontext(no_word))
    resume.resume_study(home, folder.name, lambda *_: nullcontext(no_word))
    monkeypatch.setattr("study.sweep.driver.drive_study", begins)
    ledger, trained = folder.ledger_file.read_bytes(), spec.final_seeds or ()
    for seeds in (trained, trained[:1]):
        end = train(*seeds)
        assert (end.record.state, end.has_run_trials, end.results.spec.final_seeds) == ("complete", False, trained)
    assert folder.ledger_file.read_bytes() == ledger
    with pytest.raises(StudyStoppedError, match="a driver began"):
        train(*trained, max(trained) + 1)
    folder.write_spec(spec)
    folder.model_card_file.unlink()
    with pytest.raises(StudyStoppedError, match="a driver began"):
        train(*trained)
