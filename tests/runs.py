"""What an MLflow has of a study."""

from mlflow import MlflowClient


class Runs:
    """Runs of a study's experiment.

    Attributes:
        all: every run that is not deleted.
        by_name: the same, of two with one name the later.
    """

    def __init__(self, uri: str, study: str) -> None:
        self._client = MlflowClient(uri)
        experiment = self._client.get_experiment_by_name(study)
        assert experiment is not None
        self.all = self._client.search_runs([experiment.experiment_id], max_results=1000)
        self.by_name = {run.info.run_name: run for run in self.all}

    def history(self, name: str, metric: str) -> list[tuple[int, float]]:
        """Step and value of every point, in the order in which MLflow got them."""
        found = self._client.get_metric_history(self.by_name[name].info.run_id, metric)
        return [(entry.step, entry.value) for entry in found]

    def artifacts(self, name: str, folder: str | None = None) -> set[str]:
        """Paths of a run's artifacts in one folder."""
        return {entry.path for entry in self._client.list_artifacts(self.by_name[name].info.run_id, folder)}
