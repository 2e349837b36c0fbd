"""More of a study that ended."""

from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from course import Course, outcome, score, spec_of

from study.commands import extend_study
from study.commands.final_training import final_training_spec
from study.errors import UserError
from study.home.driver_requests import DriverRequest
from study.home.events import SessionClosed, entry_to_event
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger, read_entries
from study.home.record import StudyRecord, TrialRecord
from study.ranking import Results, SeedStatistics
from study.spec import StudySpec

UNCONFIRMED = spec_of("search.confirm={top: 0}")


def played(home: Path, spec: StudySpec) -> StudyFolder:
    folder = Home(home).create_study(spec)
    Course(folder.ledger_file, spec).play()
    return folder


def confirmed(folder: StudyFolder, spec: StudySpec, top: int, seeds: int) -> StudyRecord:
    extend_study.add_fresh_seeds(folder, spec, top, seeds)
    assert StudyRecord.load(folder.ledger_file).state == "interrupted", "a crash here leaves something to resume"
    Course(folder.ledger_file, spec).play()
    return StudyRecord.load(folder.ledger_file)


def ranking(record: StudyRecord, spec: StudySpec) -> list[tuple[int, SeedStatistics | None]]:
    return [(one.trial.number, one.confirm_statistics) for one in Results(spec, record).ranked_all]


def test_confirmed_later_is_as_confirmed_at_once(tmp_path: Path) -> None:
    later = confirmed(played(tmp_path / "later", UNCONFIRMED), UNCONFIRMED, top=2, seeds=3)
    spec = spec_of("search.confirm={top: 2, seeds: 3}")
    at_once = StudyRecord.load(played(tmp_path / "once", spec).ledger_file)
    assert outcome(later) == outcome(at_once)
    assert ranking(later, UNCONFIRMED) == ranking(at_once, spec)
    assert Results(UNCONFIRMED, later).is_confirmed


def test_what_ran_before_counts(tmp_path: Path) -> None:
    """Two configurations and the baseline on seeds 1 and 2; then one configuration more, and seed 3 for all."""
    spec = spec_of()
    folder = played(tmp_path, spec)
    before = StudyRecord.load(folder.ledger_file)
    after = confirmed(folder, spec, top=3, seeds=3)
    new = [(trial.repeated_trial, trial.seed) for trial in list(after.trials.values())[len(before.trials) :]]
    best = [one.trial.number for one in Results(spec, after).ranked_by_search_value]
    assert sorted(new) == sorted([(0, 3), (best[0], 3), (best[1], 3), (best[2], 1), (best[2], 2), (best[2], 3)])
    assert outcome(before) == [
        (*one[:6], *one[6:-1], after.trials[one[0]].test_metrics) for one in outcome(after)[: len(before.trials)]
    ]


def test_nothing_is_left_to_confirm(tmp_path: Path) -> None:
    spec = spec_of()
    folder = played(tmp_path, spec)
    size = folder.ledger_file.stat().st_size
    with pytest.raises(UserError, match=r"trials 0, \d+, \d+ have run on 2 fresh seeds or more"):
        extend_study.add_fresh_seeds(folder, spec, 2, 2)
    with pytest.raises(UserError, match=r"--top 50: quickstart has \d complete configurations"):
        extend_study.add_fresh_seeds(folder, spec, 50, 2)
    with pytest.raises(UserError, match=r"--top 0: quickstart has \d complete configurations"):
        extend_study.add_fresh_seeds(folder, spec, 0, 2)
    assert folder.ledger_file.stat().st_size == size


def test_where_fewer_are_complete_than_are_usually_confirmed_all_are(tmp_path: Path) -> None:
    folder = played(tmp_path, spec_of("search.trials=2", "search.confirm={top: 0}"))
    results = Results.load(folder)
    complete = len(results.ranked_by_search_value)
    assert 0 < complete < extend_study.DEFAULT_CONFIRM_TOP
    assert extend_study.make_confirm_event(results, None, None, False).top == complete


def test_the_hours_after_a_drivers_death_are_nobodys_work(tmp_path: Path) -> None:
    """Ten hours after it, a user asks for more trials."""
    folder = played(tmp_path, UNCONFIRMED)
    *told, last = map(entry_to_event, read_entries(folder.ledger_file))
    assert isinstance(last, SessionClosed)
    folder.ledger_file.unlink()
    with closing(Ledger(folder.ledger_file)) as ledger:
        for event in told:
            ledger.append(replace(event, time=event.time - 36_000))
    record = extend_study.add_search_trials(folder, UNCONFIRMED, "+3")
    assert record.total_driver_seconds < 3_600
    assert StudyRecord.load(folder.ledger_file).total_driver_seconds == record.total_driver_seconds


def test_a_search_must_be_over(tmp_path: Path) -> None:
    folder = Home(tmp_path).create_study(UNCONFIRMED)
    with pytest.raises(UserError, match=r"is new, its search must end first: study resume quickstart"):
        extend_study.add_fresh_seeds(folder, UNCONFIRMED, 1, 2)


def test_a_final_training_has_no_search(tmp_path: Path) -> None:
    spec = final_training_spec(UNCONFIRMED, [0, 1])
    with pytest.raises(UserError, match="further seeds of it: study train"):
        extend_study.add_fresh_seeds(Home(tmp_path).create_study(spec), spec, 1, 2)


class Killed(Exception):
    """The driver died."""


def play_until_killed(course: Course) -> None:
    """Run a study until it ends, or its driver dies."""
    with suppress(Killed):
        course.play()
    course.ledger.close()


def ended_by_a_user(home: Path, spec: StudySpec, dies: bool) -> StudyFolder:
    """A study whose search a user ended while its fifth configuration ran; its driver died then, or not."""
    folder = Home(home).create_study(spec)

    def at_the_fifth(trial: TrialRecord, epoch: int) -> float | None:
        if trial.number == 4:
            course.agenda.obey_request(DriverRequest("end"))
            if dies:
                raise Killed
        return score(trial, epoch)

    course = Course(folder.ledger_file, spec, at_the_fifth)
    play_until_killed(course)
    return folder


@pytest.mark.parametrize("dies", [False, True])
def test_more_trials_count_from_those_that_there_are_once_time_ended_the_search(tmp_path: Path, dies: bool) -> None:
    """The driver dies in the stage after it, before it could write what ended the search."""
    spec = spec_of("search.time=0.001", "search.trials=50", "search.confirm={top: 1, seeds: 2}")
    folder = Home(tmp_path).create_study(spec)

    def in_confirm(trial: TrialRecord, epoch: int) -> float | None:
        if trial.stage == "confirm" and dies:
            raise Killed
        return score(trial, epoch)

    play_until_killed(Course(folder.ledger_file, spec, in_confirm))
    tried = StudyRecord.load(folder.ledger_file).n_configurations_tried
    assert tried < 50
    assert extend_study.add_search_trials(folder, spec, "+2").extended_n_configurations == tried + 2


GRID = spec_of("search.sampler=grid", "search.space={method.lambda: {choices: [0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0]}}")


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("spec", [UNCONFIRMED, GRID], ids=["random", "grid"])
def test_more_trials_count_from_those_that_there_are_once_a_user_ended_the_search(
    tmp_path: Path, spec: StudySpec, dies: bool
) -> None:
    folder = ended_by_a_user(tmp_path, spec, dies)
    assert extend_study.add_search_trials(folder, spec, "+2").extended_n_configurations == 5 + 2
    record = Course(folder.ledger_file, spec).play().record
    assert (len(list(record.trials_of_stages("baseline", "search"))), record.search_ended_by) == (7, "trials")


def test_a_grid_that_was_ended_goes_on_to_its_last_cell_and_no_further(tmp_path: Path) -> None:
    folder = ended_by_a_user(tmp_path, GRID, dies=False)
    assert extend_study.add_search_trials(folder, GRID, "+100").extended_n_configurations == GRID.n_configurations
    record = Course(folder.ledger_file, GRID).play().record
    searched_values = [trial.params["method.lambda"] for trial in record.trials_of_stages("search")]
    assert sorted(searched_values) == [0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0]
    with pytest.raises(UserError, match="its space has no further configurations"):
        extend_study.add_search_trials(folder, GRID, "+1")
