"""Trials that go on beyond their last epoch: which they are, what becomes of the study, and what is refused."""

from pathlib import Path

import pytest
from course import Course, score, spec_of

from study import ranking
from study.commands import extend_study
from study.commands.extend_study import Request
from study.commands.final_training import final_study
from study.errors import UserError
from study.home.folder import Home, StudyFolder
from study.home.record import StudyRecord, TrialRecord, without_extensions
from study.ranking import Results
from study.ranking.summary import Extended, extended, sentence, summary
from study.spec import StudySpec
from study.sweep.early_stopping import early_stopping
from study.sweep.search_stage import SearchStage

SPEC = spec_of()


def played(home: Path, spec: StudySpec = SPEC) -> StudyFolder:
    folder = Home(home).create(spec)
    Course(folder.ledger_file, spec).play()
    return folder


def record_of(folder: StudyFolder) -> StudyRecord:
    return StudyRecord.load(folder.ledger_file)


def history(folder: StudyFolder, spec: StudySpec = SPEC) -> list[str]:
    stage = SearchStage(spec, record_of(folder), early_stopping(spec))
    return [repr((trial.number, trial.state, trial.values, trial.intermediate_values)) for trial in stage.history()]


def went_on(folder: StudyFolder, request: Request, spec: StudySpec = SPEC) -> StudyRecord:
    extend_study.ask(folder, spec, request)
    assert record_of(folder).state == "interrupted", "a crash here leaves something to resume"
    Course(folder.ledger_file, spec).play()
    return record_of(folder)


def numbers(found: list[ranking.Candidate]) -> list[int]:
    return [one.trial.number for one in found]


def stopped(record: StudyRecord) -> list[TrialRecord]:
    return [trial for trial in record.by_stage("search") if trial.state == "pruned"]


def two_stopped(folder: StudyFolder) -> tuple[int, ...]:
    return tuple(trial.number for trial in stopped(record_of(folder))[:2])


def test_the_best_and_the_baseline_go_on_with_all_their_seeds(tmp_path: Path) -> None:
    folder = played(tmp_path)
    before = record_of(folder)
    best = numbers(Results(SPEC, before).candidates)
    after = went_on(folder, Request(8, top=2))
    longest = {trial.number for trial in after.trials.values() if trial.epochs == 8}
    repeats = {trial.number for trial in after.by_stage("confirm") if trial.repeats in {0, *best[:2]}}
    assert longest == {0, *best[:2], *repeats}
    assert all(trial.state == "complete" and trial.until == 8 for trial in after.trials.values() if trial.epochs == 8)
    assert sorted(numbers(Results(SPEC, after).candidates)) == sorted(best[:2])
    assert {each.epochs for each in Results(SPEC, after).comparable} == {8}
    assert len(Results(SPEC, after).ranked) == len(Results(SPEC, before).ranked)
    assert Results(SPEC, after).is_confirmed
    found = Results(SPEC, after).best
    assert found is not None
    assert len(found.repeats) == 2
    assert all(trial.epochs == 8 and trial.tested for trial in found.repeats)
    assert after.test_readings == before.test_readings + 4, "read again, for the baseline and the best"


def test_the_search_remembers_its_trials_as_it_ended_them(tmp_path: Path) -> None:
    """What goes on changes no decision: not early stopping's, not the sampler's."""
    folder = played(tmp_path)
    before, told = record_of(folder), history(folder)
    after = went_on(folder, Request(8, top=1, trials=two_stopped(folder)))
    assert history(folder) == told
    searched = without_extensions(after).trials
    for number, trial in before.trials.items():
        assert (searched[number].state, searched[number].epochs) == (trial.state, trial.epochs)
    assert [one[:3] for one in after.story][: len(before.story)] == [one[:3] for one in before.story]


def test_what_early_stopping_ended_goes_on_to_the_end_and_is_judged_no_more(tmp_path: Path) -> None:
    folder = played(tmp_path)
    after = went_on(folder, Request(4, trials=two_stopped(folder)))
    thawed = after.lengthened[0].trials
    assert len(thawed) == 2
    for number in thawed:
        assert after.trials[number].state == "complete"
        assert after.trials[number].epochs == 4
        assert number in numbers(Results(SPEC, after).candidates), "as long as the others, and compared with them"


def test_until_all_have_ended_they_count_as_they_had(tmp_path: Path) -> None:
    folder = played(tmp_path)
    before = Results(SPEC, record_of(folder)).ranked
    extend_study.ask(folder, SPEC, Request(8, top=2))
    while_on = record_of(folder)
    assert [(one.trial.number, one.score, one.confirmed) for one in Results(SPEC, while_on).ranked] == [
        (one.trial.number, one.score, one.confirmed) for one in before
    ]
    assert Results(SPEC, while_on).compared_at == 4
    found = extended(Results(SPEC, while_on))
    assert found is not None
    assert "until all of them have ended results are those of 4 epochs" in sentence(found)


def test_one_that_fails_counts_as_it_had_ended_and_is_not_compared(tmp_path: Path) -> None:
    folder = played(tmp_path)
    first = numbers(Results(SPEC, record_of(folder)).candidates)[0]
    extend_study.ask(folder, SPEC, Request(8, top=2))

    def breaks(trial: TrialRecord, epoch: int) -> float | None:
        return None if trial.number == first and epoch == 6 else score(trial, epoch)

    Course(folder.ledger_file, SPEC, breaks).play()
    after = record_of(folder)
    assert after.trials[first].state == "failed"
    assert first not in numbers(Results(SPEC, after).candidates)
    (known,) = [one for one in Results(SPEC, after).ranked if one.trial.number == first]
    assert known.epochs == 4


def test_a_driver_that_died_is_followed_by_one_that_goes_on(tmp_path: Path) -> None:
    whole, cut = played(tmp_path / "whole"), played(tmp_path / "cut")
    expected = went_on(whole, Request(8, top=2))
    extend_study.ask(cut, SPEC, Request(8, top=2))
    course = Course(cut.ledger_file, SPEC)
    running = [[course.agenda.next(), 0] for _ in range(2)]
    for _ in range(3):
        for work in running:
            course._step(work)
    course.ledger.close()  # and no word of its end
    Course(cut.ledger_file, SPEC).play()
    found = record_of(cut)
    assert {number: (trial.state, trial.epochs, trial.until) for number, trial in found.trials.items()} == {
        number: (trial.state, trial.epochs, trial.until) for number, trial in expected.trials.items()
    }
    assert numbers(Results(SPEC, found).ranked) == numbers(Results(SPEC, expected).ranked)


def test_a_second_extension_goes_further(tmp_path: Path) -> None:
    folder = played(tmp_path)
    went_on(folder, Request(8, top=2))
    after = went_on(folder, Request(16, top=1))
    (best,) = Results(SPEC, after).candidates
    assert best.epochs == 16
    assert [version.epochs for version in best.trial.versions] == [16, 8, 4]
    assert {each.epochs for each in Results(SPEC, after).ranked} == {16, 8, 4}
    told = summary(Results(SPEC, after))
    assert told.extended == Extended(16, of=4, trials=[0, best.trial.number], left=0, compared=16)
    with pytest.raises(UserError, match="--epochs 8: trials of quickstart have run 16; at least that many"):
        extend_study.planned(folder, Results(SPEC, after), Request(8))


def test_replicates_go_on_with_their_configuration(tmp_path: Path) -> None:
    spec = spec_of("search.replicates=2", "search.trials=6", "search.confirm={top: 0}")
    folder = played(tmp_path, spec)
    after = went_on(folder, Request(8, top=1, trials=two_stopped(folder)[:1]), spec)
    chosen = extended(Results(spec, after))
    assert chosen is not None
    for number in chosen.trials:
        seeds = [after.trials[number], *after.repeats_of(number, "replicate")]
        assert [(trial.state, trial.epochs) for trial in seeds] == [("complete", 8)] * 2


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request(3), "--epochs 3: trials of quickstart have run 4; at least that many are needed"),
        (Request(4), r"--epochs 4: trial \d+ of quickstart has run 4. Give more"),
        (Request(8, top=50), r"--top 50: quickstart has \d complete configurations"),
        (Request(8, trials=(99,)), r"--trials 99: quickstart has \d+ trials, counted from 0"),
    ],
)
def test_what_cannot_go_on_is_refused_and_nothing_is_changed(
    course_folder: StudyFolder, request_: Request, message: str
) -> None:
    size = course_folder.ledger_file.stat().st_size
    with pytest.raises(UserError, match=message):
        extend_study.ask(course_folder, SPEC, request_)
    assert course_folder.ledger_file.stat().st_size == size


def test_a_trial_on_a_further_seed_is_named_by_its_configuration(course_folder: StudyFolder) -> None:
    record = record_of(course_folder)
    repeat = next(record.by_stage("confirm"))
    with pytest.raises(UserError, match=rf"stage confirm, as a repeat of trial {repeat.repeats}: give that one"):
        extend_study.planned(course_folder, Results(SPEC, record), Request(8, trials=(repeat.number,)))


@pytest.fixture(scope="module")
def course_folder(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    """A study that ended, and that nobody changes."""
    return played(tmp_path_factory.mktemp("home"))


def test_a_search_must_be_over_and_there_must_be_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is new, its search must end first: study resume quickstart"):
        extend_study.ask(Home(tmp_path).create(SPEC), SPEC, Request(8))
    with pytest.raises(UserError, match="a final training; one of more epochs: study train FILE --epochs 8"):
        extend_study.planned(StudyFolder(tmp_path), Results(final_study(SPEC, [0, 1]), StudyRecord()), Request(8))


@pytest.mark.parametrize(
    ("given", "key"),
    [("train.schedule=cosine", "train.schedule"), ("train.lr_milestones=[0.5]", "train.lr_milestones")],
)
def test_a_schedule_that_depends_on_the_total_is_refused(course_folder: StudyFolder, given: str, key: str) -> None:
    message = rf"trial 0 of 4 epochs is no part of one of 8: {key} ties it .* study run .* train.epochs=8 --name"
    with pytest.raises(UserError, match=message):
        extend_study.planned(course_folder, Results(spec_of(given), record_of(course_folder)), Request(8))


def test_what_runs_again_is_told_before(tmp_path: Path) -> None:
    folder = played(tmp_path)
    plan = extend_study.plan_of(folder, Request(8, top=1))
    assert plan.to_run == 8 * len(plan.trials)
    assert plan.again == 4 * len(plan.trials)
    folder.checkpoints.mkdir()
    folder.end_file(0).touch()
    kept = extend_study.plan_of(folder, Request(8, top=1))
    assert (kept.to_run, kept.again) == (plan.to_run - 4, plan.again - 4)
    best = plan.configurations[1]
    assert extend_study.lines(kept) == [
        f"trials 0, {best} to epoch 8, with 4 trials on further seeds: 44 epochs",
        "5 of 6 run again from their first epoch, as their state was not kept: 20 of these epochs "
        "(resources.keep_checkpoints)",
    ]
