"""A search as Optuna's study."""

from pathlib import Path

import optuna
import pytest
import yaml
from course import Course, failing, spec_of
from helpers import Told, quickstart, record
from optuna.trial import TrialState

from study.ranking import Results
from study.ranking.as_optuna import as_optuna
from study.spec import load_study

PARAMS = {"method.alpha": 0.5, "method.lambda": 1.0, "method.epsilon": 0.25}


def test_optuna_finds_the_best_trial_of_the_search(tmp_path: Path) -> None:
    spec = spec_of("search.sampler=random", "search.trials=10")
    course = Course(tmp_path / "ledger.jsonl", spec, failing).play()
    study, ranked = as_optuna(Results(spec, course.record)), Results(spec, course.record).searched
    complete = study.get_trials(states=[TrialState.COMPLETE])
    assert {trial.number for trial in complete} == {each.trial.number for each in ranked}
    best = max(complete, key=lambda trial: trial.value or 0.0)
    assert (best.number, best.value, best.params) == (ranked[0].trial.number, ranked[0].value, ranked[0].trial.params)
    kinds = {type(domain).__name__ for domain in best.distributions.values()}
    assert kinds == {"FloatDistribution", "CategoricalDistribution"}


def test_choices_keep_their_kind(tmp_path: Path) -> None:
    kinds = [False, 0, 0.5, True, 1]
    file = tmp_path / "kinds.yaml"
    search = {"space": {"method.rate": {"choices": kinds}}, "metric": "val/accuracy", "trials": 5}
    method = {"name": "own_function", "function": "own_functions:train"}
    file.write_text(yaml.safe_dump({"name": "kinds", "method": method, "train": {"epochs": 1}, "search": search}))
    found = record(*(Told("search", [0.5], params={"method.rate": one}) for one in kinds))
    study = as_optuna(Results(load_study(str(file)), found))
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
    study = as_optuna(Results(spec, record(*trials)))
    assert study.directions == [optuna.study.StudyDirection.MAXIMIZE, optuna.study.StudyDirection.MINIMIZE]
    assert study.metric_names == ["val/accuracy", "val/equalized_odds"]
    assert [trial.values for trial in study.trials] == [[0.9, 0.3], [0.7, 0.1], [0.6, 0.15]]
    excess = [trial.constraints["val/equalized_odds <= 0.2"] for trial in study.trials]
    assert excess == pytest.approx([0.1, -0.1, -0.05])


def test_of_what_lies_outside_the_space_ranges_are_widened() -> None:
    outside = {"method.alpha": 7.0, "method.epsilon": 9.0, "model.name": "resnet18"}
    spec = quickstart("train.epochs=2", "search.early_stopping={}")
    running = Told("search", [0.4], "running", params=PARAMS)
    study = as_optuna(Results(spec, record(running, Told("search", [0.2, 0.3], params=outside))))
    assert [trial.state for trial in study.trials] == [TrialState.WAITING, TrialState.COMPLETE]
    assert (study.trials[1].params, study.trials[1].value) == ({"method.alpha": 7.0}, 0.3)


def test_a_configuration_counts_with_the_mean_over_its_replicates() -> None:
    spec = quickstart("search.replicates=2", "train.epochs=2", "search.early_stopping={}")
    seeds = [Told("search", [0.1, 0.4], params=PARAMS), Told("replicate", [0.1, 0.6], params=PARAMS, seed=1, repeats=0)]
    assert as_optuna(Results(spec, record(*seeds))).trials[0].value == 0.5
