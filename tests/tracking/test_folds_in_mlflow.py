"""A study with folds in a real MLflow: its order is the report's."""

from dataclasses import replace

import numpy as np
import pytest
from course import Course
from folded import Judges, folded
from runs import Runs, saved_views

from study.commands.final_training import final_training_spec
from study.home.events import (
    EpochReported,
    SessionClosed,
    SessionOpened,
    TrialDecided,
    TrialEnded,
    TrialStarted,
    TrialTested,
)
from study.home.folder import Home
from study.home.ledger import Ledger, read_entries
from study.home.record import TrialRecord
from study.ranking import Results
from study.tracking.ledger_to_mlflow import LedgerToMlflowWriter
from study.tracking.runs_from_events import BEST_RUN_PREFIX

SPEC = folded("search.margin=0")


def misleading(trial: TrialRecord, epoch: int) -> float:
    """The better a configuration is on all folds together, the worse on each of them."""
    return 0.9 - 0.1 * (trial.repeated_trial or trial.number) * epoch / 4


@pytest.fixture
def runs(home: Home) -> Runs:
    folder = home.create_study(SPEC)
    judges = Judges(SPEC)
    Course(folder.ledger_file, SPEC, misleading, joins=judges.joins, predict=judges).play()
    writer = LedgerToMlflowWriter(home, folder, SPEC)
    while writer.write_next_events():
        pass
    return Runs(home.tracking_uri, SPEC.name)


def test_the_view_of_fresh_seeds_is_in_the_order_of_the_report(home: Home, runs: Runs) -> None:
    view = saved_views(runs.client.get_experiment(runs.all[0].info.experiment_id).tags)["Fresh seeds"]
    order = f"{view['orderByKey']} {'ASC' if view['orderByAsc'] else 'DESC'}"
    found = runs.client.search_runs([runs.all[0].info.experiment_id], view["searchFilter"], order_by=[order])
    results = Results.load(home.find_study(SPEC.name))
    confirmed = [one for one in results.ranked_all if one.joined_folds]
    configurations = dict.fromkeys(run.data.tags["study.configuration"] for run in found)
    assert list(configurations) == [str(one.trial.number) for one in confirmed]
    assert found[0].info.run_name.startswith(BEST_RUN_PREFIX)
    for one in confirmed:
        of_one = [run for run in found if run.data.tags["study.configuration"] == str(one.trial.number)]
        assert len(of_one) == SPEC.folds
        for run in of_one:
            assert run.data.metrics["all_folds/val/accuracy"] == one.confirm_statistics.mean
            assert not np.isclose(run.data.metrics["val/accuracy"], one.confirm_statistics.mean)


def test_results_are_in_the_order_of_validation(home: Home, runs: Runs) -> None:
    """The best on test is no choice: a final training, which with folds nothing validates, is last."""
    origin = {"study": SPEC.name, "study_id": read_entries(home.find_study(SPEC.name).ledger_file)[0]["id"]}
    final = replace(final_training_spec(SPEC, [7]), name="final", origin=origin)
    trained = home.create_study(final)
    ledger = Ledger(trained.ledger_file)
    ledger.append(SessionOpened(owner="ada"))
    ledger.append(TrialDecided(trial=0, stage="final", params={}, seed=7))
    ledger.append(TrialStarted(trial=0, node="here"))
    for epoch in range(1, final.epochs + 1):
        ledger.append(EpochReported(trial=0, epoch=epoch, metrics={"train/loss": 0.1}))
    ledger.append(TrialEnded(trial=0, state="complete"))
    ledger.append(TrialTested(trial=0, metrics={"test/accuracy": 0.99}))
    ledger.append(SessionClosed(state="complete"))
    ledger.close()
    writer = LedgerToMlflowWriter(home, trained, final)
    while writer.write_next_events():
        pass
    experiment = runs.all[0].info.experiment_id
    view = saved_views(runs.client.get_experiment(experiment).tags)["Results"]
    order = f"{view['orderByKey']} {'ASC' if view['orderByAsc'] else 'DESC'}"
    found = runs.client.search_runs([experiment], view["searchFilter"], order_by=[order])
    assert len(found) > 1
    assert found[-1].info.run_name == "final"
    values = [run.data.metrics["val/accuracy"] for run in found[:-1]]
    assert values == sorted(values, reverse=True)
