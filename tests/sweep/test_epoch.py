"""What early stopping and Optuna hear of a study that takes each trial at its best epoch."""

import random
from itertools import pairwise
from pathlib import Path

import pytest
from course import DIED, Course, score, spec_of
from optuna.trial import TrialState

from study.home.ledger import read_entries
from study.home.record import StudyRecord, TrialRecord
from study.ranking import Results
from study.ranking.chosen_epoch import iter_scores_if_ended
from study.sweep.agenda import TrialJob
from study.sweep.early_stopping import EarlyStopping
from study.sweep.failures import TrialFailure
from study.sweep.search_stage import SearchStage

BEST = ("search.epoch=best", "search.epoch_window=2", "train.epochs=6")


def peaked(trial: TrialRecord, epoch: int) -> float:
    """Best in the third epoch, worst in the last."""
    found = score(trial, 4)
    assert found is not None
    return found - 0.1 * abs(epoch - 3)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return Course(tmp_path_factory.mktemp("epoch") / "ledger.jsonl", spec_of(*BEST), peaked).play()


def test_optuna_hears_the_best_so_far_and_at_the_end_the_best(played: Course) -> None:
    """Of complete and pruned trials alike; never the value of the last epoch."""
    spec, record = played.spec, played.record
    heard = list(SearchStage(spec, record, EarlyStopping(spec)).suggestions.history.trials.values())
    assert {trial.state for trial in heard} == {TrialState.COMPLETE, TrialState.PRUNED}
    for told in heard:
        trial = record.trials[told.number]
        values = [report["val/accuracy"] for report in trial.reports]
        smoothed = [values[0], *((a + b) / 2 for a, b in pairwise(values))]
        so_far = [values[0], *(max(smoothed[1:end]) for end in range(2, len(values) + 1))]
        assert list(told.intermediate_values.values()) == pytest.approx(so_far)
        if told.state == TrialState.COMPLETE:
            assert told.values == [pytest.approx(max(smoothed[1:]))]


def test_asha_compares_the_best_so_far(tmp_path: Path) -> None:
    """At the second rung the first trial shows what it reached before, and the second one is not better."""
    assignments = ("search.epoch=best", "search.epoch_window=1", "search.baseline={}", "search.trials=3")
    rungs = "search.early_stopping={name: asha, grace: 2, reduction: 2}"
    courses = {0: [0.5] * 4, 1: [0.9, 0.1, 0.1, 0.1], 2: [0.8, 0.8, 0.8, 0.8]}
    for best, states in ((assignments, ["complete", "pruned"]), (assignments[2:], ["complete", "complete"])):
        spec = spec_of(*best, rungs, "search.confirm={top: 0}")
        path = tmp_path / f"{len(best)}.jsonl"
        record = Course(path, spec, lambda trial, epoch: courses[trial.number][epoch - 1]).play().record
        assert [trial.state for trial in record.trials_of_stages("search")] == states


def test_a_search_made_anew_prunes_as_the_one_before(tmp_path: Path) -> None:
    """From every beginning of a ledger that was written by three workers."""
    whole = Course(tmp_path / "whole.jsonl", spec_of(*BEST), peaked).play(3, random.Random(0).randrange)
    events = list(read_entries(whole.ledger.path))
    looked = 0
    for cut in range(8, len(events), 5):
        record = StudyRecord.from_entries(events[:cut])
        stage = SearchStage(whole.spec, record, EarlyStopping(whole.spec))
        for trial in record.trials_of_stages("search"):
            if trial.reports and trial.state == "running" and trial.n_epochs < 6:
                ended = whole.record.trials[trial.number]
                is_last = ended.state == "pruned" and ended.n_epochs == trial.n_epochs
                assert stage.to_prune[trial.number] == is_last
                looked += 1
    assert looked > 10


def test_trials_that_were_cut_off_run_again_to_the_same_end(tmp_path: Path) -> None:
    spec, died = spec_of(*BEST), set()
    whole = Course(tmp_path / "whole.jsonl", spec, peaked).play()

    def dying(trial: TrialRecord, epoch: int) -> float | TrialFailure:
        if epoch == 5 and trial.number not in died:
            died.add(trial.number)
            return DIED
        return peaked(trial, epoch)

    again = Course(tmp_path / "again.jsonl", spec, dying, checkpoints=True).play()
    assert died
    for trial in whole.record.trials.values():
        assert again.record.trials[trial.number].reports == trial.reports
    assert [trial.state for trial in again.record.trials.values()] == [t.state for t in whole.record.trials.values()]


def test_which_jobs_end_with_the_chosen_weights(played: Course) -> None:
    """Those whose weights are kept, and all where `train.final` measures them; none where the last epoch counts."""
    trials = {trial.stage: trial for trial in played.record.trials.values()}
    plain, last = played.spec, spec_of()
    final = spec_of(*BEST, "train.final=[knn]")
    for spec, stages in ((plain, {"confirm"}), (final, {"baseline", "search", "confirm"}), (last, set())):
        needing = {stage for stage, trial in trials.items() if TrialJob("train", trial).needs_chosen_weights(spec)}
        assert needing == stages


def test_a_trial_is_complete_whose_best_epoch_has_a_number(tmp_path: Path) -> None:
    spec = spec_of(*BEST, "search.early_stopping={}")
    course = Course(tmp_path / "ledger.jsonl", spec, lambda trial, epoch: 0.5 if epoch < 6 else float("nan")).play()
    assert {trial.state for trial in course.record.trials.values()} == {"complete"}
    candidate = Results(spec, course.record).best
    assert candidate is not None
    assert candidate.search_value == 0.5
    assert len(list(iter_scores_if_ended(spec.objective, candidate.trial.reports))) == 6
