"""A study that runs for real: Ray, Optuna, MLflow on SQLite, real data; small enough for a test."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command import Command
from prepared import Prepared

TINY = """\
name: tiny
data:   {name: biased_digits, rho: 0.9}
model:  {name: small_conv_net, width: 4}
method: {name: eps_sup_info_nce, temperature: 0.1, regulariser: fair_kl}
train:  {epochs: 4, batch_size: 128, learning_rate: 0.003}
search:
  space:
    method.alpha:   {low: 0.001, high: 1.0, log: true}
    method.lambda:  {low: 0.0, high: 2.0}
    method.epsilon: {choices: [0.0, 0.25, 0.5]}
  baseline: {method.alpha: 1.0, method.lambda: 0.0, method.epsilon: 0.0}
  trials: 7
  concurrency: 1
  early_stopping: {name: asha, grace: 1, reduction: 2}
  confirm: {top: 1, seeds: 2}
"""
"""One trial at a time, so that the course of the study is the same each time."""


@pytest.fixture(scope="session")
def _own_mlflow() -> Iterator[None]:
    """Runs go to the database of their home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        yield


def fresh(factory: pytest.TempPathFactory) -> Command:
    """A command whose home is not there yet, and whose working folder has tiny.yaml in it."""
    folder = factory.mktemp("study")
    (folder / "tiny.yaml").write_text(TINY)
    return Prepared(folder / "home", folder)


@pytest.fixture(scope="session")
def make_command(
    tmp_path_factory: pytest.TempPathFactory, empty_database: Path, _own_mlflow: None
) -> Callable[[], Command]:
    """Makes such a command, but that MLflow's database is in its home already."""

    def make() -> Command:
        command = fresh(tmp_path_factory)
        command.home.mkdir()
        shutil.copy(empty_database, command.home / "mlflow.db")
        return command

    return make


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, _own_mlflow: None) -> Command:
    """A home in which the tiny study ran from its file to its end, undisturbed, in a process from its beginning."""
    command = fresh(tmp_path_factory)
    done = Command(command.home, command.work)("run", "tiny.yaml")
    assert done.returncode == 0, done.stderr
    (command.work / "run.out").write_text(done.stdout)
    assert done.stderr == "", "nothing but the progress is printed"
    return command
