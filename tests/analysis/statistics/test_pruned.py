"""Estimates of pruned trials, in cells and tables, where the value that they would have had is known."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from benchmarks.simulations.pruned_cells import RULES, drawn, simulated, spec_of, stopped, tallied
from helpers import Told, quickstart, record

from study.analysis import ablation, sensitivity, to_csv, to_latex, to_markdown, trials_frame
from study.analysis.statistics.cells import ESTIMATE
from study.analysis.statistics.imputation import ENOUGH, Stage, impute
from study.analysis.statistics.pruned import Pruned

METRIC = "val/accuracy"


@pytest.fixture(scope="module")
def search():
    return simulated("own ends", "asha", 100, 0)


@pytest.fixture(scope="module")
def frame(search):
    return trials_frame(search.spec, search.record)


def test_estimates_are_much_nearer_to_full_runs_than_the_trials_that_were_left(search):
    found = tallied(
        iter([search, simulated("own ends", "asha", 100, 1), simulated("many never learn", "median", 60, 1)])
    )
    assert found.ratio < 1 / 3
    assert np.mean(found.covered) > 0.9
    right, alone = np.sum(found.orders, axis=0)
    assert right > alone


def test_a_cell_has_both_means_and_both_counts(search, frame):
    found, full = (ablation(one, "method.alpha", METRIC) for one in (frame, trials_frame(search.spec, search.full)))
    last = found.iloc[-1]
    assert last["n"] + last["pruned"] == full["n"].iloc[-1]
    assert last["estimated"] == last["pruned"] > 0
    assert last["mean"] == pytest.approx(np.mean(last["values"]))
    assert last["estimate"] < last["mean"]
    assert last["estimate_low"] <= last["estimate"] <= last["estimate_high"] <= 1.0
    assert last["estimate_sd"] == pytest.approx(np.std(full["values"].iloc[-1], ddof=1), rel=0.5)


def test_every_form_of_a_table_has_both(frame):
    table = ablation(frame, "method.alpha", METRIC)
    last = table.iloc[-1]
    number = f"{100 * last['estimate']:.1f} ± {100 * last['estimate_sd']:.1f}"
    printed = to_markdown(table)
    assert f"{number} ({last['n']}; {last['pruned']} pruned, estimated)" in printed
    assert "A cell with estimated trials is the mean of complete and pruned trials" in printed
    alone = f"(complete trials alone: {100 * last['mean']:.1f} $\\pm$ {100 * last['sd']:.1f})"
    assert alone in to_latex(table)
    line = pd.read_csv(io.StringIO(to_csv(table))).iloc[-1]
    assert [line[name] for name in ("mean", "estimate", "estimate_high")] == pytest.approx(
        [last[name] for name in ("mean", "estimate", "estimate_high")]
    )
    assert json.loads(table.to_json())["estimate"]


def test_without_pruned_trials_everything_is_as_it_was(search):
    full = trials_frame(search.spec, search.full)
    table = ablation(full, "method.alpha", METRIC)
    assert table[list(ESTIMATE[:4])].isna().all(axis=None)
    assert "estimate" not in to_csv(table)
    assert to_markdown(table) == to_markdown(ablation(pd.DataFrame(full), "method.alpha", METRIC))


def test_some_rows_keep_their_study_and_rows_of_another_are_not_estimated(frame):
    half = frame[frame["method.lambda"] < 1.0]
    assert (sensitivity(half, "method.alpha", "method.epsilon", METRIC)["estimated"] > 0).any(axis=None)
    scaled = half.assign(**{METRIC: 100 * half[METRIC]})
    assert (ablation(scaled, "method.alpha", METRIC)["estimated"] == 0).all()
    assert "the table's rows are not those of the study" in to_markdown(ablation(scaled, "method.alpha", METRIC))


def test_where_nothing_can_be_estimated_the_bias_is_named():
    spec = quickstart("search.early_stopping.grace=1")
    few = [Told("search", [0.5, 0.6 + place / 50], params={"method.alpha": 0.1}) for place in range(ENOUGH - 1)]
    few += [Told("search", [0.2], "pruned", {"method.alpha": 0.1, "method.lambda": 0.5})]
    table = ablation(trials_frame(spec, record(*few)), "method.alpha", METRIC)
    assert table["unestimated"].iloc[0] == "5 trials went on after epoch 1, 6 are needed"
    printed = to_markdown(table)
    assert "Pruned trials are not estimated: 5 trials went on after epoch 1, 6 are needed." in printed
    assert "A cell that has some is the mean of the trials that were not pruned." in printed
    assert "and trials that lead early end ahead, it is mostly too high." in printed
    test = trials_frame(spec, record(*few)).assign(**{"test/accuracy": 0.5})
    assert ablation(test, "method.alpha", "test/accuracy")["unestimated"].iloc[0] == "not every pruned trial reports it"


@pytest.mark.parametrize("more", ["search.epoch=best", "search.constraints=[val/equalized_odds <= 0.5]"])
def test_best_epochs_and_limits(more, search):
    """What a trial was worth at a rung is by the study's own rule for its epoch."""
    spec = spec_of(RULES["asha"], 27, more=more)
    trials = search.record.trials
    for trial in trials.values():
        for place, report in enumerate(trial.reports):
            trial.reports[place] = type(report)(place + 1, {METRIC: report[METRIC], "val/equalized_odds": 0.1})
    found = Pruned(spec, search.record).values(METRIC)
    assert not isinstance(found, str)
    truth = dict(enumerate(search.final))
    assert np.mean([abs(found.value(number) - truth[number]) for number in found.draws]) < 0.06


def test_lower_is_better():
    spec = spec_of(RULES["asha"], 27, "val/equalized_odds")
    generator = np.random.default_rng(0)
    units, params = drawn(spec, 60, generator)
    ends = 0.05 + 0.3 * units[:, 0]
    curves = ends[:, None] + 0.4 * np.exp(-np.arange(1, 28) / 5) + generator.normal(0, 0.01, (60, 27))
    found = stopped(spec, np.abs(curves), params)
    table = ablation(trials_frame(spec, found.record), "method.alpha", "val/equalized_odds")
    both = table[(table["estimated"] > 0) & (table["n"] > 0)]
    assert (both["estimate"] > both["mean"]).all()
    assert (both["estimate_low"] >= 0.0).all()


def test_a_line_is_followed_beyond_the_trials_that_went_on():
    seen = np.linspace(0.0, 1.0, 40)
    off = seen < 0.4
    final = np.where(off, np.nan, 0.2 + 0.5 * seen)
    stage = Stage(np.arange(40), off, seen, np.empty((40, 0)))
    draws = impute([stage], final, np.empty((40, 0)), 0.0, 1.0)
    assert draws[off].mean(1) == pytest.approx(0.2 + 0.5 * seen[off], abs=0.02)
    assert (draws[~off] == final[~off, None]).all()
    assert (draws.std(1)[off][0]) > draws.std(1)[off][-1]
