"""Whose state behind its last epoch is kept, and where an extended trial finds it."""

from pathlib import Path

import pytest
from course import Course, spec_of

from study.commands import extend_study
from study.home.folder import Home, StudyFolder
from study.home.record import StudyRecord
from study.ranking import Results
from study.spec import StudySpec
from study.sweep.kept_states import KeptStates, tidy


class Writing(Course):
    """Workers that write what they are told to."""

    def __init__(self, folder: StudyFolder, spec: StudySpec) -> None:
        super().__init__(folder.ledger_file, spec)
        folder.checkpoints.mkdir(exist_ok=True)
        self.folder, self.states = folder, KeptStates(folder, spec, self.record)

    def _step(self, work: list) -> bool:
        (job, epoch) = work
        if job.kind == "train" and epoch == 1:
            self.folder.checkpoint_file(job.trial.number).touch()
        if job.kind == "train" and epoch == self.spec.epochs and (file := self.states.file(job.trial)):
            file.touch()
        goes_on = super()._step(work)
        if not goes_on and job.kind == "train":
            self.states.ended(job.trial)
            self.states.ended(job.trial)  # as when more is heard of its process
        return goes_on


def played(path: Path, *given: str) -> tuple[StudyFolder, StudySpec, StudyRecord]:
    spec = spec_of(*given)
    folder = Home(path).create(spec)
    Writing(folder, spec).play()
    return folder, spec, StudyRecord.load(folder.ledger_file)


def files(folder: StudyFolder) -> set[str]:
    return {path.name for path in folder.checkpoints.iterdir()}


@pytest.mark.parametrize("replicates", [1, 2])
@pytest.mark.parametrize("most", [1, 3])
def test_the_best_so_many_and_the_baseline_are_kept_on_all_their_seeds(
    tmp_path: Path, most: int, replicates: int
) -> None:
    folder, spec, record = played(
        tmp_path, f"resources.keep_checkpoints={most}", f"search.replicates={replicates}", "search.trials=8"
    )
    chosen = {0, *(one.trial.number for one in Results(spec, record).searched[:most])}
    of = [trial.number for trial in record.trials.values() if {trial.number, trial.repeats} & chosen]
    assert files(folder) == {folder.end_file(number).name for number in of}
    tidy(folder, spec, record)
    assert files(folder) == {folder.end_file(number).name for number in of}, "as it was kept on the way"


def test_nothing_is_kept_where_nothing_is_wanted(tmp_path: Path) -> None:
    folder, spec, record = played(tmp_path, "resources.keep_checkpoints=0")
    assert files(folder) == set()
    folder.end_file(0).touch()
    tidy(folder, spec, record)
    assert files(folder) == set()


def test_all_are_kept_also_those_that_early_stopping_ended(tmp_path: Path) -> None:
    folder, spec, record = played(tmp_path, "resources.keep_checkpoints=all")
    complete = {folder.end_file(trial.number).name for trial in record.trials.values() if trial.state == "complete"}
    pruned = {folder.checkpoint_file(trial.number).name for trial in record.trials.values() if trial.state == "pruned"}
    assert complete
    assert pruned
    assert files(folder) == complete | pruned
    tidy(folder, spec, record)
    assert files(folder) == complete | pruned


def test_an_extended_trial_goes_on_from_there(tmp_path: Path) -> None:
    folder, spec, _ = played(tmp_path, "resources.keep_checkpoints=2")
    plan = extend_study.ask(folder, spec, extend_study.ExtensionRequest(8, top=2))
    assert plan.again == 0
    tidy(folder, spec, StudyRecord.load(folder.ledger_file))
    assert files(folder) == {folder.checkpoint_file(number).name for number in (one.trial for one in plan.trials)}
