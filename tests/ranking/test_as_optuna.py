"""A search as Optuna's study."""

from datetime import datetime
from pathlib import Path

import optuna
import pytest
import yaml
from course import Course, failing, spec_of
from helpers import Told, quickstart, record, write_ledger
from optuna.trial import TrialState

from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.ranking import searched
from study.ranking.as_optuna import as_optuna
from study.spec import load_study

PARAMS = {"method.alpha": 0.5, "method.lambda": 1.0, "method.epsilon": 0.25}


def test_optuna_finds_the_best_trial_of_the_search_and_every_state(tmp_path: Path) -> None:
    spec = spec_of("search.sampler=random", "search.trials=10")
    course = Course(tmp_path / "ledger.jsonl", spec, failing).play()
    study, trials = as_optuna(spec, course.record), course.record.trials
    best = searched(course.record, spec)[0]
    states = {TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned", TrialState.FAIL: "failed"}
    of_search = study.get_trials(states=tuple(states))
    assert [trial.number for trial in of_search] == [trial.number for trial in course.record.by_stage("search")]
    assert {trial.state for trial in of_search} == set(states)
    for trial in of_search:
        ours = trials[trial.number]
        assert states[trial.state] == ours.state
        assert trial.params == ours.params
        assert trial.user_attrs.get("why") == ours.why
        assert trial.datetime_start is not None
        assert trial.datetime_start == datetime.fromtimestamp(ours.started or 0)
    complete = {trial.value: trial for trial in of_search if trial.state == TrialState.COMPLETE}
    found = complete[max(complete)]
    assert (found.number, found.value, found.params) == (best.trial.number, best.value, best.trial.params)
    kinds = {type(domain).__name__ for domain in found.distributions.values()}
    assert kinds == {"FloatDistribution", "CategoricalDistribution"}


def test_choices_keep_their_kind(tmp_path: Path) -> None:
    kinds = [False, 0, 0.5, True, 1]
    file = tmp_path / "kinds.yaml"
    search = {"space": {"method.rate": {"choices": kinds}}, "metric": "val/accuracy", "trials": 5}
    method = {"name": "own_function", "function": "own_functions:train"}
    file.write_text(yaml.safe_dump({"name": "kinds", "method": method, "train": {"epochs": 1}, "search": search}))
    found = record(*(Told("search", [0.5], params={"method.rate": one}) for one in kinds))
    study = as_optuna(load_study(str(file)), found)
    read_back = [trial.params["method.rate"] for trial in study.trials]
    assert [(type(one), one) for one in read_back] == [(type(one), one) for one in kinds]


def test_constraints_and_several_metrics_are_optunas_own() -> None:
    spec = quickstart(
        "search.metric=[val/accuracy, val/equalized_odds]",
        "search.constraints=[val/equalized_odds <= 0.2]",
        "train.epochs=2",
        "search.early_stopping={}",
    )
    gaps = [0.3, 0.1, 0.15]
    trials = [
        Told("search", [0.5, value], params={**PARAMS, "method.lambda": 1 + value}, further={"val/equalized_odds": gap})
        for value, gap in zip([0.9, 0.7, 0.6], gaps, strict=True)
    ]
    study = as_optuna(spec, record(*trials))
    assert study.directions == [optuna.study.StudyDirection.MAXIMIZE, optuna.study.StudyDirection.MINIMIZE]
    assert study.metric_names == ["val/accuracy", "val/equalized_odds"]
    assert [trial.values for trial in study.trials] == [[0.9, 0.3], [0.7, 0.1], [0.6, 0.15]]
    excess = [trial.constraints["val/equalized_odds <= 0.2"] for trial in study.trials]
    assert excess == pytest.approx([0.1, -0.1, -0.05])


def test_what_runs_waits_or_lies_outside_the_space_is_told() -> None:
    outside = {"method.alpha": 7.0, "method.epsilon": 9.0, "model.name": "resnet18"}
    study = as_optuna(
        quickstart("train.epochs=2", "search.early_stopping={}"),
        record(
            Told("search", [0.2, 0.3], params=outside),
            Told("search", [0.4], "running", params=PARAMS),
            Told("search", [], "waiting", params={**PARAMS, "method.alpha": 0.1}),
        ),
    )
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE, TrialState.RUNNING, TrialState.WAITING]
    first = study.trials[0]
    assert first.params == {"method.alpha": 7.0}
    assert first.value == 0.3


def test_a_configuration_counts_with_the_mean_over_its_replicates() -> None:
    spec = quickstart("search.replicates=2", "train.epochs=2", "search.early_stopping={}")
    seeds = [Told("search", [0.1, 0.4], params=PARAMS), Told("replicate", [0.1, 0.6], params=PARAMS, seed=1, repeats=0)]
    assert as_optuna(spec, record(*seeds)).trials[0].value == 0.5


def test_a_configuration_whose_replicates_are_to_come_is_not_complete() -> None:
    spec = quickstart("search.replicates=2", "train.epochs=2", "search.early_stopping={}")
    study = as_optuna(spec, record(Told("search", [0.1, 0.4], params=PARAMS)))
    assert [trial.state for trial in study.trials] == [TrialState.RUNNING]


def test_a_trial_that_failed_before_it_began_has_no_time(tmp_path: Path) -> None:
    """As where its process cannot import its function: 1970 would stand in the timeline."""
    write_ledger(tmp_path / "ledger.jsonl", Told("baseline", [0.5], params=PARAMS))
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.append("trial", trial=1, stage="search", params=PARAMS, seed=0)
    ledger.append("ended", trial=1, state="failed", kind="BUG", reason="no module")
    ledger.close()
    trial = as_optuna(quickstart(), StudyRecord.load(ledger.path)).trials[-1]
    assert (trial.state, trial.datetime_start) == (TrialState.FAIL, None)
