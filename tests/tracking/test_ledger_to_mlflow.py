"""A ledger brought into a real MLflow, whatever happens on the way."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from helpers import quickstart
from mlflow import MlflowClient
from runs import Runs, saved_views
from tracked_study import PARAMS, SESSION, SPEC, STATUS, make_home, make_study

from study.commands.final_training import final_training_spec
from study.data.dataset import DatasetSummary
from study.home.events import (
    EpochReported,
    SessionClosed,
    SessionOpened,
    Stage,
    TrialDecided,
    TrialEnded,
    TrialStarted,
    entry_to_event,
)
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger, read_entries
from study.spec import load_study
from study.tracking import ledger_to_mlflow as writing
from study.tracking import remove_study_runs
from study.tracking.ledger_to_mlflow import LedgerToMlflowWriter
from study.tracking.mlflow_runs import MlflowRunStore, to_dataset_input
from study.tracking.runs_from_events import BEST_RUN_PREFIX
from study.tracking.saved_views import RERUN_STAGES, SEARCH_STAGES, saved_view_tags
from study.tracking.tracking_state import TrackingState


@pytest.fixture(scope="module")
def brought(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[Runs]:
    """The example, in MLflow."""
    home = make_home(tmp_path_factory.mktemp("brought") / "home", empty_database)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        bring(home, make_study(home))
        yield Runs(home.tracking_uri, SPEC.name)


def bring(home: Home, folder: StudyFolder) -> Runs:
    writer = LedgerToMlflowWriter(home, folder, SPEC)
    while writer.write_next_events():
        pass
    return Runs(home.tracking_uri, SPEC.name)


def check(runs: Runs) -> None:
    """Each trial has one run, ended as it ended, with each epoch once."""
    assert {name: run.info.status for name, run in runs.by_name.items()} == STATUS
    assert len(runs.all) == len(STATUS)
    assert runs.history("trial 4, seed 0", "val/accuracy") == [(1, 0.1), (2, 0.2)]


def test_runs_are_nested_and_end_as_the_ledger_says(brought: Runs) -> None:
    check(brought)
    ids = {name: run.info.run_id for name, run in brought.by_name.items()}
    parents = {name: run.data.tags.get("mlflow.parentRunId") for name, run in brought.by_name.items()}
    assert parents.pop("quickstart") is None
    assert parents.pop("trial 0, seed 1") == ids["trial 0, seed 0"]
    assert set(parents.values()) == {ids["quickstart"]}
    assert all(run.info.end_time >= run.info.start_time for run in brought.all)


def test_runs_say_what_they_were(brought: Runs) -> None:
    """Parameters under their keys, seed, code, libraries, data, node, and why one ended."""
    run_of_study = brought.by_name["quickstart"]
    for name, run in brought.by_name.items():
        tags = run.data.tags
        expected = {"study.version": "1", "study.dirty": "False", "study.data": "d", "version.torch": "2"}
        assert expected.items() <= tags.items()
        assert tags["mlflow.source.git.commit"] == "abc"
        assert (tags["study.owner"], tags["mlflow.user"]) == ("ada", "ada")
        assert (tags["mlflow.source.name"], tags["mlflow.source.type"]) == ("study 1", "LOCAL")
        if name != "quickstart":
            seed = {} if name == "best: trial 0" else {"train.seed": int(name == "trial 0, seed 1")}
            differing = {key: value for key, value in {**PARAMS, **seed}.items() if key not in run_of_study.data.params}
            assert run.data.params == {key: str(value) for key, value in {**differing, **seed}.items()}
        (read,) = run.inputs.dataset_inputs
        assert (read.dataset.name, read.dataset.digest) == ("digits", "d"), "MLflow's column of data sets"
    tags = {name: run.data.tags for name, run in brought.by_name.items()}
    assert tags["trial 2, seed 0"]["pruned_by"] == "asha"
    assert tags["trial 3, seed 0"]["failure"] == "ValueError: no"
    assert tags["trial 3, seed 0"]["failure_kind"] == "BUG"
    assert tags["trial 3, seed 0"]["study.lost.1"] == "PREEMPTED: its process died"
    assert tags["trial 4, seed 0"]["study.node"] == "there:4"
    assert tags["trial 4, seed 0"].keys().isdisjoint(("pruned_by", "interrupted")), (
        "it was cut off, and then ran to its end"
    )
    assert tags["quickstart"]["study.extended"] == "30"
    for of_run in tags.values():
        assert of_run["study.data"] == SESSION["data"]


def test_a_configuration_has_the_mean_over_its_seeds(brought: Runs) -> None:
    metrics = brought.by_name["trial 0, seed 0"].data.metrics
    assert metrics["val/accuracy_mean"] == pytest.approx(0.3)
    assert metrics["val/accuracy_sd"] == pytest.approx(0.2 / 2**0.5)
    assert "val/accuracy_n" not in metrics, "a count draws no chart"
    assert brought.by_name["trial 0, seed 0"].data.tags["study.seeds_complete"] == "2"
    for name in ("trial 0, seed 1", "trial 2, seed 0", "trial 4, seed 0"):
        assert "val/accuracy_mean" not in brought.by_name[name].data.metrics


@pytest.mark.slow
def test_a_sitting_without_news_adds_nothing_to_the_results(home: Home, folder: StudyFolder) -> None:
    """Each driver added a row of each metric at step 0; a result that changes is a point further on."""
    bring(home, folder)
    for state in ("interrupted", "complete"):
        ledger = Ledger(folder.ledger_file)
        ledger.append(SessionOpened(**SESSION))
        ledger.append(SessionClosed(state=state))
        ledger.close()
        runs = bring(home, folder)
    folder.tracking_state_file.unlink()
    bring(home, folder)
    best = {name: runs.history("quickstart", f"best/val/{name}") for name in ("accuracy", "accuracy_n")}
    assert best == {"accuracy": [(4, pytest.approx(0.3))], "accuracy_n": []}
    assert runs.by_name["quickstart"].data.tags["study.best_seeds"] == "0, 1"
    assert runs.history("quickstart", "baseline/val/accuracy") == []
    ledger = Ledger(folder.ledger_file)
    ledger.append(SessionOpened(**SESSION))
    for trial, repeats in ((5, None), (6, 5)):
        stage = "search" if repeats is None else "replicate"
        ledger.append(TrialDecided(trial=trial, stage=stage, params=PARAMS, seed=trial - 5, repeats=repeats))
        ledger.append(TrialStarted(trial=trial, node="here"))
        for epoch in (1, 2):
            ledger.append(EpochReported(trial=trial, epoch=epoch, metrics={"val/accuracy": 0.9}))
        ledger.append(TrialEnded(trial=trial, state="complete"))
    ledger.append(SessionClosed(state="complete"))
    ledger.close()
    runs = bring(home, folder)
    assert runs.history("quickstart", "best/val/accuracy") == [(4, pytest.approx(0.3)), (7, 0.9)]
    assert runs.by_name["quickstart"].data.metrics["best/val/accuracy"] == 0.9


@pytest.mark.slow
def test_two_studies_of_one_name_in_one_mlflow_do_not_mix(
    home: Home, folder: StudyFolder, tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two people, each with a home, share an MLflow; each lost the note of what is there, and one removes hers."""
    monkeypatch.chdir(tmp_path)  # an MLflow that is nobody's home keeps artifacts in the working folder
    monkeypatch.setenv("MLFLOW_TRACKING_URI", home.tracking_uri)
    (tmp_path / "other").mkdir()
    other = Home(tmp_path / "other")
    folders = {home: folder, other: make_study(other)}
    for _ in range(2):
        for one, studied in folders.items():
            bring(one, studied)
            studied.tracking_state_file.unlink()
    runs = Runs(home.tracking_uri, SPEC.name).all
    assert len(runs) == 2 * len(STATUS)
    ids = {read_entries(studied.ledger_file)[0]["id"] for studied in folders.values()}
    by_study = {one: [run for run in runs if run.data.tags["study.id"] == one] for one in ids}
    for mine in by_study.values():
        assert {str(run.info.run_name).removeprefix(BEST_RUN_PREFIX): run.info.status for run in mine} == STATUS
        parents = {run.data.tags["mlflow.parentRunId"] for run in mine if "mlflow.parentRunId" in run.data.tags}
        assert parents <= {run.info.run_id for run in mine}
    assert remove_study_runs(other, folders[other]) == len(STATUS)
    check(Runs(home.tracking_uri, SPEC.name))


def test_without_the_note_of_what_is_there_nothing_changes(home: Home, folder: StudyFolder) -> None:
    before = [run.to_dictionary() for run in bring(home, folder).all]
    folder.tracking_state_file.unlink()
    again = bring(home, folder)
    assert [run.to_dictionary() for run in again.all] == before
    check(again)


@pytest.mark.slow
def test_a_writer_that_ends_after_any_share_is_made_up_for(
    home: Home, folder: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each share is written twice: its note is lost the first time, as when a process is killed in between."""
    monkeypatch.setattr(writing, "EVENTS_PER_BATCH", 5)
    more = True
    while more:
        with monkeypatch.context() as patch:
            patch.setattr(TrackingState, "save", lambda *_: None)
            LedgerToMlflowWriter(home, folder, SPEC).write_next_events()
        more = LedgerToMlflowWriter(home, folder, SPEC).write_next_events()
    check(Runs(home.tracking_uri, SPEC.name))


class Failing:
    """A client whose n-th call raises, once: before it does anything, or after it did."""

    def __init__(self, client: Any, fails_at: int, after: bool) -> None:
        self._client, self._left, self._after = client, fails_at, after

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        def call(*arguments: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left != 0:
                return method(*arguments, **named)
            if self._after:
                method(*arguments, **named)
            raise ConnectionError("the server went away")

        return call


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("fails_at", [4, 9, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 21))])
def test_a_request_that_fails_is_made_up_for(
    home: Home, folder: StudyFolder, monkeypatch: pytest.MonkeyPatch, fails_at: int, after: bool
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(writing, "MlflowRunStore", lambda client, *_: MlflowRunStore(Failing(client, fails_at, after)))  # type: ignore[arg-type]
        writer = LedgerToMlflowWriter(home, folder, SPEC)
        with pytest.raises(ConnectionError):
            writer.write_next_events()
    check(bring(home, folder))


@pytest.mark.slow
def test_a_request_that_was_given_up_and_is_carried_out_late_leaves_no_second_run(
    home: Home, folder: StudyFolder
) -> None:
    """As on a server that slept: a run is made again, and the first request for it arrives after that."""
    runs = bring(home, folder)
    first = runs.by_name["trial 2, seed 0"]
    client = MlflowClient(home.tracking_uri)
    client.create_run(first.info.experiment_id, first.info.start_time, first.data.tags, "trial 2, seed 0")
    held, last = Ledger(folder.ledger_file), read_entries(folder.ledger_file)[-1]
    held.append(entry_to_event(last))
    held.close()
    LedgerToMlflowWriter(home, folder, SPEC, since=first.info.start_time).write_next_events()
    check(Runs(home.tracking_uri, SPEC.name))
    assert folder.tracking_state_file.read_text().count(first.info.run_id) == 1


def test_a_final_training_is_nested_in_its_study_in_one_experiment(home: Home, folder: StudyFolder) -> None:
    """Also where it is deleted later: the study stays. One whose study this MLflow has not got has an experiment."""
    runs = bring(home, folder)
    own_id = read_entries(folder.ledger_file)[0]["id"]
    for origin, place in (({"study": SPEC.name, "study_id": own_id}, SPEC.name), ({"study": "elsewhere"}, "alone")):
        final = replace(SPEC, name=place if place == "alone" else "final", final_seeds=(7,), origin=origin)
        trained = home.create_study(final)
        ledger = Ledger(trained.ledger_file)
        ledger.append(SessionOpened(**SESSION))
        ledger.append(TrialDecided(trial=0, stage="final", params={}, seed=7))
        ledger.append(TrialStarted(trial=0, node="here"))
        ledger.append(SessionClosed(state="complete"))
        ledger.close()
        writer = LedgerToMlflowWriter(home, trained, final)
        assert writer.write_next_events()
        found = Runs(home.tracking_uri, place).by_name
        above = runs.by_name["quickstart"].info.run_id if place == SPEC.name else None
        assert found[final.name].data.tags.get("mlflow.parentRunId") == above
        trained_run = found[f"{final.name}, seed 7"]
        assert trained_run.data.tags["mlflow.parentRunId"] == found[final.name].info.run_id
    assert remove_study_runs(home, home.find_study("final")) == 2
    check(Runs(home.tracking_uri, SPEC.name))


def test_the_page_offers_the_search_alone_and_what_ran_again_by_views(brought: Runs) -> None:
    experiment = brought.client.get_experiment(brought.all[0].info.experiment_id)
    views = saved_views(experiment.tags)
    assert set(views) == {"Results", "Search", "Fresh seeds", "Final training", "All trials"}
    search, fresh = views["Search"], views["Fresh seeds"]
    assert (search["orderByKey"], search["orderByAsc"]) == ("metrics.`val/accuracy`", False)
    assert {f"params.`{key}`" for key in SPEC.search.space} <= set(search["selectedColumns"])
    assert not any("test/" in column for column in search["selectedColumns"]), "the search knows no test split"
    assert "metrics.`test/accuracy`" in fresh["selectedColumns"]
    assert [by["groupByData"] for by in fresh["groupBy"]["groupByKeys"]] == ["study.configuration"]
    params = [f"params.`{key}`" for key in SPEC.search.space]
    assert views["Results"]["selectedColumns"] == ["metrics.`val/accuracy`", "metrics.`test/accuracy`", *params]
    of_loss = saved_views(saved_view_tags(quickstart("search.metric=val/shrunk_unbiased_log_loss")))["Results"]
    assert [column.partition("`")[2].rstrip("`") for column in of_loss["selectedColumns"][: -len(params)]] == [
        "val/shrunk_unbiased_log_loss",
        "test/shrunk_unbiased_log_loss",
        "test/shrunk_unbiased_accuracy",
        "val/shrunk_unbiased_accuracy",
        "test/accuracy",
    ], "the accuracy that goes with the metric is before the biased one"


def test_the_description_of_an_experiment_links_to_each_view(brought: Runs) -> None:
    """Its plain page shows studies without a metric."""
    experiment = brought.client.get_experiment(brought.all[0].info.experiment_id)
    note = experiment.tags["mlflow.note.content"]
    for tag in experiment.tags:
        if tag.startswith("mlflow.sharedViewState."):
            key = tag.rpartition(".")[2]
            assert f"(#/experiments/{experiment.experiment_id}/runs?viewStateShareKey={key}&" in note


def test_no_two_columns_of_a_view_have_heads_that_are_cut_alike() -> None:
    """The UI's columns have room for 12 characters, unless the view says how wide they are."""
    of_loss = quickstart("search.metric=val/shrunk_unbiased_log_loss")
    for view in saved_views(saved_view_tags(of_loss)).values():
        assert set(view["selectedColumns"]) <= set(view["columnOrder"])
        for column in view["selectedColumns"]:
            assert view["columnWidths"][column] >= 7 * len(column.partition("`")[2])
        assert view["columnWidths"]["attributes.`Run Name`"] >= 6.6 * len("★ trial 13, seed 0, fold 3") + 60
    of_birds = saved_views(saved_view_tags(replace(of_loss, name="birds-of-the-north")))
    for name in ("Results", "Final training"):
        pixels = of_birds[name]["columnWidths"]["attributes.`Run Name`"]
        assert pixels >= 6.6 * len("birds-of-the-north-baseline-final, seed 6") + 60, "its end tells it from the other"


def test_every_stage_is_in_one_view_besides_that_of_all_trials() -> None:
    assert {*SEARCH_STAGES, *RERUN_STAGES, "final"} == set(get_args(Stage))


def test_the_page_of_a_final_training_offers_its_seeds() -> None:
    assert set(saved_views(saved_view_tags(final_training_spec(load_study("quickstart"), [7])))) == {"Final training"}


def test_the_view_leaves_out_parameters_of_one_method_among_several() -> None:
    shown = saved_views(saved_view_tags(load_study("quickstart")))["Search"]["selectedColumns"]
    assert shown[1:3] == ["params.`method.name`", "params.`train.learning_rate`"]


def test_the_view_of_final_trainings_has_the_test_accuracies_beside_a_log_loss() -> None:
    of_loss = quickstart("search.metric=val/shrunk_unbiased_log_loss")
    shown = saved_views(saved_view_tags(of_loss))["Final training"]["selectedColumns"]
    on_test = ["shrunk_unbiased_log_loss", "shrunk_unbiased_accuracy", "accuracy"]
    assert [column for column in shown if "test/" in column] == [f"metrics.`test/{name}`" for name in on_test]


def test_the_view_has_limits_that_are_broken_and_the_accuracy_beside_a_log_loss() -> None:
    limited = quickstart("search.metric=val/log_loss", "search.constraints=[val/equalized_odds <= 0.2]")
    shown = saved_views(saved_view_tags(limited))["Search"]["selectedColumns"]
    assert {"metrics.`val/log_loss`", "metrics.`val/accuracy`", "tags.`study.broken_limits`"} <= set(shown)


def test_the_folds_of_a_data_set_are_one_in_mlflow() -> None:
    """Of one name and digest MLflow keeps what it is told first: that must be right for a final training, too."""
    rows = {"0": {"train": 6, "val": 3, "test": 2}, "1": {"train": 5, "val": 4, "test": 2}}
    rows["none"] = {"train": 9, "test": 2}
    told = [
        DatasetSummary(title="a", digest=f"12ab, 2 folds of seed 0: fold {fold}", shape=[1], rows=of, sources=[])
        for fold, of in rows.items()
    ]
    found = {(one.digest, one.profile) for each in told for one in [to_dataset_input({"name": "table"}, each).dataset]}
    assert found == {("12ab", '{"rows": {"folds": 9, "test": 2}, "shape": [1]}')}
