from dataclasses import replace
from pathlib import Path

import image_folders
import numpy as np
import pandas as pd
import pytest
from helpers import Told, quickstart, record
from told_studies import of_other_data, only, over, said, trained_twice

from study import data
from study.analysis.report.caveats import NoIntervalOfValue, caveat_statements
from study.analysis.report.conclusions import (
    EnsembleValues,
    FinalTrainingValues,
    GainOverBaseline,
    InputRevealsClass,
    LikelyShortcut,
    MetricDifferenceToBaseline,
    NoResultYet,
    SuspiciousResult,
    TrialDataDiffer,
    ValueWithoutComparison,
    conclusion_statements,
)
from study.analysis.report.report_lead import report_lead_statements
from study.analysis.statistics.debiasing_metrics import ClassBelowChance, NoBetterThanChance
from study.analysis.statistics.next_step import NotBetterThanGuessing, next_steps
from study.commands.final_training import final_training_spec
from study.data import summarise_datasets
from study.home.events import EnsembleMeasured, GroupSampleCounts, entry_to_event
from study.ranking import Results
from study.ranking.study_summary import result_means_and_deviations, summarise_study, summary_lines
from study.spec import load_study
from study.trained.model_card import described_model, model_card


def test_final_training(final_spec, writer):
    study = writer()
    study.trial("final", [0.5], state="failed")
    assert conclusion_statements(Results(final_spec, study.record())) == [NoResultYet("final")]
    study = writer()
    study.trial("final", [0.5], test=0.4)
    reached = said(FinalTrainingValues, Results(final_spec, study.record()))
    assert [{name: spread.mean for name, spread in one.values.items()} for one in reached] == [
        {"val/accuracy": 0.5},
        {"test/accuracy": 0.4},
    ]


@pytest.mark.parametrize(("joined", "seed"), [(0.62, None), (0.6, 1), (0.58, 1)])
def test_the_ensemble_of_a_final_training_and_whether_it_is_the_model(final_spec, joined, seed):
    results = Results(final_spec, trained_twice(joined))
    told = only(EnsembleValues, results)
    assert {name: value.mean for name, value in told.values.items()} == {"val/accuracy": joined, "test/accuracy": 0.55}
    assert (told.count, told.seed) == (2, seed)
    assert ("does not show that it is better than seed 1" in str(told)) == (seed == 1), "it may be level"
    low, high = told.values["val/accuracy"].confidence_interval()
    assert low < joined < high
    summary = summarise_study(results)
    assert summary.ensemble.metrics["test/accuracy"].mean == 0.55
    assert result_means_and_deviations(results)["ensemble/test/accuracy"] == 0.55
    rows = [line.split()[:4] for line in summary_lines(summary) if line.startswith("ensemble")]
    assert ["ensemble", "test/accuracy", "55.0%", "(2"] in rows


def test_an_ensemble_that_was_not_validated_is_not_said_to_be_no_better(final_spec):
    told = only(EnsembleValues, Results(final_spec, trained_twice(None)))
    assert (list(told.values), told.seed) == (["test/accuracy"], 1)
    assert "no better" not in str(told)


def confirmed(study, baseline, best, test=None, **given_metric):
    study.trial("baseline", [0.5], **given_metric)
    study.trial("search", [0.7], **given_metric)
    for repeats, values in ((0, baseline), (1, best)):
        for seed, value in enumerate(values, start=1):
            given = test[repeats][seed - 1] if test else None
            study.trial("confirm", [value], seed=seed, repeats=repeats, test=given, **given_metric)
    return study.record()


def test_a_gain_that_the_test_split_denies(spec, writer):
    record = confirmed(writer(), [0.5, 0.51], [0.7, 0.71], test=([0.8, 0.81], [0.6, 0.61]))
    results = Results(spec, record)
    assert only(GainOverBaseline, results).verdict == "clear"
    change = only(MetricDifferenceToBaseline, results)
    assert (change.metric, change.difference.value) == ("test/accuracy", pytest.approx(-0.2))
    assert change.difference.is_clear


def test_a_gap_is_lowered_and_a_fraction(writer):
    spec = load_study("fairkl_digits", ["search.metric=val/equalized_odds"])
    study = writer()
    study.trial("baseline", [0.3], metric="val/equalized_odds")
    study.trial("search", [0.1], metric="val/equalized_odds")
    first, second = conclusion_statements(Results(spec, study.record()))
    assert isinstance(first, GainOverBaseline)
    assert isinstance(second, MetricDifferenceToBaseline)
    assert (first.verdict, first.won) == ("open", 1), "luck?"
    assert (second.difference.value, second.difference.is_clear) == (pytest.approx(-0.2), None)
    fresh = confirmed(writer(), [0.3, 0.31, 0.32], [0.1, 0.12, 0.11], metric="val/equalized_odds")
    gain = only(GainOverBaseline, Results(spec, fresh))
    assert (gain.verdict, gain.difference.value) == ("clear", pytest.approx(-0.2))


@pytest.mark.parametrize(
    ("trials", "expected"),
    [
        ([], ("any", None)),
        ([("search", "failed")], ("over", None)),
        ([("baseline", "complete")], ("over", 0.5)),
        ([("search", "complete")], ("alone", 0.5)),
    ],
)
def test_partly_finished_studies(spec, writer, trials, expected):
    study = writer()
    for stage, state in trials:
        study.trial(stage, [0.5], state=state)
    (told,) = conclusion_statements(Results(spec, study.record()))
    what, arm = (told.stage, told.baseline) if isinstance(told, NoResultYet) else (told.who, told.arm)
    assert (what, arm and arm.metric_statistics("val/accuracy").mean) == expected


def test_values_on_different_data_rank_nothing() -> None:
    """A configuration is easier to be good with on weaker bias; a search over the arm of images is none of these."""
    results = Results(*of_other_data())
    parts = report_lead_statements(results)
    assert parts.keys() == {"Result", "Cost"}
    differ, reached, _ = parts["Result"]
    assert differ == TrialDataDiffer(["data.rho"])
    assert isinstance(reached, ValueWithoutComparison)
    assert (reached.who, reached.arm.trial_number) == ("highest", 0)
    assert next_steps(results) == []
    assert quickstart().varied_data_keys == []


@pytest.mark.parametrize("given", ["search.baseline={%s}", "search.enqueue=[{%s}]"])
def test_a_configuration_that_is_given_may_differ_in_its_data(given: str) -> None:
    values = "method.alpha: 1.0, method.lambda: 0.0, method.epsilon: 0.0, data.rho: 0.5"
    assert quickstart(given % values).varied_data_keys == ["data.rho"]


STUDY = """\
name: people
data: {name: table, path: people.csv, target: status, bias: sex, val: biased}
model: {name: mlp}
method: {name: cross_entropy}
train: {epochs: 1}
search: {metric: val/accuracy, trials: 2, baseline: {}, space: {train.learning_rate: {low: 0.001, high: 0.01}}}
"""


@pytest.mark.parametrize("reached", [0.9, 0.995])
@pytest.mark.parametrize("leaks", [True, False, None])
def test_a_column_that_tells_the_class_is_named_and_a_result_of_nearly_all_is_doubted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reached: float, leaks: bool | None
) -> None:
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    yes, sex = draw.integers(0, 2, 200), draw.choice(["f", "m"], 200)
    copy = np.where(np.arange(200) % 50 == 0, 1 - yes, yes)
    columns = {"x": draw.normal(size=200), "sex": sex, "status": yes} | ({"copy": copy} if leaks else {})
    pd.DataFrame(columns).to_csv("people.csv", index=False)
    Path("people.yaml").write_text(STUDY)
    spec = load_study("people.yaml")
    study = record(Told("baseline", [0.7]), Told("search", [reached]))
    if leaks is not None:  # None: a session of an earlier version
        section = spec.base["data"]
        datasets = summarise_datasets({data.section_key(section): data.load(section)})
        study.sessions[-1] = replace(study.sessions[-1], datasets=datasets)
    results = Results(spec, study)
    assert ["'copy'" in one.told for one in said(InputRevealsClass, results)] == [True] * bool(leaks)
    doubted = [(one.metric, one.arm.trial_number, one.inputs) for one in said(SuspiciousResult, results)]
    inputs = None if leaks is None else int(leaks)
    assert doubted == ([("val/accuracy", 1, inputs)] if reached > 0.99 else [])


@pytest.mark.parametrize(("bias", "names"), [("null", True), ("lab", False), ("sex", False)])
def test_without_a_named_bias_a_column_that_goes_with_the_class_is_told_with_the_result_and_on_the_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bias: str, names: bool
) -> None:
    """As the plan says it before the run: who reads a final model's accuracy has seldom read its plan."""
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    yes, sex = draw.integers(0, 2, 300), draw.choice(["f", "m"], 300)
    lab = np.where(np.arange(300) % 6 == 0, 1 - yes, yes)
    columns = {"x": draw.normal(size=300), "sex": sex, "status": yes, "lab": np.array(["north", "south"])[lab]}
    pd.DataFrame(columns).to_csv("people.csv", index=False)
    Path("people.yaml").write_text(STUDY.replace("bias: sex", f"bias: {bias}"))
    spec = load_study("people.yaml")
    section = spec.base["data"]
    read = data.load(section)
    opened = entry_to_event(
        {
            "event": "opened",
            "owner": "me",
            "time": 1.0,
            "datasets": summarise_datasets({data.section_key(section): read}),
        }
    )
    final = final_training_spec(spec, [1])
    trained = record(Told("final", [0.9], seed=1))
    searched = record(Told("baseline", [0.7]), Told("search", [0.9]))
    for told, of in ((searched, spec), (trained, final)):
        told.sessions[-1] = opened
        found = [(one.column, round(one.share, 1)) for one in said(LikelyShortcut, Results(of, told))]
        assert found == [("lab", 0.8)] * names
    planned = [
        one for one in data.column_findings(section) if one.column == "lab" and "goes with the class" in str(one)
    ]
    assert bool(planned) is names
    results = Results(final, trained)
    card = model_card(results, described_model(results, results.final_training_trials), read, "people")
    assert ("data.bias: lab" in card.split("## Limits")[1]) is names
    assert said(LikelyShortcut, Results(spec, record())) == []


@pytest.mark.parametrize(
    ("share", "error", "cells", "says"),
    [
        (0.5, 0.0, [[40, 8], [6, 30]], True),  # by the bias alone: no error is known
        (0.56, 0.04, [[40, 8], [6, 30]], True),
        (0.44, 0.02, [[40, 8], [6, 30]], True),
        (0.62, 0.04, [[40, 8], [6, 30]], False),
        (0.5, 0.04, [[40, 0], [6, 30]], False),  # half of three cells is more than a guess
        (0.5, 0.04, [[40, 8], [6, 30], [9, 9]], False),  # of three classes a guess has a third
    ],
)
def test_a_best_that_is_no_better_than_guessing_is_not_to_be_trained(
    share: float, error: float, cells: list[list[int]], says: bool
) -> None:
    metric = "val/unbiased_accuracy"
    further = {metric: share, f"{metric}_standard_error": error}
    told = over(Told("baseline", [0.9], further=further), Told("search", [0.95], further=further))
    told.group_sample_counts = GroupSampleCounts({"val": cells})
    results = Results(quickstart(), told)
    found = said(NoBetterThanChance, results)
    assert [(one.metric, one.chance) for one in found] == ([(metric, 1 / len(cells))] if says else [])
    assert (next_steps(results)[0].kind == "learn") is says


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_a_clear_gain_of_what_is_not_told_from_guessing_is_no_achievement(share: float) -> None:
    """Accuracy rises by 20 points on three fresh seeds, and with it the share of the bias's own samples."""
    further = {"val/unbiased_accuracy": share, "val/unbiased_accuracy_standard_error": 0.02}
    fresh = [
        Told("confirm", [value + seed / 1000], seed=seed, repeats=of, further=further)
        for of, value in ((0, 0.7), (1, 0.9))
        for seed in (1, 2, 3)
    ]
    told = over(Told("baseline", [0.7], further=further), Told("search", [0.9], further=further), *fresh)
    told.group_sample_counts = GroupSampleCounts({"val": [[40, 8], [6, 30]]})
    first, *others = conclusion_statements(Results(quickstart("search.confirm={top: 1, seeds: 3}"), told))
    gain = next(one for one in [first, *others] if isinstance(one, GainOverBaseline))
    assert gain.verdict == "clear"
    is_guess = share == 0.5
    assert isinstance(first, NoBetterThanChance) is is_guess
    assert gain.is_guess is is_guess
    assert ("search raised" in str(gain), "though" in str(gain)) == (not is_guess, is_guess)
    assert any(isinstance(one, MetricDifferenceToBaseline) for one in others) is not is_guess


@pytest.mark.parametrize(("val", "test", "told"), [(0.3, None, "val"), (0.6, 0.1, "test"), (0.3, 0.6, None)])
def test_a_class_that_the_result_recognises_less_often_than_guessing_is_told(
    val: float, test: float | None, told: str | None
) -> None:
    """Of what `best.yaml` holds, here the baseline; test tells where it was read."""
    further = {"val/worst_class_accuracy": val}
    tested = {} if test is None else {"tested": {"test/accuracy": 0.9, "test/worst_class_accuracy": test}}
    record = over(Told("baseline", [0.9], further=further, **tested), Told("search", [0.7], further=further))
    record.group_sample_counts = GroupSampleCounts({split: [[40, 8], [6, 30]] for split in ("val", "test")})
    found = said(ClassBelowChance, Results(quickstart(), record))
    assert [(one.metric, one.arm.label, one.chance) for one in found] == (
        [(f"{told}/worst_class_accuracy", "baseline", 0.5)] if told else []
    )


@pytest.mark.parametrize(
    ("metric", "why"),
    [
        ("val/worst_class_accuracy", "the smallest of more than 4 classes is too low on average"),
        ("val/equalized_odds", "of few samples a gap between groups is too large on average"),
        ("val/unbiased_accuracy", "so that chance decides which of them count"),
        ("val/accuracy", None),
    ],
)
def test_a_metric_without_an_interval_of_its_own_is_said_to_have_none_and_why(metric: str, why: str | None) -> None:
    spec = quickstart(f"search.metric={metric}", "search.confirm={top: 0}")
    record = over(Told("baseline", [0.5], metric=metric), Told("search", [0.6], metric=metric))
    record.group_sample_counts = GroupSampleCounts({"val": [[40, 0], [1, 30]]})
    results = Results(spec, record)
    told = [str(one) for one in caveat_statements(results) if isinstance(one, NoIntervalOfValue)]
    assert len(told) == (why is not None)
    assert all(f"{metric} has no 95% interval of its own" in one and str(why) in one for one in told)


@pytest.mark.parametrize(("joined", "told"), [(0.6, []), (0.2, [0.2])])
def test_a_class_that_the_model_of_a_final_training_recognises_is_not_told_for_its_seeds(final_spec, joined, told):
    """The mean over seeds is below guessing; the ensemble, which is the model, may not be."""
    name = "test/worst_class_accuracy"
    tested = {"test/accuracy": 0.5, name: 0.1}
    record = over(Told("final", [0.5], tested=tested), Told("final", [0.5], seed=1, tested=tested))
    record.group_sample_counts = GroupSampleCounts({split: [[400, 400], [60, 300]] for split in ("val", "test")})
    record.apply(EnsembleMeasured((0, 1), {"val/accuracy": 0.6, name: joined}, time=99.0))
    found = said(ClassBelowChance, Results(final_spec, record))
    assert [one.arm.metric_statistics(one.metric).mean for one in found] == told
    assert all(str(one).startswith("The model recognises one class less") for one in found)


def test_advice_to_learn_more_leaves_out_what_the_study_has_or_cannot_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    image_folders.write(tmp_path / "mine", image_folders.rows())
    Path("people.csv").write_text("x,sex,status\n" + "1,f,0\n2,m,1\n2,f,0\n1,m,1\n" * 10)
    Path("people.yaml").write_text(STUDY)
    images = "data={name: image_folder, path: mine, bias: gender, size: 32}"
    resnet, weights = "model={name: resnet18, stem: imagenet}", "model={name: resnet18, weights: imagenet}"
    searched = "search.space={model.weights: {choices: [null, imagenet]}}"
    specs = [
        quickstart(),
        quickstart(weights),
        quickstart(images, resnet),
        quickstart(images, weights),
        quickstart(images, resnet, searched),
        load_study("people.yaml"),
    ]
    advice = [NotBetterThanGuessing.from_spec(spec) for spec in specs]
    assert [one.can_begin_pretrained for one in advice] == [True, False, True, False, False, False]
    assert [one.can_enlarge for one in advice] == [False, False, True, True, True, False]
    assert all(one.can_begin_pretrained is ("pretrained" in str(one)) for one in advice)
    assert all(one.can_enlarge is ("larger" in str(one)) for one in advice)


def test_a_test_split_on_which_the_best_is_better_denies_that_it_guesses() -> None:
    val, test = ({f"{split}/unbiased_accuracy": share} for split, share in (("val", 0.52), ("test", 0.8)))
    errors = {f"{split}/unbiased_accuracy_standard_error": 0.05 for split in ("val", "test")}
    told = over(Told("search", [0.9], further={**val, **errors}, tested={"test/accuracy": 0.9, **test}))
    told.group_sample_counts = GroupSampleCounts({split: [[40, 8], [6, 30]] for split in ("val", "test")})
    assert not said(NoBetterThanChance, Results(quickstart("search.baseline=null"), told))
