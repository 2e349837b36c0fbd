"""What events of a ledger are in MLflow."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import own_functions
import pytest
from helpers import Told, quickstart
from helpers import events as told_events

from study.api.run_study import build_function_study
from study.home.ledger_line import Entry
from study.home.record import StudyRecord
from study.spec import StudySpec
from study.tracking.mlflow_runs import RunUpdate, _run_key_of_tags
from study.tracking.runs_from_events import BEST_RUN_PREFIX, EventTranslator, study_params
from study.tracking.tracking_state import STUDY_RUN_KEY, TrackingState

PARAMS = {"method.alpha": 1.0, "method.lambda": 0.0, "method.epsilon": 0.0}
DEFAULTS: dict[str, Any] = {
    "metric": "val/accuracy",
    "maximize": None,
    "epochs": 2,
    "fixed": {"batch": 32},
    "baseline": None,
    "assignments": [],
}
TRIALS = (
    Told("search", [0.5, 0.9, 0.1], further={"val/equalized_odds": 0.25}),
    Told("search", [0.5, 0.4], "pruned"),
    Told("search", [0.5], "failed"),
)


def brought(spec: StudySpec, *trials: Told, more: Iterable[tuple[str, dict[str, Any]]] = ()) -> dict[str, RunUpdate]:
    """What a ledger with these trials, and `more` events, is for each run."""
    found: list[Entry] = [{"event": "created", "id": "study", "time": 0.0}]
    for at, (name, fields) in enumerate([*told_events(*trials), *more, ("closed", {"state": "complete"})], 1):
        found.append({"event": name, "time": float(at), **{key: v for key, v in fields.items() if v is not None}})
    return {
        change.run_key: change for change in EventTranslator(spec, TrackingState(""), StudyRecord()).translate(found)
    }


def test_a_trial_tells_its_chosen_epoch_and_the_values_there() -> None:
    """Beside its course, which stays as it was; a failed one has none."""
    by_key = brought(quickstart("search.epoch=best", "search.epoch_window=2"), *TRIALS)
    points = {
        key: {point.name: (point.value, point.step) for point in by_key[key].metric_values} for key in ("0", "1", "2")
    }
    chosen = {name: value for name, value in points["0"].items() if name.startswith("chosen/")}
    assert chosen == {"chosen/epoch": (2, 3), "chosen/val/accuracy": (0.7, 3), "chosen/val/equalized_odds": (0.25, 3)}
    assert [point.value for point in by_key["0"].metric_values if point.name == "val/accuracy"] == [0.5, 0.9, 0.1]
    assert points["1"]["chosen/val/accuracy"] == (0.45, 2)
    assert not any(name.startswith("chosen/") for name in points["2"])


def test_a_baseline_that_is_the_best_has_the_star() -> None:
    by_key = brought(quickstart(), Told("baseline", [0.9], params=PARAMS), Told("search", [0.5]))
    assert by_key["0"].new_name.startswith(BEST_RUN_PREFIX)
    assert {"study.best": "true", "study.baseline": "true"}.items() <= by_key["0"].tags.items()


def test_a_trial_that_breaks_a_limit_is_tagged_with_it() -> None:
    gap = "val/equalized_odds"
    told = [Told("search", [accuracy], further={gap: odds}) for accuracy, odds in ((0.9, 0.3), (0.8, 0.1))]
    by_key = brought(quickstart(f"search.constraints=[{gap} <= 0.2]", "search.confirm.top=0"), *told)
    assert [by_key[key].tags.get("study.broken_limits") for key in ("0", "1")] == [f"{gap} <= 0.2", None]


def test_of_several_metrics_the_front_is_marked_and_the_star_has_its_rule() -> None:
    gap, metrics = "val/equalized_odds", "search.metric=[val/accuracy, val/equalized_odds]"
    values = [(0.9, 0.3), (0.85, 0.1), (0.7, 0.2)]
    told = [Told("search", [accuracy], params=PARAMS, further={gap: odds}) for accuracy, odds in values]
    by_key = brought(quickstart(metrics, "search.confirm.top=0"), *told)
    assert [by_key[key].tags.get("study.front") for key in ("0", "1", "2")] == ["true", "true", None]
    assert [by_key[key].tags.get("study.best") for key in ("0", "1", "2")] == ["true", None, None]
    assert by_key["0"].new_name.startswith(BEST_RUN_PREFIX)
    assert by_key[STUDY_RUN_KEY].tags["study.chosen_by"] == "the best val/accuracy"


def test_what_a_rule_picked_is_named_as_such() -> None:
    trials = (
        Told("search", [0.4], params=PARAMS, further={"val/balanced_accuracy": 0.5}),
        Told("search", [0.5], params=PARAMS),
        Told("rule", [0.4], params=PARAMS, seed=1, repeats=0, tested={"test/accuracy": 0.3}),
    )
    by_key = brought(quickstart(), *trials, more=[("confirming", {"top": 2, "seeds": 3, "rules": True})])
    study, run = by_key[STUDY_RUN_KEY], by_key["2"]
    assert (run.name, run.parent_key) == ("trial 0, seed 1", STUDY_RUN_KEY)
    tags = {"study.stage": "rule", "study.repeats": "0", "study.picked_by": "balanced_accuracy"}
    assert tags.items() <= run.tags.items()
    assert {point.name: point.value for point in run.metric_values}["test/accuracy"] == 0.3
    assert study.tags["study.confirming"] == "top 2 on 3 seeds, and the picks of other rules"
    assert {point.name: point.value for point in study.metric_values}["best/val/accuracy"] == 0.5


def test_the_steps_of_an_ablation_say_what_they_moved() -> None:
    end = {"method.alpha": 0.1, "method.lambda": 1.5, "method.epsilon": 0.25}
    steps = [["method.lambda"], ["method.alpha", "method.epsilon"]]
    more = [("ablating", {"trial": 1, "steps": steps, "first": 4, "seeds": 2})]
    for number, (values, repeats) in enumerate((({**PARAMS, "method.lambda": 1.5}, None), (end, 1), (PARAMS, 0)), 2):
        decided = {"trial": number, "stage": "ablation", "params": values, "seed": 4, "repeats": repeats}
        more += [("trial", decided), ("started", {"trial": number, "node": "here"})]
    found = brought(quickstart(), Told("baseline", [0.4], params=PARAMS), Told("search", [0.5], params=end), more=more)
    runs = [found[key] for key in "234"]
    names = ["ablation of method.lambda, seed 4", "trial 1, seed 4", "baseline, seed 4"]
    moved = ["method.lambda", "method.alpha, method.lambda, method.epsilon", "none"]
    assert [(run.name, run.tags["study.moved"]) for run in runs] == list(zip(names, moved, strict=True))
    assert [(run.tags["study.stage"], run.tags.get("study.repeats")) for run in runs] == [
        ("ablation", repeats) for repeats in (None, "1", "0")
    ]
    told = "trial 1 by method.lambda, method.alpha and method.epsilon on 2 seeds from 4 on"
    assert found[STUDY_RUN_KEY].tags["study.ablating"] == told


def test_a_trial_has_its_device_as_tags_and_the_study_the_nodes_that_were_not_used() -> None:
    device = {"name": "NVIDIA H100", "driver": "580.65.06", "cuda": "13.2", "capability": "9.0"}
    opened: Entry = {"event": "opened", "time": 1.0, "owner": "ada"}
    events: list[Entry] = [{"event": "created", "id": "study", "time": 0.0}, opened]
    events.append({"event": "trial", "time": 2.0, "trial": 0, "stage": "search", "params": {}, "seed": 0})
    events.append({"event": "started", "time": 3.0, "trial": 0, "node": "there:1", "device": device})
    events.append({"event": "unusable", "time": 4.0, "node": "other", "reason": "its driver is too old"})
    found = EventTranslator(quickstart(), TrackingState(""), StudyRecord())
    study, trial = found.translate(events)
    assert {key: value for key, value in trial.tags.items() if key.startswith("study.device")} == {
        "study.device": "NVIDIA H100",
        "study.device.driver": "580.65.06",
        "study.device.cuda": "13.2",
        "study.device.capability": "9.0",
    }
    assert study.tags["study.unusable_nodes"] == "other: its driver is too old"
    (again,) = found.translate([opened])
    assert "study.unusable_nodes" in again.removed_tags


def test_the_run_of_a_trial_that_runs_again_holds_each_epoch_once_and_no_failure() -> None:
    spec, events = quickstart("train.epochs=2", "search.early_stopping={}", "search.replicates=2"), list[Entry]()

    def add(name: str, **fields: object) -> None:
        events.append({"event": name, "time": float(len(events)), **fields})

    add("created", id="study")
    add("opened", owner="ada")
    for number, stage, fields in ((0, "search", {}), (1, "replicate", {"repeats": 0})):
        add("trial", trial=number, stage=stage, params={}, seed=number, **fields)
        add("started", trial=number, node="here:1")
        add("report", trial=number, epoch=1, metrics={"val/accuracy": 0.5})
    add("ended", trial=0, state="failed", kind="BUG", reason="it broke")
    add("ended", trial=1, state="pruned", reason="trial 0, its first seed, was failed")
    add("closed", state="failed")
    add("retried", trials=[0, 1])
    add("opened", owner="ada")
    for number in (0, 1):
        add("started", trial=number, node="here:1")
        for epoch in (1, 2):
            add("report", trial=number, epoch=epoch, metrics={"val/accuracy": 0.5})
        add("ended", trial=number, state="complete")
    for change in EventTranslator(spec, TrackingState(""), StudyRecord()).translate(events):
        if change.run_key in ("0", "1"):
            assert [point.step for point in change.metric_values if point.name == "val/accuracy"] == [1, 2]
            assert change.status == "FINISHED"
            assert not change.tags.keys() & {"failure", "failure_kind", "pruned_by"}


def test_a_reason_why_test_was_not_read_goes_once_it_was() -> None:
    """In one change, and in another after it."""
    final = Told("final", [0.5], seed=1)
    unread, read = ("untested", {"trial": 0, "reason": "weights are gone"}), ("tested", {"trial": 0, "metrics": {}})
    assert brought(quickstart(), final, more=[unread])["0"].tags["test_failure"] == "weights are gone"
    by_key = brought(quickstart(), final, more=[unread, read])
    assert "test_failure" not in by_key["0"].tags
    assert "test_failure" in by_key["0"].removed_tags


def test_what_needs_no_search_has_a_run_of_its_own_and_the_star_where_it_is_the_result() -> None:
    beside = {"logistic_regression": {"val/accuracy": 0.8}, "majority": {"val/accuracy": 0.1}}
    more = [("reference", {"name": name, "metrics": metrics, "seconds": 2.0}) for name, metrics in beside.items()]
    more.append(("reference", {"name": "threshold_optimizer", "reason": "no room"}))
    trials = (Told("baseline", [0.5], params=PARAMS), Told("search", [0.7], params=PARAMS))
    by_key = brought(quickstart("search.references=true"), *trials, more=more)
    runs = {name: by_key[f"reference {name}"] for name in (*beside, "threshold_optimizer")}
    assert all(run.parent_key == STUDY_RUN_KEY and run.tags["study.kind"] == "reference" for run in runs.values())
    assert runs["threshold_optimizer"].params == {"method.name": "reference", "method.model": "threshold_optimizer"}
    assert [run.status for run in runs.values()] == ["FINISHED", "FINISHED", "FAILED"]
    assert [point.value for point in runs["logistic_regression"].metric_values] == [0.8]
    assert runs["threshold_optimizer"].tags["failure"] == "no room"
    assert [run.name for run in runs.values()][:2] == ["logistic regression", "the most frequent class for all"]
    assert runs["logistic_regression"].new_name == f"{BEST_RUN_PREFIX}logistic regression"
    assert [run.tags.get("study.result") for run in runs.values()] == ["true", "true", None]
    assert runs["logistic_regression"].tags["study.best"] == "true"
    assert "study.best" not in runs["majority"].tags | by_key["1"].tags
    assert all(_run_key_of_tags(run.tags) == f"reference {name}" for name, run in runs.items()), (
        "it is found again by its tags"
    )


def test_a_reference_that_replaces_a_trial_as_the_result_leaves_nothing_of_the_trial_beside_it() -> None:
    """MLflow takes no metric away: what is no result any more becomes NaN; a trial's seeds are not a reference's."""
    more: list[tuple[str, dict[str, Any]]] = [("closed", {"state": "complete"}), ("opened", {"owner": "ada"})]
    more.append(("reference", {"name": "logistic_regression", "metrics": {"val/accuracy": 0.8}, "seconds": 2.0}))
    trials = [Told("search", [value], params=PARAMS, seed=seed) for seed, value in enumerate([0.5, 0.7])]
    trials[1] = replace(trials[1], stage="replicate", repeats=0)
    run = brought(quickstart("search.references=true", "search.confirm.seeds=2"), *trials, more=more)[STUDY_RUN_KEY]
    values = {point.name: point.value for point in run.metric_values}
    assert values["best/val/accuracy"] == 0.8
    assert math.isnan(values["best/val/accuracy_sd"])
    assert values["search/val/accuracy_sd"] == pytest.approx(0.2 / 2**0.5)
    assert (run.tags.get("study.best_seeds"), run.tags["study.search_seeds"]) == (None, "0, 1")
    assert "study.best_seeds" in run.removed_tags


def values_of(run: RunUpdate) -> dict[str, float]:
    return {point.name: point.value for point in run.metric_values}


def test_best_and_baseline_are_a_row_each_with_the_metrics_of_a_trial() -> None:
    """As what needs no search is, so that one column compares them; the study's own run has those of its best."""
    spec = quickstart("search.confirm.top=0", "search.metric=val/log_loss")
    further = [{"val/accuracy": value, "val/auc": value} for value in (0.4, 0.9)]
    trials = [
        Told(stage, [loss], params=PARAMS, metric="val/log_loss", further=of)
        for stage, loss, of in zip(("baseline", "search"), (0.7, 0.3), further, strict=True)
    ]
    by_key = brought(spec, *trials)
    expected = {"val/log_loss": 0.3, "val/accuracy": 0.9}
    best, baseline = by_key["result best 1"], by_key["result baseline 0"]
    assert (best.name, values_of(best)) == ("★ best: trial 1", expected | {"val/auc": 0.9})
    assert baseline.name == "baseline"
    assert values_of(baseline) == {"val/log_loss": 0.7, "val/accuracy": 0.4, "val/auc": 0.4}
    assert expected.items() <= values_of(by_key[STUDY_RUN_KEY]).items()
    steps = {point.name: point.step for point in by_key[STUDY_RUN_KEY].metric_values}
    assert (steps["val/log_loss"], steps["best/val/log_loss"]) == (0, len(trials)), "a bar, and a line over trials"
    for key in ("result best 1", "result baseline 0"):
        run = by_key[key]
        assert (run.parent_key, run.status, run.tags["study.result"]) == (STUDY_RUN_KEY, "FINISHED", "true")
        assert _run_key_of_tags(run.tags) == key, "it is found again by its tags"
        assert {point.step for point in run.metric_values} == {0}, "MLflow draws a bar"
    assert "study.result" not in by_key[STUDY_RUN_KEY].tags
    assert "method.alpha = 1" in best.tags["mlflow.note.content"].replace("\\", "")
    assert best.params == {key: value for key, value in by_key["1"].params.items() if key != "train.seed"}
    assert (best.start_ms, best.end_ms) == (7_000, 9_000), "it lasts as its trial does"


def test_a_run_of_the_best_that_has_not_started_is_not_made_for_the_star() -> None:
    trials = [Told("baseline", [0.5]), Told("search", [0.9]), Told("confirm", [], "waiting", repeats=1, seed=1)]
    by_key = brought(quickstart(), *trials)
    assert by_key["1"].new_name == "★ trial 1, seed 0"
    assert "2" not in by_key


def test_a_trial_that_a_reference_replaces_as_the_result_is_no_row_as_the_best_any_more() -> None:
    more: list[tuple[str, dict[str, Any]]] = [("closed", {"state": "complete"}), ("opened", {"owner": "ada"})]
    more.append(("reference", {"name": "logistic_regression", "metrics": {"val/accuracy": 0.8}, "seconds": 2.0}))
    trials = (Told("baseline", [0.5], params=PARAMS), Told("search", [0.7], params=PARAMS))
    by_key = brought(quickstart("search.references=true", "search.confirm.top=0"), *trials, more=more)
    assert "study.result" in by_key["result best 1"].removed_tags
    search = by_key["result search 1"]
    assert (search.name, values_of(search)["val/accuracy"]) == ("search: trial 1", 0.7)
    assert values_of(by_key[STUDY_RUN_KEY])["val/accuracy"] == 0.8


def test_another_best_is_another_row_as_parameters_stay() -> None:
    first = (Told("baseline", [0.5], params=PARAMS), Told("search", [0.7], params=PARAMS))
    better = Told("search", [0.9], params=PARAMS | {"method.alpha": 2.0})
    n_first = sum(1 for _ in told_events(*first))
    more: list[tuple[str, dict[str, Any]]] = [("closed", {"state": "complete"}), ("opened", {"owner": "ada"})]
    more += list(told_events(*first, better))[n_first:]
    by_key = brought(quickstart("search.confirm.top=0"), *first, more=more)
    assert "study.result" in by_key["result best 1"].removed_tags
    assert by_key["result best 1"].new_name == "former best: trial 1"
    best = by_key["result best 2"]
    assert (best.tags["study.result"], float(best.params["method.alpha"])) == ("true", 2.0)


def test_each_of_the_front_is_a_row() -> None:
    trials = [
        Told("search", [value], params=PARAMS, further={"val/equalized_odds": gap})
        for value, gap in ((0.9, 0.5), (0.8, 0.1), (0.7, 0.3))
    ]
    metrics = "search.metric=[val/accuracy, val/equalized_odds]"
    by_key = brought(quickstart(metrics, "search.early_stopping={name: none}", "search.confirm={top: 0}"), *trials)
    rows = {run.name: values_of(run) for key, run in by_key.items() if key.startswith("result ")}
    assert rows == {
        "★ best: trial 0": {"val/accuracy": 0.9, "val/equalized_odds": 0.5},
        "front: trial 1": {"val/accuracy": 0.8, "val/equalized_odds": 0.1},
    }


def test_a_final_training_and_its_ensemble_are_a_row_each_under_the_studys_name() -> None:
    spec = replace(quickstart(), name="birds-final", final_seeds=(1, 2))
    joined = ("ensemble", {"trials": [0, 1], "metrics": {"test/accuracy": 0.7, "test/auc": 0.9}})
    tested = [("tested", {"trial": trial, "metrics": {"test/accuracy": 0.5 + 0.1 * trial}}) for trial in (0, 1)]
    by_key = brought(spec, *(Told("final", [0.5], seed=seed) for seed in (1, 2)), more=[*tested, joined])
    assert [by_key[key].name for key in ("0", "1")] == ["birds-final, seed 1", "birds-final, seed 2"]
    study, ensemble = by_key[STUDY_RUN_KEY], by_key["result ensemble"]
    assert study.tags["study.result"] == ensemble.tags["study.result"] == "true"
    assert values_of(study)["test/accuracy"] == values_of(study)["final/test/accuracy"] == pytest.approx(0.55)
    assert (ensemble.name, values_of(ensemble)["test/accuracy"]) == ("birds-final, ensemble", 0.7)


def test_a_row_of_results_has_the_metrics_of_what_needs_no_search_under_the_same_names() -> None:
    """Means over the fresh seeds, so that MLflow compares any two rows; deviations are of the study's metrics alone."""
    error = "val/accuracy_standard_error"
    names = ["val/accuracy", "val/group_0_1_accuracy", "test/accuracy", "test/equalized_odds", error]
    more = [("reference", {"name": "majority", "metrics": dict.fromkeys(names, 0.1), "seconds": 2.0})]
    further = {"val/group_0_1_accuracy": 0.25, error: 0.02}
    trials = [
        Told("baseline", [0.4], params=PARAMS, further=further),
        Told("search", [0.6], params=PARAMS | {"method.alpha": 2.0}, further=further),
    ]
    for of in (0, 1):
        tested = [{"test/accuracy": 0.5 + seed / 10, "test/equalized_odds": 0.3} for seed in (0, 1)]
        params = trials[of].params
        trials += [
            Told("confirm", [0.5 + of / 10], params=params, seed=seed, repeats=of, further=further, tested=values)
            for seed, values in zip((1, 2), tested, strict=True)
        ]
    by_key = brought(quickstart("search.references=true", "search.confirm={top: 1, seeds: 2}"), *trials, more=more)
    rows = [by_key[key] for key in ("reference majority", "result best 1", "result baseline 0")]
    found = [{name: value for name, value in values_of(row).items() if not name.endswith("_sd")} for row in rows]
    assert [{*of} for of in found] == [{*names}] * 3
    assert found[1] == pytest.approx(
        {
            "val/accuracy": 0.6,
            "val/group_0_1_accuracy": 0.25,
            "test/accuracy": 0.55,
            "test/equalized_odds": 0.3,
            error: 0.02,
        }
    )
    assert {name for name in values_of(rows[1]) if name.endswith("_sd")} == {"val/accuracy_sd", "test/accuracy_sd"}


def test_a_final_training_is_a_row_with_every_metric_and_its_ensemble_with_its_configuration() -> None:
    spec = replace(quickstart("search.space={}", "search.baseline=null"), name="birds-final", final_seeds=(1, 2))
    joined = ("ensemble", {"trials": [0, 1], "metrics": {"test/accuracy": 0.7, "test/auc": 0.9}})
    trials = [Told("final", [0.5], seed=seed, tested={"test/accuracy": 0.5, "test/auc": 0.6}) for seed in (1, 2)]
    by_key = brought(spec, *trials, more=[joined])
    study, ensemble = by_key[STUDY_RUN_KEY], by_key["result ensemble"]
    assert (values_of(study)["test/auc"], values_of(ensemble)["test/auc"]) == (0.6, 0.9)
    configuration = {name for name in study.params if name.startswith(("data.", "model.", "method.", "train."))}
    assert ensemble.params == {name: study.params[name] for name in configuration - {"train.seed"}}


def test_a_final_training_that_was_stopped_before_its_first_result_is_no_row() -> None:
    spec = replace(quickstart(), name="birds-final", final_seeds=(1, 2))
    stopped = brought(spec, Told("final", [0.5], "running", seed=1), Told("final", [], "waiting", seed=2))
    assert "study.result" not in stopped[STUDY_RUN_KEY].tags
    assert "study.result" in stopped[STUDY_RUN_KEY].removed_tags, "an earlier version set it"
    assert (stopped["0"].status, stopped["0"].tags["interrupted"]) == ("KILLED", "true")
    assert "1" not in stopped, "it has not started"
    begun = brought(spec, Told("final", [0.5], seed=1), Told("final", [0.5], "running", seed=2))
    assert begun[STUDY_RUN_KEY].tags["study.result"] == "true"


def test_a_trials_run_begins_when_the_trial_starts_not_when_it_waits_for_a_process() -> None:
    """Its duration is that of the report. What is lost or ends before it starts has a run that begins then."""
    entries: list[Entry] = [{"event": "created", "id": "study", "time": 0.0}]
    entries.append({"event": "opened", "time": 1.0, "owner": "ada"})
    for number, stage in enumerate(("search", "replicate", "search", "search")):
        fields = {"repeats": 0} if stage == "replicate" else {}
        entries.append(
            {"event": "trial", "time": 2.0, "trial": number, "stage": stage, "params": {}, "seed": 0, **fields}
        )
    found = EventTranslator(quickstart("search.replicates=2"), TrackingState(""), StudyRecord())
    assert {change.run_key for change in found.translate(entries)} == {STUDY_RUN_KEY}
    later: list[Entry] = [
        {"event": "started", "time": 10.0, "trial": 1, "node": "here"},
        {"event": "started", "time": 11.0, "trial": 0, "node": "here"},
        {"event": "ended", "time": 13.0, "trial": 1, "state": "complete"},
        {"event": "ended", "time": 14.0, "trial": 2, "state": "failed", "reason": "no process"},
        {"event": "lost", "time": 15.0, "trial": 3, "kind": "PREEMPTED", "reason": "its node died", "attempt": 1},
    ]
    runs = {change.run_key: change for change in found.translate(later)}
    assert (runs["1"].parent_key, runs["1"].start_ms, runs["1"].end_ms) == ("0", 10_000, 13_000)
    assert (runs["0"].parent_key, runs["0"].name, runs["0"].start_ms) == (STUDY_RUN_KEY, "trial 0, seed 0", 10_000)
    assert (runs["2"].start_ms, runs["2"].end_ms, runs["2"].status) == (14_000, 14_000, "FAILED")
    assert (runs["3"].name, runs["3"].start_ms) == ("trial 3, seed 0", 15_000)


def test_a_trials_run_says_what_it_is_for() -> None:
    again = Told("confirm", [0.5], seed=1, repeats=0)
    tried = Told("search", [0.5], params={"method.alpha": 0.25, "train.batch_size": 64})
    by_key = brought(quickstart(), Told("baseline", [0.9], params=PARAMS), tried, again)
    told = [by_key[key].tags["mlflow.note.content"] for key in ("0", "1", "2")]
    assert told[0].startswith("The baseline")
    assert told[1].splitlines()[0] == "A configuration that the search tried."
    assert told[1].replace("\\", "").endswith("\n\nmethod.alpha = 0.25, train.batch_size = 64")
    assert told[2].startswith("Configuration 0 again on a fresh seed")


def test_a_trials_run_says_which_method_a_label_stands_for() -> None:
    """Its parameters have the method's own name."""
    labelled = quickstart(
        "search.alternatives.method.balanced={name: bias_balanced_cross_entropy}",
        "search.space={method.name: {choices: [eps_sup_info_nce, balanced]}}",
        "search.baseline={method.name: eps_sup_info_nce}",
    )
    run = brought(labelled, Told("search", [0.5], params={"method.name": "balanced"}))["0"]
    assert "method.name = balanced (bias_balanced_cross_entropy)" in run.tags["mlflow.note.content"].replace("\\", "")
    assert run.params["method.name"] == "bias_balanced_cross_entropy"


def test_a_functions_study_has_only_parameters_that_the_function_is_given() -> None:
    spec = build_function_study(own_functions.train, name="own", space={"rate": (0.1, 0.9)}, **DEFAULTS)[0]
    names = study_params(spec).keys()
    assert {"method.function", "method.batch", "train.epochs", "search.space.method.rate"} <= names
    assert not {"train.optimizer", "data.name", "model.name"} & names


def test_a_studys_run_shows_its_own_metric_of_the_best_first() -> None:
    further = {"val/auc": 0.7}
    by_key = brought(
        quickstart("search.confirm.top=0"),
        Told("baseline", [0.4], params=PARAMS, further=further),
        Told("search", [0.9], further=further),
    )
    names = [point.name for point in by_key[STUDY_RUN_KEY].metric_values]
    assert [name for name in names if name.endswith("/accuracy")] == [
        "val/accuracy",
        "best/val/accuracy",
        "baseline/val/accuracy",
    ]
    assert names[0] == "val/accuracy"


def test_a_parameter_that_does_not_apply_to_a_trial_is_not_among_its_own() -> None:
    """`method.alpha` is searched for one method alone; the file gives the other a value, too."""
    space = (
        "search.space={method.name: {choices: [cross_entropy, eps_sup_info_nce]},"
        " method.alpha: {low: 0.1, high: 1.0, when: {method.name: [eps_sup_info_nce]}}}"
    )
    spec = quickstart(space, "search.baseline=null", "search.confirm.top=0")
    given = ({"method.name": "cross_entropy"}, {"method.name": "eps_sup_info_nce", "method.alpha": 0.5})
    by_key = brought(spec, *(Told("search", [0.5], params=params) for params in given))
    assert [by_key[key].params.get("method.alpha") for key in ("0", "1")] == [None, "0.5"]


@pytest.mark.parametrize("told", ["fold 0", "fold none"])
def test_a_run_names_the_fold_that_validates_it(told: str) -> None:
    """A study with folds names none, and a final training that it trains on all: earlier ledgers of it say fold 0."""
    whole = "12ab, 3 folds of seed 0"
    spec = quickstart("data.val=biased", "data.folds=3", "search.confirm.top=0")
    opened: Entry = {"event": "opened", "time": 1.0, "owner": "ada", "data": f"{whole}: {told}"}

    def data_of_runs(spec: StudySpec, **fields: object) -> list[str]:
        trial: Entry = {"event": "trial", "time": 2.0, "trial": 0, "params": {}, "seed": 0, **fields}
        started: Entry = {"event": "started", "time": 3.0, "trial": 0, "node": "here:1"}
        created: Entry = {"event": "created", "id": "study", "time": 0.0}
        found = EventTranslator(spec, TrackingState(""), StudyRecord())
        changes = found.translate([created, opened, trial, started, opened, started])
        return [change.tags["study.data"] for change in changes]

    assert data_of_runs(spec, stage="search", fold=2) == [whole, f"{whole}: fold 2"]
    final = replace(spec, final_seeds=(0,))
    assert data_of_runs(final, stage="final") == [f"{whole}: fold none"] * 2
