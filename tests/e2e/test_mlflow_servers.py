"""A study and an MLflow server with a password, on PostgreSQL, and what can happen to these."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from final_training import train
from mlflow import MlflowClient
from runs import Runs
from servers import ADMIN, PASSWORD, MlflowServer, Postgres, of_mlflow_2
from tracked_study import PARAMS, SESSION, SPEC

from study.commands.final_training import find_model_files
from study.home.events import EpochReported, SessionClosed, SessionOpened, TrialDecided, TrialEnded, TrialStarted
from study.home.folder import Home
from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.ranking import Results
from study.tracking import MlflowTracker, remove_study_runs, tracker
from study.tracking.registry import register_model_version
from study.trained import TrainedClassifier
from study.trained.model_files import find_model

pytestmark = pytest.mark.timeout(900)

OUTAGE = 12.0
"""Seconds; a server that was stopped needs some more to start."""


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    found = Postgres()
    yield found
    found.remove()


@pytest.fixture(scope="module")
def server(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    found = MlflowServer(tmp_path_factory.mktemp("server"), postgres.uri, auth=True)
    yield found
    found.stop()


@pytest.fixture(autouse=True)
def _password(server: MlflowServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", ADMIN)
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", PASSWORD)


def stopped(server: MlflowServer, postgres: Postgres) -> None:
    server.stop()
    time.sleep(OUTAGE)
    server.start()


def paused(server: MlflowServer, postgres: Postgres) -> None:
    server.pause()
    time.sleep(OUTAGE)
    server.go_on()


def database_restarted(server: MlflowServer, postgres: Postgres) -> None:
    postgres.stop()
    time.sleep(OUTAGE / 2)
    postgres.start()


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(stopped, marks=pytest.mark.slow),
        *(pytest.param(one, marks=pytest.mark.long) for one in (paused, database_restarted)),
    ],
)
def test_what_happens_during_an_outage_arrives_once_and_in_order(
    tmp_path: Path,
    server: MlflowServer,
    postgres: Postgres,
    fault: Callable[[MlflowServer, Postgres], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Trials go on all the while as if nothing had happened, two at a time."""
    monkeypatch.setattr(tracker, "UNREACHABLE_FINISH_TIMEOUT_S", 60.0)
    monkeypatch.setattr(tracker, "FINISH_TIMEOUT_S", 400.0)
    home = Home(tmp_path / "home")
    folder = home.create_study(SPEC)
    ledger, follower = Ledger(folder.ledger_file), MlflowTracker(home, folder, SPEC)
    follower.start_following()
    ledger.append(SessionOpened(**SESSION))
    outage = threading.Thread(target=fault, args=(server, postgres))
    longest, last = 0.0, 0
    for first in range(0, 10_000, 2):
        began = time.monotonic()
        _two_trials(ledger, first)
        longest = max(longest, time.monotonic() - began)
        if first == 10:
            outage.start()
        if first > 10 and not outage.is_alive():
            last = last or first
            if first - last > 10:
                break
    ledger.append(SessionClosed(state="complete"))
    ledger.close()
    assert follower.finish_writing() is None
    assert longest < OUTAGE / 2, "a trial waited"
    runs = Runs(server.uri, SPEC.name)
    runs.agree_with(StudyRecord.load(folder.ledger_file))
    assert remove_study_runs(home, folder) == len(runs.all)
    assert not Runs(server.uri, SPEC.name).all


def _two_trials(ledger: Ledger, first: int) -> None:
    """About half a second."""
    for trial in (first, first + 1):
        ledger.append(TrialDecided(trial=trial, stage="search", params=PARAMS, seed=0))
        ledger.append(TrialStarted(trial=trial, node="here"))
    for epoch in (1, 2):
        time.sleep(0.25)
        for trial in (first, first + 1):
            ledger.append(EpochReported(trial=trial, epoch=epoch, metrics={"val/accuracy": trial + epoch / 10}))
    ledger.append(TrialEnded(trial=first, state="complete"))
    ledger.append(TrialEnded(trial=first + 1, state="pruned", reason="asha"))


@pytest.fixture
def address(request: pytest.FixtureRequest, server: MlflowServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The server, as one of MLflow 3 or of MLflow 2, which knows no logged models."""
    with of_mlflow_2(server.uri) if request.param == 2 else nullcontext(server.uri) as uri:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        yield uri


@pytest.mark.slow
@pytest.mark.parametrize("address", [2, 3], indirect=True)
def test_a_model_is_registered_fetched_and_removed(tmp_path: Path, address: str) -> None:
    home = Home(tmp_path / "home")
    folder = train(home)
    model = find_model(folder, Results.load(folder))
    assert model is not None
    follower = MlflowTracker(home, folder, folder.load_spec())
    follower.start_following()
    assert follower.finish_writing() is None
    assert register_model_version(home, folder, "small-final", model) is None
    with find_model_files(home, "models:/small-final@candidate") as description:
        found = TrainedClassifier.load_from_description(description, "cpu")
    assert found.description == TrainedClassifier.load_from_description(model.description, "cpu").description
    assert register_model_version(home, folder, "small-final", model) is None
    client = MlflowClient(address)
    assert len(client.search_model_versions("name = 'small-final'")) == 1
    remove_study_runs(home, folder)
    assert not client.search_registered_models()
