"""A search as Optuna's study."""

from pathlib import Path

import pytest
import yaml
from helpers import Told, quickstart, record
from optuna.trial import TrialState

from study.ranking import Results
from study.ranking.optuna_storage import to_frozen_trials
from study.spec import load_study

PARAMS = {"method.alpha": 0.5, "method.lambda": 1.0, "method.epsilon": 0.25}


def test_choices_keep_their_kind(tmp_path: Path) -> None:
    kinds = [False, 0, 0.5, True, 1]
    file = tmp_path / "kinds.yaml"
    search = {"space": {"method.rate": {"choices": kinds}}, "metric": "val/accuracy", "trials": 5}
    method = {"name": "own_function", "function": "own_functions:train"}
    file.write_text(yaml.safe_dump({"name": "kinds", "method": method, "train": {"epochs": 1}, "search": search}))
    told = record(*(Told("search", [0.5], params={"method.rate": one}) for one in kinds))
    found = to_frozen_trials(Results(load_study(str(file)), told))
    read_back = [trial.params["method.rate"] for trial in found]
    assert [(type(one), one) for one in read_back] == [(type(one), one) for one in kinds]


def test_constraints_and_several_metrics() -> None:
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
    found = to_frozen_trials(Results(spec, record(*trials)))
    assert [trial.values for trial in found] == [[0.9, 0.3], [0.7, 0.1], [0.6, 0.15]]
    excess = [trial.constraints["val/equalized_odds <= 0.2"] for trial in found]
    assert excess == pytest.approx([0.1, -0.1, -0.05])


def test_of_what_lies_outside_the_space_ranges_are_widened() -> None:
    outside = {"method.alpha": 7.0, "method.epsilon": 9.0, "model.name": "resnet18"}
    spec = quickstart("train.epochs=2", "search.early_stopping={}")
    running = Told("search", [0.4], "running", params=PARAMS)
    found = to_frozen_trials(Results(spec, record(running, Told("search", [0.2, 0.3], params=outside))))
    assert [trial.state for trial in found] == [TrialState.RUNNING, TrialState.COMPLETE]
    assert (found[1].params, found[1].value) == ({"method.alpha": 7.0}, 0.3)


def test_a_configuration_counts_with_the_mean_over_its_replicates() -> None:
    spec = quickstart("search.replicates=2", "train.epochs=2", "search.early_stopping={}")
    seeds = [Told("search", [0.1, 0.4], params=PARAMS), Told("replicate", [0.1, 0.6], params=PARAMS, seed=1, repeats=0)]
    assert to_frozen_trials(Results(spec, record(*seeds)))[0].value == 0.5
