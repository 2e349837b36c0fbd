"""A study out of MLflow again, and nothing else."""

import pytest
from runs import Runs
from tracked_study import SPEC, STATUS, make_study

from study.errors import UserError
from study.home.folder import Home, StudyFolder
from study.tracking import MlflowTracker, remove_study_runs


def track(home: Home, folder: StudyFolder) -> None:
    tracker = MlflowTracker(home, folder, folder.load_spec())
    tracker.start_following()
    assert (tracker.finish_writing(), tracker.log_artifacts({folder.spec_file: "report"})) == (None, None)


@pytest.mark.slow
def test_a_study_is_removed_and_its_name_is_free(home: Home, folder: StudyFolder) -> None:
    track(home, folder)
    assert list(home.artifacts_folder.rglob("study.yaml"))
    assert remove_study_runs(home, folder) == len(STATUS)
    assert not list(home.artifacts_folder.iterdir())
    assert remove_study_runs(home, folder) == 0
    folder.path.rename(home.path / ".gone")
    track(home, make_study(home))
    assert len(Runs(home.tracking_uri, SPEC.name).all) == len(STATUS)


def test_what_else_is_in_its_experiment_stays(home: Home, folder: StudyFolder) -> None:
    track(home, folder)
    runs = Runs(home.tracking_uri, SPEC.name)
    own = runs.client.create_run(runs.all[0].info.experiment_id, run_name="by hand")
    runs.client.log_text(own.info.run_id, "mine", "notes.txt")
    assert remove_study_runs(home, folder) == len(STATUS)
    assert list(Runs(home.tracking_uri, SPEC.name).by_name) == ["by hand"]
    assert [path.name for path in home.artifacts_folder.rglob("*.*")] == ["notes.txt"]


def test_an_mlflow_that_does_not_answer_is_told_of(
    home: Home, folder: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    with pytest.raises(UserError, match=r"quickstart: its runs are still in MLflow: .*127\.0\.0\.1"):
        remove_study_runs(home, folder)
