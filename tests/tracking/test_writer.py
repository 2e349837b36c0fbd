"""A ledger brought into a real MLflow store, whatever happens on the way."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import quickstart
from mlflow import MlflowClient

from study.home import Home, StudyFolder
from study.ledger import Event, Ledger, read
from study.tracking.progress import Progress
from study.tracking.writer import Writer

SPEC = quickstart("train.epochs=2", "search.early_stopping.grace=1")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyFolder:
    """A study with a complete trial and one that is cut off by a stop, and then runs again to its end."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    found = Home(tmp_path / "home").create(SPEC)
    ledger = Ledger(found.ledger_file)
    params = dict(SPEC.search.baseline or {})
    ledger.append("opened", version="1", libraries={})
    for trial in (0, 1):
        ledger.append("trial", trial=trial, stage="search", params=params, seed=0)
        ledger.append("started", trial=trial, node="here")
        ledger.append("report", trial=trial, epoch=1, metrics={"val/accuracy": 0.1})
    ledger.append("report", trial=0, epoch=2, metrics={"val/accuracy": 0.2})
    ledger.append("ended", trial=0, state="complete")
    ledger.append("closed", state="interrupted")
    ledger.append("opened", version="1", libraries={})
    ledger.append("started", trial=1, node="there")
    for epoch in (1, 2):
        ledger.append("report", trial=1, epoch=epoch, metrics={"val/accuracy": 0.1 * epoch})
    ledger.append("ended", trial=1, state="complete")
    ledger.append("closed", state="complete")
    ledger.close()
    return found


class Failing:
    """A client whose n-th call that writes raises, once."""

    def __init__(self, client: MlflowClient, fails_at: int) -> None:
        self._client, self._left = client, fails_at

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        def call(*arguments: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                raise ConnectionError("the server went away")
            return method(*arguments, **named)

        return call


@pytest.mark.parametrize("fails_at", [0, *range(2, 30, 3)])
def test_a_call_that_fails_is_made_up_for(folder: StudyFolder, fails_at: int) -> None:
    """Written again from the start of the batch, each trial has one run, ended as it ended, each epoch once."""
    home = Home(folder.path.parent)
    writer = Writer(home, folder, SPEC, Progress(home.tracking_uri))
    client: MlflowClient = writer._client
    writer._client = Failing(client, fails_at)  # type: ignore[assignment]
    events: list[Event] = read(folder.ledger_file)
    for _ in range(2):
        try:
            writer.write(events)
            break
        except ConnectionError:
            pass
    else:
        pytest.fail("the second try failed")
    experiment = client.get_experiment_by_name(SPEC.name)
    assert experiment is not None
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert sorted(runs) == ["quickstart", "search-000", "search-001"]
    assert {run.info.status for run in runs.values()} == {"FINISHED"}
    for name in ("search-000", "search-001"):
        history = client.get_metric_history(runs[name].info.run_id, "val/accuracy")
        assert [(entry.step, entry.value) for entry in history] == [(1, 0.1), (2, 0.2)]


def test_another_mlflow_is_begun_from_the_start(tmp_path: Path) -> None:
    """What one MLflow has says nothing of another; a damaged note says nothing of any."""
    path = tmp_path / "tracking.json"
    Progress("sqlite:///one.db", offset=99, parent="run").save(path)
    assert Progress.load(path, "sqlite:///one.db").offset == 99
    assert Progress.load(path, "http://server") == Progress("http://server")
    path.write_text("{")
    assert Progress.load(path, "sqlite:///one.db") == Progress("sqlite:///one.db")
