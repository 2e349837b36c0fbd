"""A search as Optuna's study: Optuna itself reads its journal back."""

from datetime import datetime
from pathlib import Path

import optuna
import pytest
import yaml
from course import Course, failing, spec_of
from helpers import Told, quickstart, record, write_ledger
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from study.commands.export import export_journal
from study.errors import UserError
from study.home.folder import Home
from study.home.record import StudyRecord
from study.ranking import searched
from study.ranking.as_optuna import as_optuna, journal
from study.spec import StudySpec, load_study

PARAMS = {"method.alpha": 0.5, "method.lambda": 1.0, "method.epsilon": 0.25}


def loaded(path: Path, spec: StudySpec, of: StudyRecord) -> optuna.Study:
    file = path / "journal.log"
    file.write_text(journal(spec, of))
    return optuna.load_study(study_name=spec.name, storage=JournalStorage(JournalFileBackend(str(file))))


def test_optuna_finds_the_best_trial_of_the_search_and_every_state(tmp_path: Path) -> None:
    spec = spec_of("search.sampler=random", "search.trials=10")
    course = Course(tmp_path / "ledger.jsonl", spec, failing).play()
    study, trials = loaded(tmp_path, spec, course.record), course.record.trials
    best = searched(course.record, spec)[0]
    assert study.best_trial.user_attrs["trial"] == best.trial.number
    assert study.best_value == best.value
    assert study.best_params == best.trial.params
    states = {TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned", TrialState.FAIL: "failed"}
    assert len(study.trials) == 10
    assert {trial.state for trial in study.trials} == set(states)
    for trial in study.trials:
        ours = trials[trial.user_attrs["trial"]]
        assert states[trial.state] == ours.state
        assert trial.params == ours.params
        assert trial.user_attrs["stage"] == ours.stage
        assert trial.user_attrs.get("why") == ours.why
        finite = {one["epoch"]: one["val/accuracy"] for one in ours.reports if one["val/accuracy"] is not None}
        assert trial.intermediate_values == finite
        assert trial.datetime_start is not None
        assert trial.datetime_start == datetime.fromtimestamp(ours.started or 0)
    in_memory = as_optuna(spec, course.record).get_trials(states=tuple(states))
    of_search = [trial for trial in study.trials if trial.user_attrs["stage"] == "search"]
    assert [trial.number for trial in in_memory] == [trial.user_attrs["trial"] for trial in of_search]
    assert [trial.values for trial in in_memory] == [trial.values for trial in of_search]
    kinds = {type(domain).__name__ for domain in study.best_trial.distributions.values()}
    assert kinds == {"FloatDistribution", "CategoricalDistribution"}


def test_choices_keep_their_kind(tmp_path: Path) -> None:
    kinds = [False, 0, 0.5, True, 1]
    file = tmp_path / "kinds.yaml"
    search = {"space": {"method.rate": {"choices": kinds}}, "metric": "val/accuracy", "trials": 5}
    method = {"name": "own_function", "function": "own_functions:train"}
    file.write_text(yaml.safe_dump({"name": "kinds", "method": method, "train": {"epochs": 1}, "search": search}))
    found = record(*(Told("search", [0.5], params={"method.rate": one}) for one in kinds))
    study = loaded(tmp_path, load_study(str(file)), found)
    read_back = [trial.params["method.rate"] for trial in study.trials]
    assert [(type(one), one) for one in read_back] == [(type(one), one) for one in kinds]


def test_constraints_and_several_metrics_are_optunas_own(tmp_path: Path) -> None:
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
    study = loaded(tmp_path, spec, record(*trials))
    assert study.directions == [optuna.study.StudyDirection.MAXIMIZE, optuna.study.StudyDirection.MINIMIZE]
    assert study.metric_names == ["val/accuracy", "val/equalized_odds"]
    assert [trial.values for trial in study.trials] == [[0.9, 0.3], [0.7, 0.1], [0.6, 0.15]]
    assert [trial.number for trial in study.best_trials] == [1]  # the first misses the limit, the second is better
    excess = [trial.constraints["val/equalized_odds <= 0.2"] for trial in study.trials]
    assert excess == pytest.approx([0.1, -0.1, -0.05])
    assert study.trials[0].user_attrs["course"] == {"1": [0.5, 0.3], "2": [0.9, 0.3]}


def test_what_runs_waits_or_lies_outside_the_space_is_told(tmp_path: Path) -> None:
    outside = {"method.alpha": 7.0, "method.epsilon": 9.0, "model.name": "resnet18"}
    study = loaded(
        tmp_path,
        quickstart("train.epochs=2", "search.early_stopping={}"),
        record(
            Told("baseline", [0.2, 0.3], params=outside),
            Told("search", [0.4], "running", params=PARAMS),
            Told("search", [], "waiting", params={**PARAMS, "method.alpha": 0.1}),
            Told("confirm", [0.4, 0.6], params=outside, seed=3, repeats=0),
        ),
    )
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE, TrialState.RUNNING, TrialState.WAITING]
    first = study.trials[0]
    assert first.params == {"method.alpha": 7.0}
    assert first.user_attrs["param:model.name"] == "resnet18"
    assert first.user_attrs["param:method.epsilon"] == 9.0
    assert first.user_attrs["confirmed"] == 0.6
    assert study.best_value == 0.3


def test_a_configuration_counts_with_the_mean_over_its_replicates(tmp_path: Path) -> None:
    spec = quickstart("search.replicates=2", "train.epochs=2", "search.early_stopping={}")
    seeds = [Told("search", [0.1, 0.4], params=PARAMS), Told("replicate", [0.1, 0.6], params=PARAMS, seed=1, repeats=0)]
    assert loaded(tmp_path, spec, record(*seeds)).best_value == 0.5


def test_a_configuration_whose_replicates_are_to_come_is_not_complete(tmp_path: Path) -> None:
    spec = quickstart("search.replicates=2", "train.epochs=2", "search.early_stopping={}")
    study = loaded(tmp_path, spec, record(Told("search", [0.1, 0.4], params=PARAMS)))
    assert [trial.state for trial in study.trials] == [TrialState.RUNNING]


def test_the_file_is_written_as_others_are(tmp_path: Path) -> None:
    folder = Home(tmp_path / "home").create(quickstart("name=mine"))
    write_ledger(folder.ledger_file, Told("search", [0.5] * 20, params=PARAMS))
    file = tmp_path / "new" / "journal.log"
    assert [export_journal(folder, file), export_journal(folder, file)] == [1, 1]  # the second takes the first's place
    storage = JournalStorage(JournalFileBackend(str(file)))
    assert len(optuna.load_study(study_name="mine", storage=storage).trials) == 1
    with pytest.raises(UserError, match="it is a folder"):
        export_journal(folder, tmp_path)
