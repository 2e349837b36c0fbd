"""Folds in a study's course: which trial is validated on which, told beside its seed and in no configuration."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from course import Course, outcome, prefixes
from folded import Judges, folded
from helpers import quickstart
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss, roc_auc_score

from study import ranking
from study.data.dataset import Dataset, Facts, FoldAssignment, Split
from study.home import events
from study.home.record import StudyRecord
from study.ranking import Results
from study.ranking.arms import Arm
from study.sweep.joined_folds import BOOTSTRAP_SPREAD_FACTOR, FoldJoiner, FoldPredictions
from study.training import metrics


def folds(record: StudyRecord, stage: str) -> list[int | None]:
    return [trial.fold for trial in record.trials_of_stages(stage)]


def test_each_configuration_of_the_search_has_a_fold_in_turn(tmp_path: Path) -> None:
    course = Course(tmp_path / "ledger.jsonl", folded()).play()
    record = StudyRecord.load(course.ledger.path)
    assert [trial.fold for trial in record.trials_of_stages("baseline", "search")] == [0, 1, 2, 0, 1, 2]
    assert {trial.seed for trial in record.trials_of_stages("baseline", "search")} == {0}
    assert all("fold" not in key for trial in record.trials.values() for key in trial.params)


@pytest.mark.parametrize("seeds", [1, 2])
def test_confirm_runs_each_configuration_on_every_fold_with_fresh_seeds(seeds: int, tmp_path: Path) -> None:
    spec = folded(f"search.confirm.seeds={seeds}")
    record = Course(tmp_path / "ledger.jsonl", spec).play().record
    assert Results(spec, record).is_confirmed
    for trial in Results(spec, record).confirmation.trials_to_confirm():
        found = [(one.fold, one.seed) for one in record.repeat_trials(trial.number)]
        assert found == [(run % 3, 1 + run) for run in range(3 * seeds)]
    assert len(Results(spec, record).confirmation.trials_to_confirm()) == 3


def test_each_runs_a_configuration_on_every_fold_and_its_value_is_their_mean(tmp_path: Path) -> None:
    spec = folded("search.folds=each", "search.confirm={top: 0}", "search.trials=3")
    course = Course(tmp_path / "ledger.jsonl", spec, lambda trial, epoch: 0.1 * (1 + trial.fold) + 0.01 * trial.number)
    record = course.play().record
    for one in Results(spec, record).ranked_all:
        assert [(run.fold, run.seed) for run in one.replicates] == [(0, 0), (1, 0), (2, 0)]
        assert one.search_value == pytest.approx(0.2 + 0.01 * (one.trial.number + 1))
    seeds = folded("search.folds=each", "search.replicates=2")
    assert seeds.runs_of_configuration() == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


@pytest.mark.parametrize("seeds", [1, 2])
def test_a_confirmed_value_is_the_metric_of_the_joined_samples(seeds: int, tmp_path: Path) -> None:
    spec = folded(f"search.confirm={{top: 2, seeds: {seeds}}}")
    judges = Judges(spec)
    course = Course(tmp_path / "ledger.jsonl", spec, joins=judges.joins, predict=judges).play()
    record, target = StudyRecord.load(course.ledger.path), judges.folds.non_test_samples.target
    confirmed = [one for one in Results(spec, record).ranked_all if one.joined_folds]
    assert len(confirmed) == 3
    for one in confirmed:
        repeats = []
        for start in range(0, 3 * seeds, 3):
            whole = np.empty_like(target)
            for run in one.confirm_trials[start : start + 3]:
                assert np.array_equal(FoldPredictions.from_text(run.fold_predictions).classes, judges(run))
                whole[judges.folds.fold_of_sample == run.fold] = judges(run)
            repeats.append(whole)
        found = ranking.statistics_by_metric(spec.objective, one.confirm_trials, one.joined_folds)
        assert found["val/accuracy"].mean == pytest.approx(np.mean([accuracy_score(target, each) for each in repeats]))
        balanced = np.mean([balanced_accuracy_score(target, each) for each in repeats])
        assert found["val/balanced_accuracy"].mean == pytest.approx(balanced)
        assert one.confirm_statistics == found[spec.metric]
        share = found["val/accuracy"].mean
        binomial = np.sqrt(share * (1 - share) / len(target) / seeds)
        assert found["val/accuracy"].split_error == pytest.approx(BOOTSTRAP_SPREAD_FACTOR * binomial, rel=0.5)
    values = [one.confirm_statistics.mean for one in confirmed]
    assert values == sorted(values, reverse=True), "by these, not by what each fold reported"


def test_the_interval_of_a_joined_loss_has_no_bound_above_and_that_of_a_share_has() -> None:
    values = {"val/log_loss": 2.0, "val/log_loss_standard_error": 0.5, "val/accuracy": 0.9}
    joined = events.FoldsJoined(0, (1, 2), {**values, "val/accuracy_standard_error": 0.1}, {})
    found = ranking.statistics_by_metric(quickstart().objective, [], joined)
    apart = np.exp(1.96 * 0.5 / 2)
    assert found["val/log_loss"].confidence_interval() == pytest.approx((2 / apart, 2 * apart), abs=1e-3)
    low, high = found["val/accuracy"].confidence_interval() or (0.0, 0.0)
    assert 0.5 < low < 0.9 < high < 1


def test_the_margin_takes_the_paired_error_on_the_joined_samples(tmp_path: Path) -> None:
    spec = folded("search.margin=1.0", "search.confirm={top: 2}")
    judges = Judges(spec)
    record = Course(tmp_path / "ledger.jsonl", spec, joins=judges.joins, predict=judges).play().record
    held = Results(spec, record).incumbent_standing
    assert held is not None
    lead = held.leads[0]
    ours, theirs = lead.candidate.joined_folds, held.incumbent.joined_folds
    assert lead.includes_split_error
    assert lead.standard_error == pytest.approx(
        np.std(np.subtract(*(one.draws[spec.metric] for one in (ours, theirs))), ddof=1)
    )


def test_predictions_are_kept_whole() -> None:
    for classes in (np.array([], np.int64), np.arange(1000)):
        losses = np.random.default_rng(0).random(len(classes), np.float32)
        found = FoldPredictions.from_text(FoldPredictions(classes, losses).to_text())
        assert np.array_equal(found.classes, classes)
        assert np.array_equal(found.log_losses, losses)
        assert FoldPredictions.from_text(FoldPredictions(classes).to_text()).log_losses is None


@pytest.mark.parametrize("classes", [2, 10])
def test_the_log_loss_of_joined_samples_is_that_of_their_probabilities(classes: int) -> None:
    random = np.random.default_rng(0)
    target, rows = random.integers(0, classes, 300), np.arange(300)
    probabilities = random.dirichlet(np.ones(classes), 300)
    own = probabilities[rows, target]
    verdict = FoldPredictions(probabilities.argmax(1), -np.log(own).astype(np.float32))
    scores = verdict.scores_from_log_losses(rows, torch.from_numpy(target), classes)
    found = metrics.compute_metrics(
        scores, torch.from_numpy(verdict.classes), torch.from_numpy(target), None, Facts(classes, None, (3,))
    )
    assert float(found["log_loss"]) == pytest.approx(log_loss(target, probabilities, labels=range(classes)), rel=1e-5)
    if classes == 2:
        assert float(found["auc"]) == pytest.approx(roc_auc_score(target, probabilities[:, 1]), abs=1e-6)


def test_a_ledger_without_folds_reads_as_before(tmp_path: Path) -> None:
    course = Course(tmp_path / "ledger.jsonl", quickstart("search.trials=3")).play()
    assert b"fold" not in course.ledger.path.read_bytes()
    assert {trial.fold for trial in StudyRecord.load(course.ledger.path).trials.values()} == {None}


@pytest.mark.slow
@pytest.mark.parametrize("how", ["one", "each"])
def test_resumed_at_any_line_folds_go_on_as_if_never_cut(how: str, tmp_path: Path) -> None:
    spec = folded(f"search.folds={how}")
    judges = Judges(spec)
    whole = Course(tmp_path / "ledger.jsonl", spec, joins=judges.joins, predict=judges).play()
    expected = [
        (*one, trial.fold) for one, trial in zip(outcome(whole.record), whole.record.trials.values(), strict=True)
    ]
    for count, kept in enumerate(prefixes(whole)[::5]):
        (path := tmp_path / f"{count}.jsonl").write_bytes(kept)
        record = Course(path, spec, joins=judges.joins, predict=judges).play().record
        assert record.joined_folds == whole.record.joined_folds
        found = [(*one, trial.fold) for one, trial in zip(outcome(record), record.trials.values(), strict=True)]
        assert found == expected, f"cut after line {5 * count + 1}"


def test_samples_alone_in_their_cell_make_the_error_of_the_joined_value() -> None:
    """45 of 900 samples conflict with the bias, each of another pair of class and bias: 27 are right."""
    target = np.arange(900) % 10
    bias = target.copy()
    bias[:45] = (target[:45] + 1 + np.arange(45) // 10) % 10
    learn = Split(np.zeros((900, 1, 1, 1), np.float32), target, bias)
    dataset = Dataset(Facts(10, 10, (1, 1, 1), aligned=tuple(range(10))), {"train": learn, "val": learn})
    joiner = FoldJoiner(folded(), replace(dataset, folds=FoldAssignment(3, np.arange(900) % 3, learn)))
    wrong = (np.arange(900) < 45) & (np.arange(900) % 5 < 2)
    values, _ = joiner.metrics_and_draws([FoldPredictions(np.where(wrong, (target + 5) % 10, target))])
    assert values["val/conflicting_accuracy"] == 27 / 45
    binomial = (0.6 * 0.4 / 45) ** 0.5
    assert values["val/conflicting_accuracy_standard_error"] == pytest.approx(binomial, rel=0.2)
    assert values["val/aligned_accuracy_standard_error"] == 0.0


def test_the_smallest_of_many_classes_has_no_interval_of_its_own_and_a_difference_of_two_has() -> None:
    target = np.arange(900) % 10
    learn = Split(np.zeros((900, 1, 1, 1), np.float32), target, target)
    dataset = Dataset(Facts(10, 10, (1, 1, 1), aligned=tuple(range(10))), {"train": learn, "val": learn})
    joiner, arms = FoldJoiner(folded(), replace(dataset, folds=FoldAssignment(3, np.arange(900) % 3, learn))), []
    for number, every in enumerate((7, 5)):
        wrong = np.arange(900) % every == 0
        found = joiner.metrics_and_draws([FoldPredictions(np.where(wrong, (target + 5) % 10, target))])
        arms.append(Arm(f"trial {number}", number, (), folded(), joined_folds=events.FoldsJoined(0, (1,), *found)))
    name = "val/worst_class_accuracy"
    value, gain = arms[0].metric_statistics(name), arms[0].difference_to(arms[1], name)
    assert value is not None
    assert value.confidence_interval() is None
    assert gain is not None
    assert gain.interval is not None
    accuracy = arms[0].metric_statistics("val/accuracy")
    assert accuracy is not None
    assert accuracy.confidence_interval() is not None


def test_a_cell_without_samples_has_no_error_and_is_not_warned_of() -> None:
    target, bias = np.arange(90) % 2, np.arange(90) % 2 * (np.arange(90) % 3 % 2)
    learn = Split(np.zeros((90, 1, 1, 1), np.float32), target, bias)
    dataset = Dataset(Facts(2, 2, (1, 1, 1), aligned=(0, 1)), {"train": learn, "val": learn})
    joiner = FoldJoiner(folded(), replace(dataset, folds=FoldAssignment(3, np.arange(90) % 3, learn)))
    values, _ = joiner.metrics_and_draws([FoldPredictions(target)])
    told = [values[f"val/group_{y}_{s}_accuracy_standard_error"] for y, s in ((0, 0), (0, 1), (1, 0), (1, 1))]
    assert told == [0.0, None, 0.0, 0.0]
