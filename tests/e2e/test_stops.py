"""A study that is stopped, killed or cut off from MLflow goes on as if nothing had happened."""

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from command import Command
from helpers import computed
from mlflow import MlflowClient

from study.home.folder import Home
from study.home.record import StudyRecord

NO_RESULT = "tags.`study.kind` != 'result'"
"""Filter of the runs of a study and its trials, without the rows that compare what came out."""


@pytest.fixture
def command(make_command: Callable[[], Command]) -> Command:
    return make_command()


@pytest.mark.parametrize(
    ("signum", "group"),
    [
        pytest.param(signal.SIGINT, True, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, False, marks=pytest.mark.long),
        pytest.param(signal.SIGTERM, False, marks=pytest.mark.long),
        pytest.param(signal.SIGTERM, True, marks=pytest.mark.long),
        pytest.param(signal.SIGHUP, True, marks=pytest.mark.long),
    ],
    ids=["SIGINT", "SIGKILL", "SIGTERM", "SIGTERM to all", "SIGHUP"],
)
def test_stopped_study_goes_on_as_the_undisturbed_one(
    command: Command, finished: Command, signum: signal.Signals, group: bool
) -> None:
    """Stopped in mid-trial and resumed: the same trials with the same metrics, each once in MLflow, none running.

    A terminal sends Ctrl-C to the whole group of processes; `timeout` and batch systems send SIGTERM so.
    """
    process = command.start("run", "tiny.yaml", SABOTAGE='{"slow": 0.3}')
    command.wait_for("tiny", lambda record: len(record.trials) > 3 and record.trials[3].n_epochs > 0)
    if group:
        os.killpg(process.pid, signum)
    else:
        process.send_signal(signum)
    out, err = process.communicate(timeout=200)
    stopped = StudyRecord.load(command.folder("tiny").ledger_file)
    assert stopped.state == "interrupted"
    assert len(stopped.trials) < 7
    if signum != signal.SIGKILL:
        assert (process.returncode, err) == (130, "")
        assert "study resume tiny" in out
        assert not _running_in_mlflow(command)
    command.done("resume", "tiny")
    assert _course(command) == _course(finished)
    assert not _running_in_mlflow(command)
    client = MlflowClient(Home(command.home).tracking_uri)
    experiment = client.get_experiment_by_name("tiny")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id], NO_RESULT)
    assert len(runs) == 1 + len(_course(command))
    trials = {run.data.tags["study.trial"]: run for run in runs if "study.trial" in run.data.tags}
    history = client.get_metric_history(trials["3"].info.run_id, "val/accuracy")
    assert [entry.step for entry in history] == sorted({entry.step for entry in history})


@pytest.mark.parametrize(
    "signum",
    [pytest.param(signal.SIGINT, marks=pytest.mark.slow), pytest.param(signal.SIGTERM, marks=pytest.mark.long)],
)
def test_a_second_signal_ends_a_study_at_once(command: Command, signum: signal.Signals) -> None:
    """Also while Ray is being ended, which then would be waited for in vain."""
    process = command.start("run", "tiny.yaml", SABOTAGE='{"slow": 1}')
    command.wait_for("tiny", lambda record: len(record.trials) > 1 and record.trials[1].n_epochs > 0)
    process.send_signal(signum)
    time.sleep(0.5)
    process.send_signal(signum)
    process.communicate(timeout=200)
    assert process.returncode == 130
    assert StudyRecord.load(command.folder("tiny").ledger_file).state == "interrupted"


@pytest.mark.slow
def test_study_does_not_need_mlflow_to_answer(command: Command, finished: Command) -> None:
    """Nothing listens at the address: the study completes, says so, and MLflow catches up when it is there."""
    away = {"MLFLOW_TRACKING_URI": "http://127.0.0.1:9"}
    run, resumed = command("run", "tiny.yaml", **away), command("resume", "tiny", **away)
    assert (run.returncode, resumed.returncode) == (1, 1)
    first, reporting = run.stdout.find("nothing listens at"), run.stdout.find("writing the report")
    assert 0 <= first < reporting, "it is said as the study begins"
    assert all("not everything is in MLflow" in done.stdout for done in (run, resumed))
    assert _course(command) == _course(finished)
    command.done("resume", "tiny")
    client = MlflowClient(Home(command.home).tracking_uri)
    experiment = client.get_experiment_by_name("tiny")
    assert experiment is not None
    assert len(client.search_runs([experiment.experiment_id], NO_RESULT)) == 1 + len(_course(command))
    assert command("resume", "tiny").returncode == 2


def _course(command: Command) -> list[dict[str, Any]]:
    return computed(command.load("tiny")[1])


def _running_in_mlflow(command: Command) -> list[str]:
    client = MlflowClient(Home(command.home).tracking_uri)
    experiment = client.get_experiment_by_name("tiny")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    return [run.info.run_name for run in runs if run.info.status == "RUNNING"]
