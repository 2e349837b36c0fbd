"""What an MLflow has of a study."""

import json
from collections.abc import Mapping
from typing import Any

from mlflow import MlflowClient

from study.home.record import StudyRecord
from study.tracking.runs_from_events import BEST_RUN_PREFIX


def saved_views(tags: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """State of each view by its name, in the form in which MLflow's page keeps one that a user saves: a tag."""
    views = [json.loads(view) for tag, view in tags.items() if tag.startswith("mlflow.sharedViewState.")]
    assert all(type(view["createdAt"]) is int for view in views)
    return {view["name"]: json.loads(view["state"]) for view in views}


class Runs:
    """Runs of a study's experiment.

    Args:
        within: the study in whose experiment the runs of this one, a final training, are.

    Attributes:
        all: every run that is not deleted.
        by_name: the same, of two with one name the later; without the sign of the best.
        starred: names of those with that sign, without it.
    """

    def __init__(self, uri: str, study: str, within: str | None = None) -> None:
        self.client = MlflowClient(uri)
        experiment = self.client.get_experiment_by_name(within or study)
        assert experiment is not None
        own = f"tags.`study.name` = '{study}'" if within else ""
        self.all = self.client.search_runs([experiment.experiment_id], own, max_results=1000)
        names = [str(run.info.run_name) for run in self.all]
        assert names == [run.data.tags["mlflow.runName"] for run in self.all]
        self.by_name = {name.removeprefix(BEST_RUN_PREFIX): run for name, run in zip(names, self.all, strict=True)}
        self.starred = {name.removeprefix(BEST_RUN_PREFIX) for name in names if name.startswith(BEST_RUN_PREFIX)}

    def history(self, name: str, metric: str) -> list[tuple[int, float]]:
        """Step and value of every point, in the order in which MLflow got them."""
        found = self.client.get_metric_history(self.by_name[name].info.run_id, metric)
        return [(entry.step, entry.value) for entry in found]

    def artifacts(self, name: str, folder: str | None = None) -> set[str]:
        """Paths of a run's artifacts in one folder."""
        return {entry.path for entry in self.client.list_artifacts(self.by_name[name].info.run_id, folder)}

    def agree_with(self, record: StudyRecord, metric: str = "val/accuracy") -> None:
        """Each trial has one run, ended as it ended, with the metric of each epoch once and in order; and the study."""
        trials = {int(run.data.tags["study.trial"]): run for run in self.all if "study.trial" in run.data.tags}
        assert sorted(trials) == sorted(record.trials)
        (study,) = (run for run in self.all if run.data.tags["study.kind"] == "study")
        of_results = [run.data.tags for run in self.all if run.data.tags["study.kind"] == "result"]
        results = [(tags["study.arm"], tags.get("study.result_trial")) for tags in of_results]
        shown = [tags["study.arm"] for tags in of_results if "study.result" in tags and tags["study.arm"] != "front"]
        assert len(shown) == len(set(shown)), "one best"
        assert len(self.all) == 1 + len(trials) + len(set(results))
        assert study.info.status == "FINISHED"
        for number, trial in record.trials.items():
            run = trials[number]
            assert run.info.status == {"complete": "FINISHED", "pruned": "KILLED"}[trial.state]
            assert run.data.tags["mlflow.parentRunId"] == study.info.run_id
            history = self.client.get_metric_history(run.info.run_id, metric)
            assert [(entry.step, entry.value) for entry in history] == [
                (report["epoch"], report[metric]) for report in trial.reports
            ]
