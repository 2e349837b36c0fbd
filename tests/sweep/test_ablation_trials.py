"""The steps from the baseline to the best run on seeds of their own, once each; the study's choice stays the same."""

import math
from collections import Counter
from pathlib import Path

import pytest
from course import Course, outcome, score, spec_of

from study.commands import ablate_study as commands
from study.commands import extend_study, status
from study.commands.ablate_study import AblationRequest
from study.commands.progress import StudyProgress
from study.errors import UserError
from study.home.folder import Home, StudyFolder
from study.home.ledger import read_entries
from study.home.record import StudyRecord, TrialRecord
from study.ranking import Results
from study.ranking.ablation_steps import (
    Ablation,
    ablation_trials_by_configuration,
    is_ablation_measured,
    requested_ablation,
)
from study.spec import StudySpec

STEADY = "search.early_stopping={}"
APART = "search.baseline={method.alpha: 1.0, method.lambda: 0.0, method.epsilon: 0.3}"
"""A baseline whose values the search does not have: it and the best differ in all three knobs."""

ALONE, AMONG = "search.confirm={top: 1, seeds: 2}", "search.confirm={top: 2, seeds: 2}"


def played(home: Path, *assignments: str) -> tuple[StudyFolder, StudySpec]:
    spec = spec_of(STEADY, APART, *assignments)
    folder = Home(home).create_study(spec)
    Course(folder.ledger_file, spec).play()
    return folder, spec


def ablated(
    folder: StudyFolder, spec: StudySpec, request: AblationRequest | None = None, slots: int = 1
) -> StudyRecord:
    assert commands.request_ablation(folder, spec, request or AblationRequest())
    assert StudyRecord.load(folder.ledger_file).state == "interrupted", "a crash here leaves something to resume"
    return Course(folder.ledger_file, spec).play(slots).record


def asked_for(record: StudyRecord) -> Ablation:
    ablation = requested_ablation(record)
    assert ablation is not None
    return ablation


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> tuple[StudyFolder, StudySpec, bytes]:
    """A study at its end, the best of two that were confirmed."""
    folder, spec = played(tmp_path_factory.mktemp("home"), AMONG)
    return folder, spec, folder.ledger_file.read_bytes()


@pytest.fixture
def study(before: tuple[StudyFolder, StudySpec, bytes], tmp_path: Path) -> tuple[StudyFolder, StudySpec]:
    """The same, in a folder of its own."""
    _, spec, ledger = before
    folder = Home(tmp_path).create_study(spec)
    folder.ledger_file.write_bytes(ledger)
    return folder, spec


def test_each_configuration_runs_once_on_seeds_that_did_not_choose_and_is_tested(
    study: tuple[StudyFolder, StudySpec],
) -> None:
    folder, spec = study
    record = ablated(folder, spec)
    ablation = asked_for(record)
    assert list(ablation.seeds) == [3, 4], "1 and 2 chose the best of two"
    assert len(ablation.configurations) == 8
    trials = list(record.trials_of_stages("ablation"))
    params = [str(sorted(trial.params.items())) for trial in trials]
    assert set(Counter(zip(params, (trial.seed for trial in trials), strict=True)).values()) == {1}
    assert len(trials) == 16
    assert all("test/accuracy" in trial.test_metrics for trial in trials)
    ends = {trial.repeated_trial for trial in trials if trial.repeated_trial is not None}
    assert ends == {ablation.baseline_trial.number, ablation.best_configuration_trial.number}
    assert is_ablation_measured(Results(spec, record))


def test_a_step_alone_moves_its_knob_and_no_other(study: tuple[StudyFolder, StudySpec]) -> None:
    folder, spec = study
    record = ablated(folder, spec)
    ablation = asked_for(record)
    start, end = ablation.baseline_trial.params, ablation.best_configuration_trial.params
    for moved, by_seed in ablation_trials_by_configuration(Results(spec, record), ablation).items():
        keys = {key for place in moved for key in ablation.steps[place]}
        for trial in by_seed.values():
            assert trial.params == {key: (end if key in keys else start)[key] for key in start}


def test_what_the_study_chose_stays(study: tuple[StudyFolder, StudySpec]) -> None:
    folder, spec = study
    before = StudyRecord.load(folder.ledger_file)
    record = ablated(folder, spec)
    assert outcome(record)[: len(before.trials)] == outcome(before)
    assert [(one.trial.number, one.confirm_statistics) for one in Results(spec, record).ranked_all] == [
        (one.trial.number, one.confirm_statistics) for one in Results(spec, before).ranked_all
    ]


@pytest.mark.slow
def test_trials_of_the_only_confirmed_configuration_and_the_baseline_count(tmp_path: Path) -> None:
    folder, spec = played(tmp_path, ALONE)
    record = ablated(folder, spec)
    ablation = asked_for(record)
    assert list(ablation.seeds) == [1, 2]
    assert len(list(record.trials_of_stages("ablation"))) == (8 - 2) * 2
    assert all(trial.repeated_trial is None for trial in record.trials_of_stages("ablation"))
    assert {
        trial.stage for trial in ablation_trials_by_configuration(Results(spec, record), ablation)[frozenset()].values()
    } == {"confirm"}
    more = ablated(folder, spec, AblationRequest(seeds=4))
    assert Counter(trial.seed for trial in more.trials_of_stages("ablation")) == {1: 6, 2: 6, 3: 8, 4: 8}
    assert asked_for(more).steps == ablation.steps


@pytest.mark.slow
def test_cut_at_some_lines_it_ends_as_if_never_cut(study: tuple[StudyFolder, StudySpec], tmp_path: Path) -> None:
    folder, spec = study
    first = len(read_entries(folder.ledger_file))
    whole = ablated(folder, spec)
    lines = folder.ledger_file.read_bytes().splitlines(keepends=True)
    for count in range(first + 1, len(lines), 17):
        path = tmp_path / f"{count}.jsonl"
        path.write_bytes(b"".join(lines[:count]))
        assert outcome(Course(path, spec).play().record) == outcome(whole), f"cut after line {count}"


def test_several_at_once_run_the_same_trials(study: tuple[StudyFolder, StudySpec]) -> None:
    folder, spec = study
    trials = list(ablated(folder, spec, slots=4).trials_of_stages("ablation"))
    assert len({(str(sorted(trial.params.items())), trial.seed) for trial in trials}) == len(trials) == 16


def test_asked_again_nothing_runs(study: tuple[StudyFolder, StudySpec]) -> None:
    folder, spec = study
    ablated(folder, spec)
    size = folder.ledger_file.stat().st_size
    assert not commands.request_ablation(folder, spec, AblationRequest())
    assert not commands.request_ablation(folder, spec, AblationRequest(seeds=2))
    assert folder.ledger_file.stat().st_size == size


def test_another_order_takes_what_ran(study: tuple[StudyFolder, StudySpec]) -> None:
    """With three knobs all eight combinations are there."""
    folder, spec = study
    steps = asked_for(ablated(folder, spec)).steps
    turned = tuple(key for (key,) in reversed(steps))
    assert commands.request_ablation(folder, spec, AblationRequest(order=turned))
    record = Course(folder.ledger_file, spec).play().record
    assert asked_for(record).steps == tuple((key,) for key in turned)
    assert len(list(record.trials_of_stages("ablation"))) == 16


def test_knobs_that_are_not_measured_move_together_at_last(study: tuple[StudyFolder, StudySpec]) -> None:
    folder, spec = study
    record = ablated(folder, spec, AblationRequest(knobs=("method.lambda",)))
    ablation = asked_for(record)
    assert ablation.steps[0] == ("method.lambda",)
    assert set(ablation.steps[1]) == {"method.alpha", "method.epsilon"}
    assert len(list(record.trials_of_stages("ablation"))) == 4 * 2


def test_a_longer_search_keeps_the_ablation_of_the_best_that_was(study: tuple[StudyFolder, StudySpec]) -> None:
    folder, spec = study
    first = ablated(folder, spec)
    extend_study.add_search_trials(folder, spec, "+2")
    assert asked_for(Course(folder.ledger_file, spec).play().record) == asked_for(first)


def test_a_longer_search_begins_before_the_rest_of_an_ablation(study: tuple[StudyFolder, StudySpec]) -> None:
    folder, spec = study
    commands.request_ablation(folder, spec, AblationRequest())
    extend_study.add_search_trials(folder, spec, "+2")
    stages = [trial.stage for trial in Course(folder.ledger_file, spec).play().record.trials.values()]
    assert Counter(stages)["ablation"] == 16
    assert "search" not in stages[stages.index("ablation") :]


def test_a_configuration_that_fails_does_not_run_again(study: tuple[StudyFolder, StudySpec]) -> None:
    folder, spec = study

    def alpha_fails(trial: TrialRecord, epoch: int) -> float | None:
        alone = trial.stage == "ablation" and trial.repeated_trial is None and trial.params["method.lambda"] == 0.0
        return math.nan if alone else score(trial, epoch)

    commands.request_ablation(folder, spec, AblationRequest())
    record = Course(folder.ledger_file, spec, alpha_fails).play().record
    failed = [trial for trial in record.trials_of_stages("ablation") if trial.state == "failed"]
    assert len(failed) == 3 * 2
    assert is_ablation_measured(Results(spec, record))
    assert not commands.request_ablation(folder, spec, AblationRequest())


def test_progress_counts_the_trials_to_come(study: tuple[StudyFolder, StudySpec]) -> None:
    folder, spec = study
    before = StudyRecord.load(folder.ledger_file)
    assert StudyProgress(spec, before).trial_counts()["waiting"] == 0
    commands.request_ablation(folder, spec, AblationRequest())
    record = StudyRecord.load(folder.ledger_file)
    assert StudyProgress(spec, record).trial_counts()["waiting"] == 16
    assert (
        StudyProgress(spec, record).expected_epochs()
        == StudyProgress(spec, before).expected_epochs() + 16 * spec.epochs
    )


def test_the_status_says_how_far_it_is(study: tuple[StudyFolder, StudySpec]) -> None:
    folder, spec = study
    assert status.study_status(folder).ablation is None
    commands.request_ablation(folder, spec, AblationRequest())
    way = status.study_status(folder).ablation
    assert way is not None
    assert (way.complete, way.is_measured) == (0, False)
    Course(folder.ledger_file, spec).play()
    document = status.study_status(folder)
    assert document.ablation is not None
    assert document.ablation.is_measured
    best = document.ablation.best
    line = f"ablation  from the baseline to trial {best} in 3 steps on 2 seeds: 16 of 16 trials complete"
    assert line in status.study_status_lines(document)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (
            AblationRequest(knobs=("method.lamda",)),
            "--knobs method.lamda: baseline and best of .* do not differ in it. Did you",
        ),
        (
            AblationRequest(order=("train.epochs",)),
            "--order train.epochs: .* They differ in method.alpha, method.lambda",
        ),
    ],
)
def test_a_key_that_is_no_knob_is_refused(
    study: tuple[StudyFolder, StudySpec], request_: AblationRequest, message: str
) -> None:
    folder, spec = study
    with pytest.raises(UserError, match=message):
        commands.request_ablation(folder, spec, request_)
    assert StudyRecord.load(folder.ledger_file).ablation_request is None


@pytest.mark.parametrize(
    ("assignments", "value", "message"),
    [
        (("search.baseline=null",), None, "it has no search.baseline, there is nothing to begin with"),
        ((), "baseline fails", "its baseline is not complete"),
        ((), "baseline wins", "found nothing better than the baseline"),
    ],
)
def test_a_study_without_a_way_is_refused(
    tmp_path: Path, assignments: tuple[str, ...], value: str | None, message: str
) -> None:
    def valued(trial: TrialRecord, epoch: int) -> float:
        is_baseline = trial.params["method.lambda"] == 0.0
        if is_baseline and value == "baseline fails":
            return math.nan
        return 1.0 if is_baseline else 0.5

    spec = spec_of(STEADY, "search.confirm={top: 0}", *assignments)
    folder = Home(tmp_path).create_study(spec)
    Course(folder.ledger_file, spec, valued).play()
    with pytest.raises(UserError, match=message):
        commands.request_ablation(folder, spec, AblationRequest())


def test_a_study_that_is_not_over_is_refused(tmp_path: Path) -> None:
    spec = spec_of(STEADY)
    folder = Home(tmp_path).create_study(spec)
    with pytest.raises(UserError, match="is new, it must end first: study resume"):
        commands.request_ablation(folder, spec, AblationRequest())


def test_with_one_knob_the_step_is_the_whole_gain(tmp_path: Path) -> None:
    space = "search.space={method.lambda: {low: 0.1, high: 2.0}}"
    folder, spec = played(tmp_path, space, "search.baseline={method.lambda: 0.0}", ALONE)
    document = commands.summarise_ablation_plan(folder, AblationRequest())
    assert "they differ in one step, which is the whole gain" in commands.ablation_plan_lines(document)
    assert (document.configurations, document.to_run) == (2, 0)
    assert commands.request_ablation(folder, spec, AblationRequest()), (
        "the event says that it is wanted, though all of it ran"
    )
    assert not list(Course(folder.ledger_file, spec).play().record.trials_of_stages("ablation"))
