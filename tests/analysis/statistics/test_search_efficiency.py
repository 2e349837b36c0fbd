"""What a search bought. The expected numbers are worked out by hand."""

import math
from functools import cache

import pandas as pd
import pytest
from helpers import Told, quickstart, record
from hypothesis import given, settings
from hypothesis import strategies as st

from study.analysis.statistics.search_efficiency import best_so_far, budget, printed_early_stopping, would_have_stopped
from study.spec import StudySpec
from study.spec.objective import Score
from study.sweep.early_stopping import early_stopping


def test_best_so_far(spec, frozen):
    """Every trial starts 10 s after the end of the one before it and runs 2 s per epoch."""
    found = best_so_far(spec, frozen)
    expected = {
        "seconds": [8.0 + 10 + 8, 8.0 + 10 + 8 + 10 + 2 + 10 + 10 + 8],
        "busy_seconds": [16.0, 16.0 + 2 + 8],
        "epochs": [8, 13],
        "value": [0.70, 0.72],
        "best": [0.70, 0.72],
    }
    pd.testing.assert_frame_equal(found, pd.DataFrame(expected, index=pd.Index([1, 4], name="trial")))


def test_the_best_never_becomes_worse_and_keeps_the_constraints():
    odds = quickstart("search.metric=val/equalized_odds")
    values = [0.3, 0.4, 0.1, 0.2]
    found = best_so_far(odds, record(*(Told("search", [value], metric="val/equalized_odds") for value in values)))
    assert list(found["best"]) == [0.3, 0.3, 0.1, 0.1]
    limited = quickstart("search.constraints=['val/accuracy <= 0.5']")
    found = best_so_far(limited, record(*(Told("search", [value]) for value in (0.6, 0.3, 0.7, 0.4))))
    assert math.isnan(found["best"].iloc[0])
    assert list(found["best"])[1:] == [0.3, 0.3, 0.4]


def test_a_configuration_of_several_seeds_is_there_when_the_last_has_ended():
    spec = quickstart("search.replicates=2")
    trials = [Told("search", [0.8]), Told("search", [0.5]), Told("replicate", [0.6], seed=1, repeats=0)]
    found = best_so_far(spec, record(*trials, Told("replicate", [0.7], seed=1, repeats=1)))
    assert list(found["value"]) == [pytest.approx(0.7), pytest.approx(0.6)]
    assert list(found["epochs"]) == [3, 4]


def test_budget(spec, frozen):
    found = budget(spec, frozen)
    assert found.loc["complete"].to_list() == [3, 12, 12, 0.0, 24.0, 24.0]
    assert found.loc["pruned"].to_list() == [1, 1, 4, 0.75, 2.0, 8.0]
    assert found.loc["all"].to_list() == [4, 13, 16, pytest.approx(3 / 16), 26.0, 32.0]


def test_a_study_without_trials(spec, writer):
    empty = writer().record()
    assert best_so_far(spec, empty).empty
    assert budget(spec, empty).loc["all", "trials"] == 0
    assert would_have_stopped(spec, empty).empty
    assert printed_early_stopping(spec, empty).empty


HALVING = quickstart(
    "train.epochs=4", "search.early_stopping={name: asha, grace: 1, reduction: 2}", "search.confirm={top: 1, seeds: 2}"
)
HALVED = [
    Told("baseline", [0.9, 0.9, 0.9, 0.1]),
    Told("search", [0.3, 0.3, 0.3, 0.3]),
    Told("search", [0.5, 0.6, 0.7, 0.8]),
    Told("search", [0.6], "pruned"),
    Told("search", [0.1], "pruned"),
    Told("confirm", [0.9, 0.9, 0.9, 0.1], seed=1, repeats=0),
    Told("confirm", [0.9, 0.9, 0.9, 0.1], seed=2, repeats=0),
    Told("confirm", [0.2, 0.6, 0.7, 0.8], seed=1, repeats=2),
    Told("confirm", [0.35, 0.6, 0.7, 0.9], seed=2, repeats=2),
]


def test_whether_the_best_would_have_been_stopped():
    """At epoch 1 the search saw 0.3, 0.5, 0.6, 0.1: before trial 2 the cut-off was 0.3, in the end the median 0.4."""
    found = would_have_stopped(HALVING, record(*HALVED))
    first = found[found["rung"] == 1]
    assert list(first["trial"]) == [7, 8]
    assert list(first["cutoff"]) == [0.3, 0.3]
    assert list(first["final_cutoff"]) == [pytest.approx(0.4)] * 2
    assert list(first["stopped"]) == [True, False]
    assert list(first["stopped_finally"]) == [True, True]
    second = found[found["rung"] == 2]
    assert list(second["cutoff"]) == [0.3, 0.3]
    assert list(second["final_cutoff"]) == [pytest.approx(0.45)] * 2
    assert not second[["stopped", "stopped_finally"]].any(axis=None)
    assert found["is_best"].all()


def test_it_is_told_in_a_small_table():
    found = printed_early_stopping(HALVING, record(*HALVED))
    assert dict(found.itertuples(index=False)) == {
        "trials pruned": "2 of 5",
        "epochs run, of all trials in full": "14 of 20",
        "saved": "30% of the epochs, about 12 s of trial time",  # 2 s for one epoch, 8 s for four
        "repeats of the best that ASHA would have pruned, by the cut-offs at that time": "1 of 2",
        "repeats of the best that ASHA would have pruned, by the cut-offs of the whole search": "2 of 2",
    }


def test_of_several_metrics_nothing_is_said():
    several = quickstart("search.metric=[val/accuracy, val/equalized_odds]")
    assert would_have_stopped(several, record(*HALVED)).empty


@cache
def halving(metric: str, reduction: int) -> StudySpec:
    rule = f"search.early_stopping={{name: asha, grace: 1, reduction: {reduction}}}"
    return quickstart("train.epochs=2", f"search.metric={metric}", rule, "search.confirm={top: 1, seeds: 2}")


@pytest.mark.parametrize("metric", ["val/accuracy", "val/equalized_odds"])
@settings(max_examples=20)
@given(
    values=st.lists(st.sampled_from([0.2, 0.5]) | st.floats(0, 1), min_size=2, max_size=8), reduction=st.integers(2, 4)
)
def test_the_cut_off_is_the_sweeps(metric: str, values: list[float], reduction: int) -> None:
    """A repeat of the last trial, with its own curve, is stopped where the sweep's rule stops that trial."""
    spec = halving(metric, reduction)
    rule = early_stopping(spec)
    sign = 1.0 if spec.mode == "max" else -1.0
    stops = [rule.prunes(trial, 1, Score((value,), (sign * value,))) for trial, value in enumerate(values)]
    last = len(values) - 1
    searched = [Told("search", [value, value], metric=metric) for value in values]
    repeat = Told("confirm", [values[-1], 0.5], seed=1, repeats=last, metric=metric)
    found = would_have_stopped(spec, record(*searched, repeat))
    assert list(found["stopped"]) == [stops[last]]
