"""What may change while a study goes on, and what may not."""

import re
from pathlib import Path

import pytest
from course import Course, spec_of
from helpers import append_event

from study.commands import changes_on_resume
from study.errors import UserError
from study.home.folder import Home, StudyFolder
from study.home.record import StudyRecord
from study.ranking import Results

SPEC = spec_of("resources={cpu: 2}")


@pytest.fixture
def folder(tmp_path: Path) -> StudyFolder:
    return Home(tmp_path).create_study(SPEC)


def told(folder: StudyFolder, *assignments: str, record: StudyRecord | None = None) -> dict[str, object]:
    return changes_on_resume.placement_on_resume(folder, record or StudyRecord.load(folder.ledger_file), assignments)


def test_trials_are_placed_otherwise_and_stay_the_same(folder: StudyFolder) -> None:
    found = told(folder, "resources.cpu=4", "search.concurrency=3", "resources.hang=15m")
    assert found == {"resources.cpu": 4, "search.concurrency": 3, "resources.hang": 900}
    placed = folder.load_checked_spec().replace_placement(found)
    assert (placed.resources.cpu, placed.search.concurrency) == (4, 3)
    assert placed.base["train"]["threads"] == 2, "as many threads as before: other results otherwise"
    assert placed.hash == SPEC.hash
    assert placed.placement_overrides == found
    assert SPEC.placement_overrides == {}


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("train.threads=4", "--set train.threads=4: cannot change while quickstart goes on. Trials are bit for bit"),
        ("train.epochs=40", "Trials of more epochs are another study: study run FILE --set train.epochs=40 --name NEW"),
        ("search.trials=99", r"More configurations: study resume quickstart --trials \+50"),
        ("search.confirm.top=3", "More fresh seeds: study confirm quickstart"),
        ("method.alpha=1", "It decides what trials compute or are compared by. Another study: study run FILE --name"),
        ("resources.gpu=1", "the trials of quickstart run on the CPU; on a GPU the same trial has other numbers"),
        ("resources.cpu=-1", "--set resources.cpu=-1: resources.cpu: -1 given"),
        ("resources.cpus=1", "resources.cpus=1: cannot change"),
        ("search.concurrency=0", "search.concurrency: 0 given"),
        ("resources", "not of the form key=value"),
    ],
)
def test_what_may_not_change_is_refused(folder: StudyFolder, assignment: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        told(folder, assignment)


def test_it_is_told_by_the_ledger_and_counted_as_it_was(folder: StudyFolder) -> None:
    Course(folder.ledger_file, SPEC).play()
    before = StudyRecord.load(folder.ledger_file)
    assert before.device_seconds("cpu", SPEC.resources.cpu) == pytest.approx(2 * before.total_trial_seconds)
    append_event(
        folder.ledger_file, "opened", owner="ada", version="1", placement={"resources.cpu": 8, "search.concurrency": 3}
    )
    record = StudyRecord.load(folder.ledger_file)
    assert record.placement == {"resources.cpu": 8, "search.concurrency": 3}
    assert changes_on_resume.placement_change_lines(changes_on_resume.placement_changes(Results(SPEC, record))) == [
        "placement resources.cpu 8 (in its file 2), search.concurrency 3 (in its file null)"
    ]
    taken = [one.device_seconds("cpu", SPEC.resources.cpu) for one in (before, record)]
    assert taken[0] == taken[1], "what ran before took what it took"


def test_a_study_file_that_was_changed_since_its_study_began_is_told_with_its_changes(folder: StudyFolder) -> None:
    """The message of a name that is taken said nothing of the change, as if `study resume` would run it."""
    home, changed = Home(folder.path.parent), spec_of("resources={cpu: 2}", "train.epochs=7", "search.trials=3")
    epochs, trials = SPEC.epochs, SPEC.n_configurations
    with pytest.raises(UserError) as refused:
        changes_on_resume.check_study_is_new(home, changed)
    message = str(refused.value)
    began = "What is given now differs from what quickstart began with: "
    assert began in message
    assert f"train.epochs {epochs} -> 7" in message
    assert f"search.trials {trials} -> 3" in message
    assert "Go on with it as it began: study resume quickstart. Run it as it is now under another name: " in message
    with pytest.raises(UserError, match=r"exists already in \S+ Go on with it: study resume quickstart\. Run it anew"):
        changes_on_resume.check_study_is_new(home, SPEC)
    changes_on_resume.check_study_is_new(home, spec_of("name=other"))


def test_many_changes_are_counted(folder: StudyFolder) -> None:
    others = {"train.learning_rate": 0.5, "train.batch_size": 16, "train.seed": 5, "train.epochs": 3, "search.seed": 4}
    many = spec_of(*(f"{key}={value}" for key, value in others.items()), "search.margin=1", "search.retries=1")
    told = changes_on_resume.study_file_changes_text(folder, many)
    assert told.count(" -> ") == 6
    assert re.search(r" and \d more$", told)
