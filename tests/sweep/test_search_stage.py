"""What a search tries and when it has had enough: replicates, budgets, extension, several metrics."""

import math
import statistics
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from course import Course, outcome, prefixes, score, spec_of

from study.commands import extend_study
from study.errors import UserError
from study.home.events import ENDED_STATES, Event
from study.home.folder import StudyFolder
from study.home.ledger import Ledger, read_entries
from study.home.record import StudyRecord, TrialRecord
from study.ranking import Results
from study.sweep.early_stopping import EarlyStopping
from study.sweep.search_stage import SearchStage

REPLICATED = ("search.replicates=3", "search.trials=8")


@pytest.fixture(scope="module")
def replicated(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """Eight configurations on three seeds each, one job at a time."""
    return Course(tmp_path_factory.mktemp("replicated") / "ledger.jsonl", spec_of(*REPLICATED)).play()


def seeds_of(record: StudyRecord, leader: TrialRecord) -> list[TrialRecord]:
    return [leader, *record.repeat_trials(leader.number, "replicate")]


def test_each_configuration_runs_on_its_seeds_and_is_confirmed_on_others(replicated: Course) -> None:
    record = replicated.record
    leaders = list(record.trials_of_stages("baseline", "search"))
    assert len(leaders) == 8
    for leader in leaders:
        seeds = [trial.seed for trial in seeds_of(record, leader)]
        assert seeds == [0, 1, 2][: len(seeds)]
        assert len(seeds) == 3 or leader.state == "pruned"
        assert all(trial.params == leader.params for trial in seeds_of(record, leader))
    assert {trial.seed for trial in record.trials_of_stages("confirm")} == {3, 4}


def test_a_configuration_can_have_any_seeds(tmp_path: Path) -> None:
    spec = spec_of("search.trials=3", "train.seed=4", "search.replicates=[4, 9, 0]", "search.early_stopping={}")
    record = Course(tmp_path / "ledger.jsonl", spec).play().record
    for one in Results(spec, record).ranked_by_search_value:
        assert [trial.seed for trial in one.replicates] == [4, 9, 0]
    assert {trial.seed for trial in record.trials_of_stages("confirm")} == {10, 11}, "none that the search saw"


def test_what_stops_the_first_seed_stops_the_others(replicated: Course) -> None:
    record = replicated.record
    pruned = [trial for trial in record.trials_of_stages("search") if trial.state == "pruned"]
    assert pruned
    for leader in pruned:
        assert leader.reason == "asha"
        assert all(trial.state in ("pruned", "complete") for trial in record.repeat_trials(leader.number, "replicate"))
    assert all(trial.state in ENDED_STATES for trial in record.trials.values())


def test_a_configuration_is_worth_the_mean_of_its_seeds(replicated: Course) -> None:
    record, spec = replicated.record, replicated.spec
    found = Results(spec, record).ranked_by_search_value
    assert found
    for one in found:
        assert one.search_value == pytest.approx(
            statistics.fmean(score(trial, 4) for trial in seeds_of(record, one.trial))
        )
        assert len(one.replicates) == 3
    assert [one.search_value for one in found] == sorted((one.search_value for one in found), reverse=True)


def test_a_lucky_first_seed_does_not_win(tmp_path: Path) -> None:
    """Trial 1 leads on its first seed alone, the configuration of trial 2 on the mean."""

    def lucky(trial: TrialRecord, epoch: int) -> float:
        values = {0: [0.1, 0.1], 1: [0.9, 0.1], 2: [0.6, 0.6]}
        return values[(trial.number if trial.repeated_trial is None else trial.repeated_trial) // 2][trial.seed]

    spec = spec_of("search.trials=3", "search.replicates=2", "search.early_stopping={}", "search.confirm={top: 0}")
    course = Course(tmp_path / "ledger.jsonl", spec, lucky).play()
    best = Results(course.spec, course.record).best
    assert best is not None
    assert (best.trial.number, best.search_value) == (4, pytest.approx(0.6))


def test_a_seed_that_fails_leaves_the_configuration_without_a_value(tmp_path: Path) -> None:
    def broken(trial: TrialRecord, epoch: int) -> float | None:
        return None if trial.repeated_trial == 3 and trial.seed == 2 else score(trial, epoch)

    spec = spec_of("search.trials=3", "search.replicates=3", "search.early_stopping={}", "search.confirm={top: 0}")
    record = Course(tmp_path / "ledger.jsonl", spec, broken).play().record
    assert record.trials[3].state == "complete"
    assert [one.trial.number for one in Results(spec, record).ranked_by_search_value] == [6]


@pytest.mark.slow
def test_resumed_at_any_line_replicates_go_on_as_if_never_cut(replicated: Course, tmp_path: Path) -> None:
    expected = outcome(replicated.record)
    for count, kept in enumerate(prefixes(replicated)[::7]):
        (path := tmp_path / f"{count}.jsonl").write_bytes(kept)
        assert outcome(Course(path, replicated.spec).play().record) == expected, f"cut after line {7 * count + 1}"


def test_optuna_hears_the_mean_once_per_configuration(replicated: Course) -> None:
    record, spec = replicated.record, replicated.spec
    history = list(SearchStage(spec, record, EarlyStopping(spec)).suggestions.history.trials.values())
    states = Counter(trial.state.name for trial in history)
    leaders = list(record.trials_of_stages("baseline", "search"))
    assert states["PRUNED"] == sum(trial.state == "pruned" for trial in leaders)
    means = sorted(one.search_value for one in Results(spec, record).ranked_all)
    assert sorted(trial.value for trial in history if trial.state.name == "COMPLETE") == pytest.approx(means)


def timed(path: Path, *assignments: str, seconds: float = 60.0) -> Course:
    """A course in which each event comes so many seconds after the one before."""
    course = Course(path, spec_of(*assignments))
    clock = [course.record.sessions[-1].time]
    append = course.ledger.append

    def later(event: Event) -> Event:
        clock[0] += seconds
        return append(replace(event, time=clock[0]))

    course.ledger.append = later  # type: ignore[method-assign]
    return course


def test_a_search_ends_when_its_time_is_over_and_is_then_confirmed(tmp_path: Path) -> None:
    course = timed(tmp_path / "ledger.jsonl", "search.time=30m", "search.early_stopping={}")
    record = course.play().record
    searched = list(record.trials_of_stages("baseline", "search"))
    assert 1 < len(searched) < 12
    assert course.agenda.reached_limit == "time"
    assert all(trial.state == "complete" for trial in searched)
    decided = [event for event in read_entries(course.ledger.path) if event["event"] == "trial"]
    assert all(event["time"] - record.sessions[0].time <= 31 * 60 for event in decided if event["stage"] == "search")
    assert len(list(record.trials_of_stages("confirm"))) == 6


def test_a_search_ends_when_its_gpu_hours_are_spent(tmp_path: Path) -> None:
    given = ("search.gpu_hours=0.1", "resources.gpu=0.5", "search.early_stopping={}")
    course = timed(tmp_path / "ledger.jsonl", *given)
    record = course.play().record
    searched = list(record.trials_of_stages("baseline", "search"))
    each = 5 * 60 * 0.5 / 3600  # from its start to its end, four reports between
    assert len(searched) == math.ceil(0.1 / each)
    assert course.agenda.reached_limit == "gpu_hours"


def extend(course: Course, trials: str) -> Course:
    extend_study.add_search_trials(StudyFolder(course.ledger.path.parent), course.spec, trials)
    return Course(course.ledger.path, course.spec, course.score).play()


def test_a_finished_study_is_extended(tmp_path: Path) -> None:
    """It goes on as one that was longer from the beginning, and confirms what is best then."""
    first = Course(tmp_path / "ledger.jsonl", spec_of("search.trials=5", "search.confirm={top: 0}")).play()
    assert first.agenda.reached_limit == "trials"
    longer = extend(first, "+4")
    assert len(list(longer.record.trials_of_stages("baseline", "search"))) == 9
    (tmp_path / "other").mkdir()
    at_once = Course(tmp_path / "other" / "ledger.jsonl", spec_of("search.trials=9", "search.confirm={top: 0}")).play()
    assert outcome(longer.record) == outcome(at_once.record)
    assert len(list(extend(longer, "+1").record.trials_of_stages("baseline", "search"))) == 10


@pytest.mark.parametrize("given", ["50", "+0", "+-3", "+x", "-5", "+5.0", ""])
def test_an_extension_is_a_number_of_trials(given: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="as in --trials \\+50"):
        extend_study.add_search_trials(StudyFolder(tmp_path), spec_of(), given)


@pytest.mark.parametrize("given", [["search.space={}", "search.trials=1"], ["final_seeds=[0, 1]"]])
def test_what_has_no_search_is_not_extended(given: list[str], tmp_path: Path) -> None:
    Ledger.create(tmp_path / "ledger.jsonl")
    with pytest.raises(UserError, match="further"):
        extend_study.add_search_trials(StudyFolder(tmp_path), spec_of(*given), "+5")
