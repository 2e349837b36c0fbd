"""Every rule's pick runs again on fresh seeds, and test is read for it; what the study chooses stays the same."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from course import Course, outcome, prefixes, spec_of

from study.commands import extend_study
from study.commands.plan import plan_study
from study.errors import UserError
from study.home.folder import Home, StudyFolder
from study.home.ledger import read_entries
from study.home.record import StudyRecord, TrialRecord
from study.ranking import Results, SeedStatistics
from study.spec import StudySpec

ASKED, NOT_ASKED = "search.confirm={top: 1, seeds: 2, rules: true}", "search.confirm={top: 1, seeds: 2}"
STEADY = "search.early_stopping={}"


def further(trial: TrialRecord) -> Mapping[str, float]:
    """Metrics by which the last, the third and the fifth configuration are best, and one in which all tie."""
    number = trial.number if trial.repeated_trial is None else trial.repeated_trial
    return {
        "balanced_accuracy": 1 - abs(number - 4) / 100,
        "unbiased_accuracy": 1 - abs(number - 2) / 100,
        "conflicting_accuracy": number / 100,
        "worst_group_accuracy": 0.0,
    }


def play(path: Path, spec: StudySpec, slots: int = 1) -> Course:
    return Course(path, spec, further=further).play(slots)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return play(tmp_path_factory.mktemp("course") / "ledger.jsonl", spec_of(ASKED, STEADY))


def fresh_seeds(record: StudyRecord) -> Counter[tuple[int | None, int]]:
    return Counter((trial.repeated_trial, trial.seed) for trial in record.trials_of_stages("confirm", "rule"))


def ranks(record: StudyRecord, spec: StudySpec) -> list[tuple[int, SeedStatistics | None]]:
    return [(candidate.trial.number, candidate.confirm_statistics) for candidate in Results(spec, record).ranked_all]


def test_each_pick_runs_once_on_every_fresh_seed_and_is_tested(course: Course) -> None:
    record, spec = course.record, course.spec
    picks = {trial.number for trial in Results(spec, record).rule_picked_trials}
    confirmed = {trial.number for trial in Results(spec, record).confirmation.trials_to_confirm()}
    assert len(picks - confirmed) == 2
    assert fresh_seeds(record) == {(number, seed): 1 for number in picks | confirmed for seed in (1, 2)}
    tested = {trial.number for trial in record.trials.values() if trial.test_metrics}
    assert tested == {trial.number for trial in record.trials_of_stages("confirm", "rule")}
    assert record.n_test_readings == len(tested)


def test_the_study_is_the_same_as_one_without(course: Course, tmp_path: Path) -> None:
    spec = spec_of(NOT_ASKED, STEADY)
    without = play(tmp_path / "ledger.jsonl", spec).record
    assert outcome(course.record)[: len(without.trials)] == outcome(without)
    assert ranks(course.record, course.spec) == ranks(without, spec)


def test_no_more_trials_ran_than_were_planned(course: Course) -> None:
    planned = plan_study(course.spec).budget.trials
    stages = Counter(trial.stage for trial in course.record.trials.values())
    assert 2 * 2 == stages.pop("rule") <= planned.pop("rule")
    assert {stage: stages[stage] for stage in planned} == planned


@pytest.mark.slow
def test_cut_at_every_third_line_after_the_search_it_ends_as_if_never_cut(course: Course, tmp_path: Path) -> None:
    events = read_entries(course.ledger.path)
    first = next(place for place, event in enumerate(events) if event.get("stage") == "confirm")
    for count, kept in enumerate(prefixes(course)[first - 1 :: 3]):
        (path := tmp_path / f"{count}.jsonl").write_bytes(kept)
        assert outcome(play(path, course.spec).record) == outcome(course.record), f"cut after line {first + 3 * count}"


def test_several_at_once_run_the_same_trials(course: Course, tmp_path: Path) -> None:
    record = play(tmp_path / "ledger.jsonl", spec_of(ASKED, STEADY, "search.sampler=random"), slots=4).record
    assert set(fresh_seeds(record).values()) == {1}
    assert {trial.number for trial in Results(course.spec, record).rule_picked_trials} <= {
        number for number, _ in fresh_seeds(record)
    }


def test_without_confirmation_there_are_the_picks_alone(tmp_path: Path) -> None:
    spec = spec_of("search.confirm={top: 0, seeds: 2, rules: true}", STEADY)
    record = play(tmp_path / "ledger.jsonl", spec).record
    assert not list(record.trials_of_stages("confirm"))
    picks = {trial.number for trial in Results(spec, record).rule_picked_trials}
    assert fresh_seeds(record) == {(number, seed): 1 for number in picks for seed in (1, 2)}
    assert all(trial.test_metrics for trial in record.trials_of_stages("rule"))


def later(home: Path, *assignments: str) -> tuple[StudyFolder, StudySpec]:
    """A study that was not asked for its rules' picks, at its end."""
    spec = spec_of(NOT_ASKED, STEADY, *assignments)
    folder = Home(home).create_study(spec)
    play(folder.ledger_file, spec)
    return folder, spec


def test_asked_later_is_as_asked_at_once(course: Course, tmp_path: Path) -> None:
    folder, spec = later(tmp_path)
    extend_study.add_fresh_seeds(folder, spec, None, None, rules=True)
    assert StudyRecord.load(folder.ledger_file).state == "interrupted", "a crash here leaves something to resume"
    play(folder.ledger_file, spec)
    record = StudyRecord.load(folder.ledger_file)
    assert record.confirm_request == (1, 2, True)
    assert outcome(record) == outcome(course.record)
    assert ranks(record, spec) == ranks(course.record, course.spec)
    size = folder.ledger_file.stat().st_size
    with pytest.raises(UserError, match=r"trials 0, \d+, \d+, \d+ have run on 2 fresh seeds or more"):
        extend_study.add_fresh_seeds(folder, spec, None, None, rules=True)
    assert folder.ledger_file.stat().st_size == size


def test_once_asked_for_the_picks_follow_the_study(tmp_path: Path) -> None:
    """More seeds and a longer search take them along."""
    folder, spec = later(tmp_path, "search.sampler=random")
    extend_study.add_fresh_seeds(folder, spec, None, None, rules=True)
    play(folder.ledger_file, spec)
    extend_study.add_fresh_seeds(folder, spec, 1, 3)
    more = play(folder.ledger_file, spec).record
    assert {(trial.number, seed) for trial in Results(spec, more).rule_picked_trials for seed in (1, 2, 3)} <= set(
        fresh_seeds(more)
    )
    extend_study.add_search_trials(folder, spec, "+6")
    longer = play(folder.ledger_file, spec).record
    assert {(trial.number, seed) for trial in Results(spec, longer).rule_picked_trials for seed in (1, 2, 3)} <= set(
        fresh_seeds(longer)
    )
    last = max(trial.number for trial in longer.trials_of_stages("search"))
    assert last in {trial.number for trial in Results(spec, longer).rule_picked_trials} - {
        trial.number for trial in Results(spec, more).rule_picked_trials
    }
