"""The filters of the guide's page on tracking find in a real MLflow what the page says."""

import re

import pytest
from helpers import ROOT, Told, quickstart, write_ledger
from runs import Runs, saved_views

from study.home.events import (
    EpochReported,
    SearchExtended,
    SessionClosed,
    SessionOpened,
    TrialDecided,
    TrialEnded,
    TrialStarted,
)
from study.home.folder import Home
from study.home.ledger import Ledger
from study.tracking.ledger_to_mlflow import LedgerToMlflowWriter
from study.tracking.runs_from_events import BEST_RUN_PREFIX

PARAMS = {"method.alpha": 1.0, "method.lambda": 0.0, "method.epsilon": 0.0}
SPEC = quickstart("search.confirm={top: 1, seeds: 2}")
BETTER, WORSE = PARAMS | {"method.lambda": 1.0}, PARAMS | {"method.lambda": 2.0}
TRIALS = (
    Told("baseline", [0.5], params=PARAMS),
    Told("search", [0.75], params=BETTER),
    Told("search", [0.2], "failed", params=WORSE),
    *(Told("confirm", [0.4], params=PARAMS, seed=seed, repeats=0) for seed in (1, 2)),
    *(Told("confirm", [0.7], params=BETTER, seed=seed, repeats=1) for seed in (1, 2)),
)
BASELINE = {f"baseline, seed {seed}" for seed in (0, 1, 2)}
BEST = {f"trial 1, seed {seed}" for seed in (0, 1, 2)}
FOUND = {
    "tags.`study.kind` = 'study'": {"quickstart"},
    "tags.`study.kind` = 'own'": set(),
    "tags.`study.result` = 'true'": {"best: trial 1", "baseline"},
    "tags.`study.kind` = 'reference'": set(),
    "tags.`study.front` = 'true'": set(),
    "tags.`study.kind` = 'trial'": {*BASELINE, *BEST, "trial 2, seed 0", "trial 7, seed 0"},
    "tags.`study.best` = 'true'": BEST,
    "tags.`study.baseline` = 'true'": BASELINE,
    "tags.`study.configuration` = '1'": BEST,
    "tags.`study.stage` = 'search' and attributes.status = 'FINISHED'": {"trial 1, seed 0"},
    "tags.`study.stage` = 'confirm'": {*BASELINE, *BEST} - {"baseline, seed 0", "trial 1, seed 0"},
    "tags.pruned_by = 'asha'": {"trial 7, seed 0"},
    "attributes.status = 'FAILED'": {"trial 2, seed 0"},
    "metrics.`val/accuracy` >= 0.7 and params.`method.lambda` = '1.0'": {*BEST, "best: trial 1"},
}


@pytest.fixture
def runs(home: Home) -> Runs:
    folder = home.create_study(SPEC)
    write_ledger(folder.ledger_file, *TRIALS)
    ledger = Ledger(folder.ledger_file)
    ledger.append(TrialDecided(trial=7, stage="search", params=WORSE, seed=0))
    ledger.append(TrialStarted(trial=7, node="here"))
    ledger.append(EpochReported(trial=7, epoch=1, metrics={"train/loss": 1.0, "val/accuracy": 0.1}))
    ledger.append(TrialEnded(trial=7, state="pruned", reason="asha"))
    ledger.append(SessionClosed(state="complete"))
    ledger.close()
    LedgerToMlflowWriter(home, folder, SPEC).write_next_events()
    return Runs(home.tracking_uri, SPEC.name)


def names(runs: Runs, query: str) -> set[str]:
    found = runs.client.search_runs([runs.all[0].info.experiment_id], query)
    return {str(run.info.run_name).removeprefix(BEST_RUN_PREFIX) for run in found}


@pytest.mark.slow
def test_each_filter_of_the_page_finds_what_it_says(runs: Runs) -> None:
    rows = re.findall(
        r"^\| ``? ?(.+?) ?``? \|", (ROOT / "study/guide/tracking.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    of_page = [row for row in rows if " = " in row]
    assert set(of_page) == FOUND.keys()
    assert {query: names(runs, query) for query in FOUND} == FOUND
    assert runs.starred == {*BEST, "best: trial 1"}


@pytest.mark.slow
def test_the_tag_of_the_best_goes_to_the_next_best(home: Home, runs: Runs) -> None:
    """And is taken from the last one, also where the note of what is in MLflow is lost."""
    folder = home.find_study(SPEC.name)
    ledger = Ledger(folder.ledger_file)
    ledger.append(SessionOpened(owner="ada"))
    ledger.append(SearchExtended(trials=30))
    ledger.append(TrialDecided(trial=8, stage="search", params=PARAMS | {"method.lambda": 1.5}, seed=0))
    ledger.append(TrialStarted(trial=8, node="here"))
    for epoch in range(1, SPEC.epochs + 1):
        ledger.append(EpochReported(trial=8, epoch=epoch, metrics={"val/accuracy": 0.99}))
    ledger.append(TrialEnded(trial=8, state="complete"))
    for number, seed in ((9, 1), (10, 2)):
        params = PARAMS | {"method.lambda": 1.5}
        ledger.append(TrialDecided(trial=number, stage="confirm", params=params, seed=seed, repeats=8))
        ledger.append(TrialStarted(trial=number, node="here"))
        ledger.append(EpochReported(trial=number, epoch=1, metrics={"val/accuracy": 0.98}))
        ledger.append(TrialEnded(trial=number, state="complete"))
    ledger.append(SessionClosed(state="complete"))
    ledger.close()
    for _ in range(2):
        LedgerToMlflowWriter(home, folder, SPEC).write_next_events()
        best = {f"trial 8, seed {seed}" for seed in (0, 1, 2)}
        assert names(runs, "tags.`study.best` = 'true'") == best
        assert Runs(home.tracking_uri, SPEC.name).starred == {*best, "best: trial 8"}, "the row of results, too"
        assert names(runs, "tags.`study.baseline` = 'true'") == BASELINE
        folder.tracking_state_file.unlink()


def test_each_view_shows_the_trials_of_its_stages(runs: Runs) -> None:
    experiment = runs.client.get_experiment(runs.all[0].info.experiment_id)
    found = {name: names(runs, view["searchFilter"]) for name, view in saved_views(experiment.tags).items()}
    search = {"baseline, seed 0", "trial 1, seed 0", "trial 2, seed 0", "trial 7, seed 0"}
    assert found == {
        "Results": {"best: trial 1", "baseline"},
        "Search": search,
        "Fresh seeds": FOUND["tags.`study.stage` = 'confirm'"],
        "Final training": set(),
        "All trials": FOUND["tags.`study.kind` = 'trial'"],
    }


def test_what_is_compared_comes_first(runs: Runs) -> None:
    """The UI's plots begin with the first metric of a run, and its charts with the experiment's primary one."""
    experiment = runs.client.get_experiment(runs.all[0].info.experiment_id)
    assert experiment.tags["mlflow.experiment.primaryMetric.name"] == "val/accuracy"
    for run in runs.all:
        if run.data.tags["study.kind"] == "trial":
            assert next(iter(run.data.metrics)) == "val/accuracy"
