"""More of a study that ended."""

from pathlib import Path

import pytest
from course import Course, outcome, spec_of

from study.commands import extension
from study.commands.final_training import final_study
from study.errors import UserError
from study.home.folder import Home, StudyFolder
from study.home.record import StudyRecord
from study.ranking import Spread, is_confirmed, ranked, searched
from study.spec import StudySpec

UNCONFIRMED = spec_of("search.confirm={top: 0}")


def played(home: Path, spec: StudySpec) -> StudyFolder:
    folder = Home(home).create(spec)
    Course(folder.ledger_file, spec).play()
    return folder


def confirmed(folder: StudyFolder, spec: StudySpec, top: int, seeds: int) -> StudyRecord:
    extension.more_seeds(folder, spec, top, seeds)
    assert StudyRecord.load(folder.ledger_file).state == "interrupted", "a crash here leaves something to resume"
    Course(folder.ledger_file, spec).play()
    return StudyRecord.load(folder.ledger_file)


def ranking(record: StudyRecord, spec: StudySpec) -> list[tuple[int, Spread | None]]:
    return [(one.trial.number, one.confirmed) for one in ranked(record, spec)]


def test_confirmed_later_is_as_confirmed_at_once(tmp_path: Path) -> None:
    later = confirmed(played(tmp_path / "later", UNCONFIRMED), UNCONFIRMED, top=2, seeds=3)
    spec = spec_of("search.confirm={top: 2, seeds: 3}")
    at_once = StudyRecord.load(played(tmp_path / "once", spec).ledger_file)
    assert outcome(later) == outcome(at_once)
    assert ranking(later, UNCONFIRMED) == ranking(at_once, spec)
    assert is_confirmed(later, UNCONFIRMED)


def test_what_ran_before_counts(tmp_path: Path) -> None:
    """Two configurations and the baseline on seeds 1 and 2; then one configuration more, and seed 3 for all."""
    spec = spec_of()
    folder = played(tmp_path, spec)
    before = StudyRecord.load(folder.ledger_file)
    after = confirmed(folder, spec, top=3, seeds=3)
    new = [(trial.repeats, trial.seed) for trial in list(after.trials.values())[len(before.trials) :]]
    best = [one.trial.number for one in searched(after, spec)]
    assert sorted(new) == sorted([(0, 3), (best[0], 3), (best[1], 3), (best[2], 1), (best[2], 2), (best[2], 3)])
    assert outcome(before) == [
        (*one[:6], *one[6:-1], after.trials[one[0]].tested) for one in outcome(after)[: len(before.trials)]
    ]


def test_nothing_is_left_to_confirm(tmp_path: Path) -> None:
    spec = spec_of()
    folder = played(tmp_path, spec)
    size = folder.ledger_file.stat().st_size
    with pytest.raises(UserError, match=r"trials 0, \d+, \d+ have run on 2 fresh seeds or more"):
        extension.more_seeds(folder, spec, 2, 2)
    with pytest.raises(UserError, match=r"--top 50: quickstart has \d complete configurations"):
        extension.more_seeds(folder, spec, 50, 2)
    assert folder.ledger_file.stat().st_size == size


def test_a_search_must_be_over(tmp_path: Path) -> None:
    folder = Home(tmp_path).create(UNCONFIRMED)
    with pytest.raises(UserError, match=r"is new, its search must end first: study resume quickstart"):
        extension.more_seeds(folder, UNCONFIRMED, 1, 2)


def test_a_final_training_has_no_search(tmp_path: Path) -> None:
    spec = final_study(UNCONFIRMED, [0, 1])
    with pytest.raises(UserError, match="further seeds of it: study train"):
        extension.more_seeds(Home(tmp_path).create(spec), spec, 1, 2)
