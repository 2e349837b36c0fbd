"""Runs that a training function logged itself: read from its trial's folder, brought once, and brought again."""

import math
from pathlib import Path

import pytest
from helpers import quickstart
from mlflow import MlflowClient

from study.tracking.mlflow_runs import FUNCTION_RUN_TAG, MlflowRunStore, RunUpdate
from study.tracking.runs_of_functions import read_runs_logged_by_function

END = 2_000_000_000_000


@pytest.fixture
def logged(tmp_path: Path) -> tuple[Path, str]:
    """A folder with a run that ended well, one within it that did not, and one of another experiment; the first id."""
    folder = tmp_path / "own runs" / "trial-00003"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        client = MlflowClient(folder.as_uri())
        outer = client.create_run("0", tags={"mine": "a\x1bb", "study.id": "no"}, run_name="outer").info.run_id
        inner = client.create_run("0", tags={"mlflow.parentRunId": outer}, run_name="inner").info.run_id
        other = client.create_run(client.create_experiment("other"), run_name="other").info.run_id
        client.log_param(outer, "rate", "x" * 5500)
        for step, value in enumerate((0.5, math.nan, math.inf)):
            client.log_metric(outer, "loss/all", value, step=step)
        client.log_text(outer, "text", "deep/note.txt")
        client.log_metric(inner, "loss", 1.0)
        client.set_terminated(outer)
        client.set_terminated(other, "FAILED")
    return folder, outer


def by_name(found: list[RunUpdate]) -> dict[str, RunUpdate]:
    return {run.name: run for run in found}


def test_all_of_a_run_is_read_and_hangs_under_its_trials(logged: tuple[Path, str]) -> None:
    folder, outer = logged
    runs = by_name(read_runs_logged_by_function(folder, 3, "KILLED", END))
    assert {name: run.parent_key for name, run in runs.items()} == {"outer": "3", "inner": f"3/{outer}", "other": "3"}
    assert [runs[name].status for name in ("outer", "inner", "other")] == ["FINISHED", "KILLED", "KILLED"]
    assert runs["inner"].end_ms == END
    whole = runs["outer"]
    assert whole.tags == {"mine": "a\\x1bb", FUNCTION_RUN_TAG: whole.run_key}
    assert len(whole.params["rate"]) == 5000
    assert [(point.step, point.value) for point in whole.metric_values if point.value == point.value] == [
        (0, 0.5),
        (2, math.inf),
    ]
    assert [(path.name, place) for path, place in whole.files] == [("artifacts", None)]
    assert by_name(read_runs_logged_by_function(folder, 3, "FINISHED", END))["other"].status == "FINISHED"


def test_without_a_folder_there_are_none(tmp_path: Path) -> None:
    assert read_runs_logged_by_function(tmp_path / "no", 3, "FINISHED", END) == []


def test_a_store_makes_them_once_each_after_the_run_that_it_is_under(logged: tuple[Path, str], tmp_path: Path) -> None:
    folder, outer = logged
    client = MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    store, runs = MlflowRunStore(client, at_once=1), dict[str, str]()
    experiment = store.find_or_make_experiment(quickstart("name=mine"), None)
    trial = RunUpdate("3", None, "trial 3", start_ms=1, tags={"study.id": "s", "study.trial": "3"})
    for _ in range(2):
        found = read_runs_logged_by_function(folder, 3, "KILLED", END)
        for run in found:
            run.tags["study.id"] = "s"
        store.apply_run_updates(experiment, [*reversed(found), trial], runs)
        assert dict(store.find_runs(experiment, "s")) == runs
    assert len(runs) == 4
    assert client.get_run(runs[f"3/{outer}"]).data.tags["mlflow.parentRunId"] == runs["3"]
    history = client.get_metric_history(runs[f"3/{outer}"], "loss/all")
    assert [point.step for point in history if point.step != 1] == [0, 2]
