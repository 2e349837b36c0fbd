"""Optuna's dashboard on a study, and the trials of an Optuna study as configurations to try first."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import optuna
import pytest
from helpers import ROOT, Told, append_event, quickstart, write_ledger
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState
from servers import free_port

from study.commands.optuna_exchange import import_best_trials
from study.errors import UserError
from study.home.folder import Home
from study.ranking.optuna_storage import LedgerStorage, best_optuna_trials
from study.spec import load_study

PARAMS = {"method.alpha": 0.5, "method.lambda": 1.0, "method.epsilon": 0.25}


def told_study(home: Path) -> Home:
    """A home with a study of one trial of each kind, and a confirm trial."""
    found = Home(home)
    spec = quickstart("name=mine", "train.epochs=2", "search.early_stopping={}")
    write_ledger(
        found.create_study(spec).ledger_file,
        Told("baseline", [0.2, 0.3], params={**PARAMS, "method.lambda": 0.0}),
        Told("search", [0.4, 0.6], params=PARAMS),
        Told("search", [0.1], "pruned", params={**PARAMS, "method.alpha": 0.2}),
        Told("search", [0.5, None], "failed", params={**PARAMS, "method.alpha": 0.3}),
        Told("confirm", [0.8, 0.9], params=PARAMS, seed=1, repeats=1),
        Told("search", [0.3], "running", params={**PARAMS, "method.alpha": 0.4}),
    )
    return found


TOLD = [
    ("COMPLETE", 0.3, {1: 0.2, 2: 0.3}, 0),
    ("COMPLETE", 0.6, {1: 0.4, 2: 0.6}, 1),
    ("PRUNED", None, {1: 0.1}, 2),
    ("FAIL", None, {1: 0.5}, 3),
    ("WAITING", None, {1: 0.3}, 5),
]
"""State, value, metric by epoch and the ledger's number of each configuration."""


def test_a_search_is_a_storage_of_optunas_that_grows_with_the_ledger(tmp_path: Path) -> None:
    folder = told_study(tmp_path).find_study("mine")
    study = optuna.load_study(study_name="mine", storage=LedgerStorage(folder))
    found = [(one.state.name, one.value, one.intermediate_values, one.user_attrs["trial"]) for one in study.trials]
    assert found == TOLD
    assert (study.best_trial.number, study.best_trial.params, study.metric_names) == (1, PARAMS, ["val/accuracy"])
    assert study.trials[1].duration is not None
    further = {"trial": 6, "stage": "search", "params": {**PARAMS, "method.alpha": 0.1}, "seed": 0}
    append_event(folder.ledger_file, "trial", **further)
    append_event(folder.ledger_file, "started", trial=6, node="here")
    for epoch, value in ((1, 0.7), (2, 0.8)):
        append_event(folder.ledger_file, "report", trial=6, epoch=epoch, metrics={"val/accuracy": value})
    append_event(folder.ledger_file, "ended", trial=6, state="complete")
    assert (study.best_value, study.trials[-1].user_attrs["trial"]) == (0.8, 6)


@pytest.mark.slow
def test_the_dashboard_tells_what_the_ledger_says_to_this_machine_alone(tmp_path: Path) -> None:
    told_study(tmp_path)
    port, environment = free_port(), {**os.environ, "STUDY_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    code = "import sys; sys.argv[0] = 'study'; from study.cli import main; main()"
    command = [sys.executable, "-c", code, "ui", "--optuna", "mine", "--port", str(port)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        assert f"http://127.0.0.1:{port}" in served.stdout.readline()
        page = f"http://127.0.0.1:{port}/api/studies/0"
        with urllib.request.urlopen(page) as answered:
            document = json.load(answered)
        elsewhere = urllib.request.Request(page, headers={"Host": "example.org"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(elsewhere)
        again = subprocess.run(command, env=environment, capture_output=True, text=True)
        served.send_signal(signal.SIGINT)
    assert served.returncode == 130
    assert again.returncode == 2
    assert f"--port {port}: taken" in again.stderr
    found = [(one["state"].upper(), one.get("values"), len(one["intermediate_values"])) for one in document["trials"]]
    assert found == [(state, value and [value], len(course)) for state, value, course, _ in TOLD]
    assert [one["number"] for one in document["best_trials"]] == [1]


STORAGES = ["database", "file", "journal"]


@contextmanager
def new_study(storage: str | JournalStorage, **options: Any) -> Iterator[optuna.Study]:
    """A study of Optuna's; a database is closed at the end of the block."""
    opened = RDBStorage(storage) if isinstance(storage, str) else storage
    yield optuna.create_study(storage=opened, **options)
    if isinstance(opened, RDBStorage):
        opened.remove_session()
        opened.engine.dispose()


def optunas(folder: Path, kind: str = "file", direction: str = "maximize", **fixed: Any) -> str:
    """A storage with a study of five trials, whose values are 0 to 4 and whose lambda_ is a tenth of that, and one that
    failed."""
    storage = f"sqlite:///{folder / 'optuna.db'}"
    journal = JournalStorage(JournalFileBackend(str(folder / "optuna.journal")))

    def objective(trial: optuna.Trial) -> float:
        trial.suggest_float("alpha", 0.001, 10.0)
        trial.suggest_float("lambda_", 0.0, 1.0)
        trial.suggest_categorical("method.epsilon", [0.0, 0.1, 0.25])
        return trial.number if trial.number < 5 else float("nan")

    with new_study(journal if kind == "journal" else storage, study_name="theirs", direction=direction) as study:
        for number in range(6):
            study.enqueue_trial({"alpha": 0.5, "method.epsilon": 0.1, "lambda_": number / 10, **fixed})
        study.optimize(objective, n_trials=6)
    return {"journal": str(folder / "optuna.journal"), "file": str(folder / "optuna.db")}.get(kind, str(storage))


@pytest.mark.parametrize("kind", STORAGES)
def test_the_best_trials_of_a_storage_come_first_by_their_own_direction(tmp_path: Path, kind: str) -> None:
    storage = optunas(tmp_path, kind, "minimize" if kind == "journal" else "maximize")
    found = best_optuna_trials(storage, "theirs", 3)
    assert [trial.value for trial in found] == ([0.0, 1.0, 2.0] if kind == "journal" else [4.0, 3.0, 2.0])
    with pytest.raises(UserError, match=r"no study 'their'\. Did you mean 'theirs'\?"):
        best_optuna_trials(storage, "their", 3)


def test_what_is_no_storage_is_refused_and_none_is_made(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no\njournal\n")
    with pytest.raises(UserError, match="cannot be read as a storage of Optuna"):
        best_optuna_trials(str(text), "theirs", 3)
    none = tmp_path / "none.db"
    for storage in (str(none), f"sqlite:///{none}", f"sqlite+pysqlite:///{none}"):
        with pytest.raises(UserError, match="no such file"):
            best_optuna_trials(storage, "theirs", 3)
    assert list(tmp_path.iterdir()) == [text]


def test_a_database_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "50% of it?.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE alembic_version (version_num TEXT)")
    before = file.read_bytes()
    with pytest.raises(UserError, match="cannot be read as a storage of Optuna"):
        best_optuna_trials(str(file), "theirs", 3)
    assert file.read_bytes() == before


def test_no_message_shows_a_password() -> None:
    with pytest.raises(UserError) as told:
        best_optuna_trials(f"postgresql+psycopg2://me:hush@127.0.0.1:{free_port()}/db?password=hush", "theirs", 3)
    assert "hush" not in str(told.value)


def test_of_constraints_and_several_metrics_the_feasible_front_is_taken(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'several.db'}"
    with new_study(storage, study_name="front", directions=["maximize", "minimize"]) as study:
        for values in ([0.9, 0.5], [0.5, 0.1], [0.4, 0.2]):
            study.add_trial(optuna.create_trial(values=values))
    assert [trial.number for trial in best_optuna_trials(storage, "front", 5)] == [0, 1]
    with new_study(storage, study_name="limited", direction="maximize") as study:
        for excess in (0.1, -0.1):
            study.add_trial(optuna.create_trial(value=0.5 + excess, constraints={"gap": excess}))
    assert [trial.number for trial in best_optuna_trials(storage, "limited", 5)] == [1]


def test_a_parameter_that_is_not_searched_may_be_left_out(tmp_path: Path) -> None:
    ranges = {"alpha": FloatDistribution(0.01, 1.0), "act": CategoricalDistribution(["relu", "tanh"])}
    given = {"lambda_": 1.0, "method.epsilon": 0.1}
    known = {"lambda_": FloatDistribution(0.0, 2.0), "method.epsilon": CategoricalDistribution([0.0, 0.1])}
    told = optuna.create_trial(params={"alpha": 0.5, "act": "relu", **given}, distributions=ranges | known, value=1.0)
    with new_study(f"sqlite:///{tmp_path / 'more.db'}", study_name="theirs") as study:
        study.add_trial(told)
    out = tmp_path / "imported.yaml"
    with pytest.raises(UserError, match=r"act: is not searched.*--rename act= leaves it out"):
        import_best_trials(str(tmp_path / "more.db"), "theirs", "fairkl_digits", out, 1, ())
    said = import_best_trials(str(tmp_path / "more.db"), "theirs", "fairkl_digits", out, 1, ["act="])
    assert said[-1] == f"{out}: tried first are 1 configuration of theirs, the best by its own values"
    assert load_study(str(out)).search.enqueue[-1] == {"method.alpha": 0.5, "method.lambda": 1.0, "method.epsilon": 0.1}


def test_their_configurations_are_tried_first(tmp_path: Path) -> None:
    out = tmp_path / "imported.yaml"
    told = import_best_trials(optunas(tmp_path), "theirs", "fairkl_digits", out, 2, ())
    assert told[:2] == ["alpha is method.alpha", "lambda_ is method.lambda"]
    found, shipped = load_study(str(out)), load_study("fairkl_digits")
    first = {"method.alpha": 0.5, "method.lambda": 0.4, "method.epsilon": 0.1}
    assert found.search.enqueue == [*shipped.search.enqueue, first, {**first, "method.lambda": 0.3}]
    assert out.read_text(encoding="utf-8").count("#") >= 1  # what the file says to people stays
    other = import_best_trials(optunas(tmp_path, "journal"), "theirs", str(out), out, 3, ["lambda_=method.lambda"])
    assert "3 configurations" in other[-1]
    assert len(load_study(str(out)).search.enqueue) == len(shipped.search.enqueue) + 3  # what is there is not repeated


@pytest.mark.parametrize(
    ("top", "renamed", "fixed", "told"),
    [
        (9, [], {}, r"search\.trials: 4 given, allowed is at least \d"),
        (1, [], {"alpha": 5.0}, r"theirs, trial 4: method\.alpha: 5\.0 given, allowed is from 0\.\d+ to 1\.0"),
        (1, ["alpha=method.alfa"], {}, r"--rename alpha=method\.alfa: .* Did you mean 'method\.alpha'\?"),
        (1, ["beta=method.alpha"], {}, r"--rename beta: no such parameter\. Allowed: alpha, lambda_, method\.epsilon"),
        (1, ["lambda_=method.alpha"], {}, r"alpha and lambda_ are both method\.alpha"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_trial_and_nothing_is_written(
    tmp_path: Path, top: int, renamed: list[str], fixed: dict[str, float], told: str
) -> None:
    source, out = tmp_path / "small.yaml", tmp_path / "imported.yaml"
    source.write_text(quickstart("search.trials=4").to_yaml(), encoding="utf-8")
    storage = optunas(tmp_path, **fixed)
    with pytest.raises(UserError, match=told):
        import_best_trials(storage, "theirs", str(source), out, top, renamed)
    assert not out.exists()


def test_a_parameter_that_no_trial_of_theirs_has_is_missing(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'half.db'}"
    with new_study(storage, study_name="half") as study:
        study.enqueue_trial({"alpha": 0.5})
        study.optimize(lambda trial: trial.suggest_float("alpha", 0.1, 1.0), n_trials=1)
    with pytest.raises(UserError, match=r"half, trial 0: method\.lambda: is missing: allowed is from"):
        import_best_trials(storage, "half", "fairkl_digits", tmp_path / "out.yaml", 1, ())


@pytest.mark.slow
def test_a_search_runs_what_was_imported_first(tmp_path: Path) -> None:
    out, home = tmp_path / "imported.yaml", tmp_path / "home"
    import_best_trials(optunas(tmp_path), "theirs", "fairkl_digits", out, 2, ())
    small = ["search.trials=4", "train.epochs=1", "search.early_stopping={}", "search.confirm={top: 0}"]
    given = [word for one in small for word in ("--set", one)]
    code = "import sys; sys.argv[0] = 'study'; from study.cli import main; main()"
    environment = {**os.environ, "STUDY_HOME": str(home), "STUDY_DATA": str(tmp_path / "data"), "PYTHONPATH": str(ROOT)}
    began = time.time()
    done = subprocess.run(
        [sys.executable, "-c", code, "run", str(out), "--quiet", *given],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (time.time() - began, done.stderr)
    study = optuna.load_study(study_name="fairkl_digits", storage=LedgerStorage(Home(home).find_study("fairkl_digits")))
    lambdas = [trial.params["method.lambda"] for trial in study.trials if trial.state == TrialState.COMPLETE]
    assert {0.4, 0.3} <= set(lambdas[:3])
