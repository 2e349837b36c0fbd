from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import Told, quickstart, record

from study import data
from study.analysis.report.caveats import caveats, conclusions
from study.analysis.report.result_sentences import lead
from study.analysis.statistics.next_step import next_steps
from study.data import inventory
from study.ranking import Results
from study.spec import load_study


def test_final_training(final_spec, writer):
    study = writer()
    study.trial("final", [0.5], state="failed")
    assert conclusions(Results(final_spec, study.record())) == ["No seed of the final training is complete yet."]
    study = writer()
    study.trial("final", [0.5], test=0.4)
    assert conclusions(Results(final_spec, study.record())) == [
        "The final training reaches val/accuracy 50.0% on seed 0.",
        "On the test split it reaches test/accuracy 40.0% on seed 0.",
    ]


def test_what_is_not_known(spec, frozen):
    assert list(caveats(Results(spec, frozen))) == [
        "1 trial failed: Diverged: loss is nan in epoch 1",
        "What more search would gain is not known. 4 of the sampler's trials have ended, and at least 10 are needed.",
        "In the search trial 1 had val/accuracy 70.0%; on the fresh seeds the mean differs by +4.0 points.",
    ]


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
    first, second = conclusions(Results(spec, record))
    assert "raised" in first
    assert "-20.0 points" in second
    assert "worse beyond the spread" in second


def test_a_gap_is_lowered_and_a_fraction(writer):
    spec = load_study("fairkl_digits", ["search.metric=val/equalized_odds"])
    study = writer()
    study.trial("baseline", [0.3], metric="val/equalized_odds")
    study.trial("search", [0.1], metric="val/equalized_odds")
    first, second = conclusions(Results(spec, study.record()))
    assert first.startswith("val/equalized_odds is 0.300 for the baseline and 0.100 for the best of the search"), (
        "luck?"
    )
    assert second.startswith("Against the baseline trial 1 has -0.200, which one seed cannot tell from luck")
    fresh = confirmed(writer(), [0.3, 0.31, 0.32], [0.1, 0.12, 0.11], metric="val/equalized_odds")
    assert conclusions(Results(spec, fresh))[0].startswith(
        "The search lowered val/equalized_odds from 0.310 ± 0.010 (baseline)"
    )


@pytest.mark.parametrize(
    ("trials", "expected"),
    [
        ([], "No trial has been started yet."),
        ([("search", "failed")], "No trial of the search is complete yet"),
        ([("baseline", "complete")], "The baseline reaches val/accuracy 50.0% on seed 0. No trial of the search"),
        ([("search", "complete")], "The one configuration, trial 0, reaches val/accuracy 50.0%"),
    ],
)
def test_partly_finished_studies(spec, writer, trials, expected):
    study = writer()
    for stage, state in trials:
        study.trial(stage, [0.5], state=state)
    assert conclusions(Results(spec, study.record()))[0].startswith(expected)


def test_a_kernel_that_leaves_next_to_no_weight_is_named() -> None:
    told = [
        Told("search", [0.5], further={"train/weight_sum": weight, "train/effective_negatives": 4.0})
        for weight in (0.034, 0.9, 0.02)
    ]
    (sentence,) = (line for line in caveats(Results(quickstart(), record(*told))) if "kernel" in line)
    assert sentence.startswith("The kernel is too narrow in trials 0 and 2: ")
    assert "method.sigma2" in sentence
    assert not any("kernel" in line for line in caveats(Results(quickstart(), record(told[1]))))


def test_values_on_different_data_rank_nothing() -> None:
    """A configuration is easier to be good with on weaker bias; a search over the side of images is none of these."""
    space = "search.space={data.rho: {choices: [0.9, 0.99]}, method.lambda: {choices: [0.5, 1.0]}}"
    spec = quickstart(space, "search.baseline=null")
    trials = [
        Told("search", [value], params={"data.rho": rho, "method.lambda": weight})
        for rho, value in ((0.9, 0.8), (0.99, 0.5))
        for weight in (0.5, 1.0)
    ]
    study = record(*trials)
    study.take({"event": "closed", "state": "complete", "time": 99.0})
    assert spec.varied_data == ["data.rho"]
    said = {part.title: part.text for part in lead(Results(spec, study))}
    assert "(data.rho), so their values do not say which configuration is better" in said["Result"]
    assert said.keys() == {"Result", "Cost"}
    assert next_steps(Results(spec, study)) == []
    assert quickstart().varied_data == []


@pytest.mark.parametrize("given", ["search.baseline={%s}", "search.enqueue=[{%s}]"])
def test_a_configuration_that_is_given_may_differ_in_its_data(given: str) -> None:
    values = "method.alpha: 1.0, method.lambda: 0.0, method.epsilon: 0.0, data.rho: 0.5"
    assert quickstart(given % values).varied_data == ["data.rho"]


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
        study.sessions[-1]["datasets"] = inventory({data.key(section): data.load(section)})
    *_, last = conclusions(Results(spec, study))
    said = " ".join(conclusions(Results(spec, study)))
    assert ("Column 'copy' alone tells the class: right in 9" in said) == bool(leaks)
    assert ("val/accuracy of trial 1 is 99.5%" in last) == (reached > 0.99)
    assert ("No column alone tells the class" in last) == (reached > 0.99 and leaks is False)
    assert ("no wonder" in last) == (reached > 0.99 and bool(leaks))
